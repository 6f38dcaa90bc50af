import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { OUR_ITEM } from '../settings.js'
import type { Verdict } from '../world/promises.js'
import type { Random } from '../world/random.js'
import type { App } from './app.js'
import { endure, type FaultClass, tracked } from './faults.js'
import type { Outage } from './platform.js'
import type { World } from './world.js'

/** What the store of a world with a sender keeps of what is made up: so little that each flood reaches it. */
export const SMALL_ALLOWANCE: Allowance = {
  event: { rows: 60, bytes: 1_000_000 },
  known: { rows: 10_000, bytes: 10_000_000 },
  unrecognised: { rows: 10, bytes: 100_000 },
  subscriptions: 60,
}
/** The deliveries of one flood. */
const FLOOD = 100
/** How much later than alone anything may be for a customer who was read before. */
const LATER_MS = SECOND
/** How often a visitor looks at a page. */
const LOOK_MS = 50

/** Somebody who has the delivery secret, and makes up subscriptions, businesses and events. */
export function createSender(options: { time: VirtualClock; app: App; random: Random; verdict: Verdict }) {
  const { time, app, random, verdict } = options
  let made = 0
  const floodedAt: number[] = []

  function madeUp(): unknown {
    const number = made++
    const notice = (end = '') => ({
      entity_name: 'purchasable_subscription',
      event_type: 'created',
      data: {
        business_id: `made-up-${number}`,
        purchasable_uid: OUR_ITEM,
        subscription_uid: `made-up-${number}${end}`,
      },
    })
    switch (number % 10) {
      case 0:
        return Array.from({ length: 5 }, (_, i) => notice(`-${i}`))
      case 1:
        return Array.from({ length: 50 }, () => `made-up-${number}`)
      case 2:
      case 3:
        return { entity_name: 'made-up', event_type: `number ${number}`, data: {} }
      case 4:
      case 5: {
        const data = {
          business_id: `made-up-${number}`,
          app_code_name: 'ours',
          event_time: new Date(time.now()).toISOString(),
        }
        return { entity_name: 'application', event_type: 'installed', data }
      }
      default:
        return notice()
    }
  }

  /** Sends one flood. Resolves with the reply to each delivery. */
  function flood(): Promise<Sent[]> {
    time.lookClosely(20 * SECOND)
    floodedAt.push(time.passed())
    return Promise.all(
      Array.from({ length: FLOOD }, async () => {
        const body = JSON.stringify(madeUp())
        const { status } = await time.follow(app.deliver(body))
        return { status, business: JSON.parse(body).data?.business_id }
      }),
    )
  }

  return {
    flood,
    floodsSince: (at: number) => floodedAt.filter((each) => each >= at).length,

    /** Sends a flood from time to time, whatever else goes wrong. */
    begin({ everyMs }: { everyMs: number }) {
      time.after(everyMs * (0.5 + random.next()), () => {
        if (app.isUp()) void flood()
        this.begin({ everyMs })
      })
    },

    /**
     * Checks that the store keeps no more of what is made up than it may. Each process measures for itself, and one that has just begun
     * does not know yet what others have stored, so the bound is for that many processes.
     */
    async checkRows({ processes = 1 } = {}) {
      verdict.made('harmless')
      const { journal, subscriptions } = app.marketplace()
      let entries = 0
      for (let before: string | undefined; ; ) {
        const page = await journal.list({ limit: 1_000, ...(before ? { before } : {}) })
        entries += page.filter(({ payload }) => JSON.stringify(payload).includes('made-up')).length
        if (page.length < 1_000) break
        before = page.at(-1)?.id
      }
      const most = SMALL_ALLOWANCE.event.rows + SMALL_ALLOWANCE.unrecognised.rows
      if (entries > most * processes) verdict.fail('harmless', `${entries} made-up entries are stored`)
      const uids = (await subscriptions.list({ limit: 1_000 })).map(
        ({ subscription_uid }) => subscription_uid,
      )
      const count = uids.filter((uid) => uid.startsWith('made-up')).length
      if (count > SMALL_ALLOWANCE.subscriptions * processes)
        verdict.fail('harmless', `${count} made-up subscriptions are stored`)
    },
  }
}

/** A delivery that the app has answered. Only an event of its own names a business. */
interface Sent {
  status: number
  business?: string
}

export type Sender = ReturnType<typeof createSender>

/** Whether a problem of health only says what a sender has made up: that it was turned away, or is not recognised. */
export const isOfSender = ({ code }: { code: string }) =>
  code === 'deliveries_turned_away' || code === 'shapes_refused'

export const FAULTS_OF_SENDERS = {
  sender: {
    id: 'M70',
    what: 'floods of somebody who has the delivery secret',
    checks: ['harmless'],
    async live(world) {
      const { time, app, platform, buyers, probes, random, verdict, note } = world
      const sender = world.sender as Sender
      const fail = (what: string) => verdict.fail('harmless', what)
      await tracked(world, 8)
      await time.advance(10 * MINUTE)
      buyers.rest(true)
      await time.advance(5 * MINUTE)

      app.now.handlerMs = 800
      const alone = await changed(world, 'customer-0')
      const handled = new Set<string>()
      app.now.onHandler = (of) => void handled.add(of)
      for (let i = 1; i <= 3; i++) {
        await time.advance(random.between(1, 30) * MINUTE)
        const floods = sender.flood()
        const beside = await changed(world, `customer-${i}`)
        for (const what of ['reply', 'page', 'answer', 'event', 'change'] as const) {
          verdict.made('harmless')
          if (beside[what] > alone[what] + LATER_MS)
            fail(
              `beside a flood, ${what} of a customer after ${beside[what]} ms, alone after ${alone[what]} ms`,
            )
        }
        // The second flood comes while handlers still have to get the first one.
        const sent = [...(await time.until(floods)), ...(await time.until(sender.flood()))]
        const refused = sent.filter(({ status }) => status !== 200).length
        note(
          `a flood, of which ${refused} were refused; beside it ${JSON.stringify(beside)}, alone ${JSON.stringify(alone)}`,
        )
        if (refused === 0) fail('a flood of more than the allowance was taken')
        await time.until(sender.checkRows())
        await time.advance(MINUTE)
        const lost = sent.filter(
          ({ status, business }) => status === 200 && business && !handled.has(business),
        )
        verdict.made('harmless')
        if (lost.length > 0) fail(`${lost.length} events were acknowledged, and no handler got them`)
        verdict.made('honest')
        const { status, problems } = await probes.health()
        if (status === 'failing') fail('a flood takes the app out of rotation')
        if (!problems.some(({ code }) => code === 'deliveries_turned_away'))
          verdict.fail('honest', 'deliveries were turned away, and health does not say so')
      }
      app.now.handlerMs = 0
      app.now.onHandler = () => {}

      // Until what was made up before has been denied, it fills the allowance.
      await time.advance(2 * HOUR)
      platform.now.outage = random.pick<Outage>(['503', '429', 'hang', 'reset'])
      const business = 'bought-in-outage'
      const { isDelivered } = buyers.buy(business)
      const isTaken = await time.until(isDelivered)
      for (let i = 0; i < 4; i++) {
        await time.until(sender.flood())
        const uid = platform.of(`customer-${4 + i}`).at(-1)?.uid as string
        verdict.made('harmless')
        if (!(await time.until(buyers.move(uid, 'purchased'))))
          fail('the delivery of a customer was refused beside a flood during an outage')
        await time.until(sender.checkRows())
        await endure(world, `the platform fails (${platform.now.outage})`, random.between(10, 40) * MINUTE)
        await probes.expectPayers('during an outage with floods', business)
      }
      platform.now.outage = 'none'
      // The pause between tries is an hour at most.
      time.attend(2 * HOUR)
      await time.advance(2 * HOUR)
      if (isTaken) {
        verdict.made('harmless')
        const { entitled, reason } = await probes.explain(business)
        if (!entitled)
          fail(`${business} was acknowledged during an outage with floods, and is ${reason} after it`)
      } else verdict.skipped('harmless', 'the delivery was lost or refused')
      buyers.rest(false)
    },
  },
} satisfies Record<string, FaultClass>

/** Changes the state of a customer's subscription. Returns after how many ms each effect was seen. */
async function changed({ time, app, platform, buyers, verdict }: World, business: string) {
  const { uid, state } = platform.of(business).at(-1) as { uid: string; state: string }
  const expected = state !== 'purchased'
  const beganAt = time.passed()
  const since = () => time.passed() - beganAt
  const never = DAY
  const seen = { reply: never, page: 0, answer: never, event: never, change: never }
  const before = app.now.onHandler
  app.now.onHandler = (of, isChange) => {
    before(of, isChange)
    if (of === business)
      seen[isChange ? 'change' : 'event'] = Math.min(since(), seen[isChange ? 'change' : 'event'])
  }
  time.lookClosely(MINUTE)
  void buyers.move(uid, expected ? 'purchased' : 'suspended').then((isTaken) => {
    if (isTaken) seen.reply = since()
    else verdict.fail('harmless', 'the delivery of a customer was refused beside a flood')
  })
  while (since() < MINUTE && Object.values(seen).includes(never)) {
    const askedAt = time.passed()
    const { entitled } = await time.until(app.marketplace().explain(business))
    seen.page = Math.max(seen.page, time.passed() - askedAt)
    if (entitled === expected) seen.answer = Math.min(since(), seen.answer)
    await time.advance(LOOK_MS)
  }
  app.now.onHandler = before
  return seen
}
