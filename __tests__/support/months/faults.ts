import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { ADDRESSES } from '../settings.js'
import type { Promised } from '../world/promises.js'
import { createRandom } from '../world/random.js'
import { FAULTS_OF_ENDS } from './faults-of-ends.js'
import { FAULTS_OF_MACHINES } from './faults-of-machines.js'
import type { Outage } from './platform.js'
import { FAULTS_OF_SENDERS } from './sender.js'
import type { World } from './world.js'

export interface FaultClass {
  /** The row of the fault in __tests__/faults/README.md. */
  id: string
  /** The fault as a phrase that follows "after". */
  what: string
  /** Whether a handler may get an answer that follows from a wrong option, and is not called again afterwards. */
  misleadsHandlers?: boolean
  /** Promises that this fault is for, so that a world with it must check them. */
  checks?: readonly Promised[]
  /** Begins the fault, checks the app while it lasts, and ends it. */
  live(world: World): Promise<void>
}

/** Probes the app at once, and from time to time while the fault lasts. */
export async function endure(
  { time, probes, random, checkJournal, longestMs }: World,
  what: string,
  forMs: number,
  met?: { isMetByRefusing: boolean },
) {
  const until = time.passed() + Math.min(forMs, longestMs)
  await probes.trouble(what, met)
  while (until - time.passed() > 12 * HOUR) {
    await time.advance(random.between(10, 30) * HOUR)
    await probes.trouble(what, met)
    await checkJournal()
  }
  await time.advance(Math.max(0, until - time.passed()))
}

const longOrShort = ({ random }: World) => random.pick([5 * HOUR, 3.3 * DAY])

/** A deployment with a wrong option; the next deployment corrects it. */
function misconfigured(id: string, what: string, wrong: Parameters<World['app']['redeploy']>[0]): FaultClass {
  return {
    id,
    what,
    async live(world) {
      await world.app.redeploy(wrong)
      await endure(world, what, longOrShort(world))
      await world.app.redeploy()
    },
  }
}

const FAULTS_OF_OPERATORS = {
  baseUrl: misconfigured('M1', 'a base URL that is wrong', { baseUrl: `${ADDRESSES.baseUrl}/old` }),
  authUrl: misconfigured('M2', 'an auth URL that is wrong', { authUrl: `${ADDRESSES.authUrl}/old` }),
  secretUnnamed: misconfigured('M3', 'a client secret that is wrong, refused in unclear words', {
    clientSecret: 'of-the-other-app',
  }),
  secretNamed: {
    id: 'M3',
    what: 'a client secret that is wrong, refused as invalid_client',
    async live(world) {
      world.platform.manners.wrongSecret = '{"error":"invalid_client"}'
      await FAULTS_OF_OPERATORS.secretUnnamed.live(world)
    },
  },
  item: {
    ...misconfigured('M4', 'a purchasableUid that is misspelt', { purchasableUid: 'item-ourz' }),
    misleadsHandlers: true,
  },

  platform: {
    id: 'M5',
    what: 'a platform that failed',
    async live(world) {
      const { platform, random } = world
      platform.now.outage = random.pick<Outage>(['503', '429', 'html', 'hang', 'reset'])
      world.note(platform.now.outage)
      await endure(world, `the platform fails (${platform.now.outage})`, random.pick([3 * HOUR, 30 * HOUR]))
      platform.now.outage = 'none'
    },
  },

  disk: {
    id: 'M6',
    what: 'a disk that failed',
    async live(world) {
      const { disk, random, note } = world
      const how = random.pick(
        disk.canFill ? (['fails', 'is full', 'is full'] as const) : (['fails'] as const),
      )
      note(`the disk ${how}`)
      disk.be(how)
      await endure(world, `the disk ${how}`, random.pick([HOUR, 20 * HOUR]), {
        isMetByRefusing: how === 'is full',
      })
      disk.be('well')
    },
  },

  clock: {
    id: 'M7',
    what: 'a wall clock that leapt',
    async live({ time, app, buyers, probes, random, platform, note }) {
      const leaps = [70 * SECOND, HOUR, DAY, -70 * SECOND, -HOUR, -DAY]
      for (let i = 0; i < 4; i++) {
        const [leap] = leaps.splice(random.between(0, leaps.length - 1), 1) as [number]
        note(`the clock leaps by ${leap / SECOND} s`)
        // The handlers of a new and of an old business run during the leap.
        app.now.handlerMs = 20 * SECOND
        void buyers.buy(`leap-${i}`)
        const old = platform.of('probe-payer').at(-1)?.uid as string
        void buyers.move(old, 'suspended')
        await time.advance(3 * SECOND)
        time.leap(leap)
        time.lookClosely(40 * SECOND)
        await time.advance(10 * SECOND)
        app.now.handlerMs = 0
        await buyers.move(old, 'purchased')
        await time.advance(30 * SECOND)
        await probes.visit()
        await time.advance(random.between(2, 20) * HOUR)
      }
    },
  },

  downtime: {
    id: 'M8',
    what: 'days without the app',
    async live(world) {
      const { time, app, buyers, platform, probes, random } = world
      await tracked(world, 150)
      await time.advance(26 * HOUR)
      await app.close()
      await time.advance(random.pick([30 * HOUR, 2 * DAY]))
      platform.now.latencyMs = 600
      app.deploy()
      await time.advance(3 * SECOND)
      // All reads are overdue, but new events must not wait for them.
      await probes.visit()
      buyers.rest(true)
      await time.advance(10 * MINUTE)
      platform.now.latencyMs = 40
    },
  },

  imports: {
    id: 'M9',
    what: 'an import',
    async live(world) {
      const { platform, probes } = world
      platform.now.latencyMs = 600
      await tracked(world, 150)
      await probes.visit()
      await world.time.advance(10 * MINUTE)
      platform.now.latencyMs = 40
    },
  },

  handlers: {
    id: 'M10',
    what: 'handlers that failed for days',
    async live(world) {
      const { app, buyers, random } = world
      const failing = random.pick(['all', 'changes', 'events'])
      app.now.fails = ({ isChange }) => failing === 'all' || isChange === (failing === 'changes')
      await buyers.buy('unlucky').isDelivered
      await endure(world, `handlers of ${failing} fail`, random.pick([3 * HOUR, 2 * DAY]))
      app.now.fails = () => false
      await world.time.advance(DAY)
    },
  },

  poison: {
    id: 'M11',
    what: 'a handler that failed for ever for one business',
    async live(world) {
      const { time, app, buyers, ledger, verdict } = world
      // These are shorter than the tries of a handler, so the tries decide.
      const retention = { changesMs: 2 * DAY, eventsMs: 2 * DAY }
      await app.redeploy({ retention })
      const before = ledger.dead()
      app.now.fails = ({ business }) => business === 'poison'
      await buyers.buy('poison').isDelivered
      // Shorter than its tries it would prove nothing.
      await endure({ ...world, longestMs: 2.5 * DAY }, 'a handler fails for ever', 2.5 * DAY)
      await time.advance(1.5 * DAY)
      // Without any handler, changes reach the end of their retention.
      await app.redeploy({ retention, handlers: 'events' })
      await buyers.buy('nobody-handles').isDelivered
      await time.advance(3 * DAY)
      await world.checkJournal()
      verdict.made('ended')
      if (ledger.dead() === before) verdict.fail('ended', 'an entry failed for days and is not dead')
      app.now.fails = () => false
      await app.redeploy()
    },
  },

  script: {
    id: 'M12',
    what: 'a script without handlers',
    async live(world) {
      const { time, app, buyers, deliveries, random, checkJournal } = world
      app.now.fails = () => true
      await buyers.buy('beside').isDelivered
      await deliveries.install('beside', 'installed')
      await time.advance(random.between(1, 20) * MINUTE)
      await app.redeploy({ handlers: random.pick(['none', 'changes']) })
      await time.advance(random.between(1, 90) * MINUTE)
      app.now.fails = () => false
      await app.redeploy()
      await checkJournal()
    },
  },

  kills: {
    id: 'M13',
    what: 'kills and power cuts',
    checks: ['id'],
    async live({ time, app, buyers, random, note }) {
      for (let i = 0; i < 8; i++) {
        const power = random.chance(0.5)
        let isDead = false
        const kill = () => {
          if (isDead || !app.isUp()) return
          isDead = true
          note(power ? 'the power fails' : 'the process is killed')
          app.kill({ power })
        }
        // The kill comes in the middle of a handler, when the entry is taken but not finished.
        const ofChange = i % 2 === 0
        if (ofChange) app.now.handlerMs = 800
        app.now.onHandler = (_business, isChange) => {
          if (isChange === ofChange) time.after(random.pick([0, 5, 400]), kill)
        }
        void buyers.buy(`killed-${i}`)
        await time.advance(random.pick([300, 2_000, 20_000]))
        app.now.onHandler = () => {}
        app.now.handlerMs = 0
        kill()
        await time.advance(random.pick([SECOND, 90 * SECOND, 3 * HOUR]))
        app.deploy()
        await time.advance(random.between(1, 8) * HOUR)
      }
    },
  },

  deliveries: {
    id: 'M14',
    what: 'deliveries that were lost, doubled and late',
    async live({ time, deliveries, buyers, random, probes }) {
      deliveries.now.lateMs = random.pick([5 * SECOND, 10 * MINUTE])
      deliveries.now.doubled = 0.4
      deliveries.now.lost = 0.4
      for (let i = 0; i < 10; i++) void buyers.buy(`lossy-${i}`)
      await time.advance(random.between(12, 48) * HOUR)
      Object.assign(deliveries.now, { lost: 0, doubled: 0, lateMs: 0 })
      await time.advance(HOUR)
      await probes.visit()
    },
  },

  lag: {
    id: 'M15',
    what: 'reads that lagged behind their events',
    async live({ time, platform, probes, random }) {
      for (const lagMs of [300, 1_500, 4_000]) {
        platform.now.lagMs = lagMs
        await probes.visit()
        await time.advance(random.between(1, 9) * HOUR)
      }
      platform.now.lagMs = 0
    },
  },

  absence: {
    id: 'M16',
    what: 'customers who left and returned',
    async live({ time, platform, buyers, probes, random }) {
      const { uid } = buyers.buy('hidden')
      buyers.buy('leaves')
      await time.advance(HOUR)
      platform.hide(uid, 'nothing')
      await buyers.move(uid, 'purchased')
      await buyers.uninstall('leaves')
      await time.advance(random.pick([3 * HOUR, 2 * DAY]))
      platform.hide(uid, null)
      // The token works some seconds after the install.
      await probes.returns('leaves', random.pick([0, 1_000, 4_000]))
      await time.advance(HOUR)
    },
  },

  move: {
    id: 'M17',
    what: 'a subscription that moved to another business',
    async live({ time, platform, buyers, deliveries }) {
      const { uid } = buyers.buy('from')
      await time.advance(HOUR)
      buyers.all.add('into')
      await deliveries.purchase(platform.set(uid, 'into', 'purchased'), 'update')
      await time.advance(HOUR)
    },
  },

  backwards: {
    id: 'M18',
    what: 'a record dated back, with a field that moves',
    async live({ time, platform, buyers }) {
      const { uid } = buyers.buy('dated-back')
      platform.now.movingField = true
      await time.advance(2 * HOUR)
      await buyers.move(uid, 'suspended')
      platform.datedBack(uid, 3 * HOUR)
      await time.advance(3 * HOUR)
    },
  },

  nothing: {
    id: 'M19',
    what: 'quiet days',
    async live({ time, random }) {
      await time.advance(random.between(2, 3) * DAY)
    },
  },
} satisfies Record<string, FaultClass>

export const FAULTS = {
  ...FAULTS_OF_OPERATORS,
  ...FAULTS_OF_ENDS,
  ...FAULTS_OF_MACHINES,
  ...FAULTS_OF_SENDERS,
}
export type FaultName = keyof typeof FAULTS
export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[]

/** The faults of a month, in the order that the seed gives. In every tenth world a sender is at work beside them. */
export function faultsOf(seed: number): FaultName[] {
  const random = createRandom(seed)
  const left = FAULT_NAMES.filter((name) => name !== 'sender')
  const drawn = Array.from(
    { length: random.between(1, 5) },
    () => left.splice(random.between(0, left.length - 1), 1)[0] as FaultName,
  )
  return hasSender(seed) ? ['sender', ...drawn] : drawn
}

/** Whether somebody who has the delivery secret is at work in the world of this seed. */
export const hasSender = (seed: number) => seed % 10 === 0

/** Existing customers, whom the app knows by `track`. Those of an earlier fault pay again, which the platform sends. */
export async function tracked({ time, app, platform, deliveries, buyers }: World, count: number) {
  for (let i = 0; i < count; i++) {
    const [uid, business] = [`old-${i}`, `customer-${i}`]
    if (platform.subscriptions.get(uid)?.state === 'suspended') await buyers.move(uid, 'purchased')
    else platform.set(uid, business, 'purchased')
    buyers.all.add(business)
    deliveries.learn(uid)
    await time.until(app.marketplace().subscriptions.track({ subscriptionUid: uid, businessUid: business }))
  }
  // Otherwise the clock may doze until the fault begins, and nothing was read before.
  time.lookClosely(MINUTE)
}
