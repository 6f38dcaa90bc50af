import type { Decision, Health } from '../../../lib/index.js'
import type { App } from './app.js'
import type { Buyers } from './buyers.js'
import { ANSWER_WITHIN_MS, type Deliveries } from './deliveries.js'
import { MINUTE, SECOND } from './durations.js'
import type { Verdict } from './invariants.js'
import type { Platform } from './platform.js'
import type { Time } from './time.js'

/** Checks the app from outside, as a visitor and an operator do. */
export function createProbes(world: {
  time: Time
  app: App
  platform: Platform
  deliveries: Deliveries
  buyers: Buyers
  verdict: Verdict
}) {
  const { time, app, platform, deliveries, buyers, verdict } = world
  let probes = 0
  /** A customer who has paid for a long time, and stops on a probe's request. */
  const PAYER = 'probe-payer'

  const health = (): Promise<Health> => time.until(app.marketplace().health())
  const explain = (business: string): Promise<Decision> => time.until(app.marketplace().explain(business))

  /** Asks every half second until the answer is the expected one; false if it is not by the deadline. */
  async function answers(business: string, expected: boolean, isNew: boolean): Promise<boolean> {
    const until = time.passed() + ANSWER_WITHIN_MS
    for (;;) {
      const { entitled, known, reason } = await explain(business)
      if (entitled === expected) return true
      if (isNew && known) verdict.fail('in', `${business} has just bought, and the answer is no: ${reason}`)
      if (time.passed() >= until) return false
      await time.advance(SECOND / 2)
    }
  }

  /** A business buys, pays or stops paying. If health was ok, the answer must follow. */
  async function expectAnswer(
    business: string,
    expected: boolean,
    isDelivered: Promise<boolean>,
    isNew = false,
  ): Promise<void> {
    const before = await health()
    if (!(await time.until(isDelivered))) return
    time.lookClosely(ANSWER_WITHIN_MS + SECOND)
    if (before.status !== 'ok') return void (await time.advance(ANSWER_WITHIN_MS))
    if (await answers(business, expected, isNew)) return
    const { reason } = await explain(business)
    const did = expected ? (isNew ? 'has bought' : 'has paid again') : 'has stopped paying'
    verdict.fail('in', `health is ok, ${business} ${did}, and after 10 s the answer is ${reason}`)
  }

  return {
    health,
    explain,

    /** Checks that a new event is answered within seconds, unless health reports a problem. */
    async visit({ buying = true } = {}) {
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      const payer = platform.of(PAYER).at(-1)?.uid
      if (payer) {
        await expectAnswer(PAYER, false, buyers.move(payer, 'suspended'))
        await expectAnswer(PAYER, true, buyers.move(payer, 'purchased'))
      } else await expectAnswer(PAYER, true, buyers.buy(PAYER).isDelivered, true)
      if (!buying) return
      const business = `probe-${probes++}`
      await expectAnswer(business, true, buyers.buy(business).isDelivered, true)
    },

    /**
     * A former customer installs the app and buys again. The platform gives tokens for the customer only some moments
     * later.
     */
    async returns(business: string, tokensAfterMs: number) {
      const { isDelivered } = buyers.comeBack(business, tokensAfterMs)
      await expectAnswer(business, true, isDelivered, true)
    },

    /**
     * An event meets the fault. A minute later health must report it. Some faults only refuse deliveries
     * (`isMetByRefusing`): with a full disk, SQLite may still have room in its file. The app has not met such a fault
     * while every delivery succeeds.
     */
    async trouble(what: string, { isMetByRefusing = false } = {}) {
      let refused = 0
      const follow = (taken: Promise<boolean>) =>
        void taken.then((isTaken) => {
          if (!isTaken) refused++
        })
      const payer = platform.of(PAYER).at(-1)
      const others = [...buyers.businesses].filter((business) => business !== PAYER)
      // Several businesses, because a failure of only one need not be the app's fault.
      for (const other of others.flatMap((business) => platform.of(business).slice(-1)).slice(0, 6)) {
        follow(deliveries.purchase(other, 'update'))
      }
      if (payer) follow(buyers.move(payer.uid, 'suspended'))
      await time.advance(20 * SECOND)
      if (payer) follow(buyers.move(payer.uid, 'purchased'))
      await time.advance(MINUTE + 5 * SECOND)
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      const { status, problems } = await health()
      if (status === 'ok') {
        const isMet = refused > 0 || !isMetByRefusing
        if (isMet) verdict.fail('honest', `${what} for a minute, and health is ok`)
        // When health is ok, its promises are checked too.
        await this.visit()
      } else if (!problems.some((words) => words.trim().includes(' '))) {
        verdict.fail(
          'honest',
          `${what}, and health is ${status} without a useful problem: ${JSON.stringify(problems)}`,
        )
      }
    },

    /** Checks that payers are in and others are out, after everything has worked for longer than a reconcile. */
    async healed(what: string) {
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      for (const business of buyers.businesses) {
        const expected = platform.isPaying(business)
        const paid = platform.of(business).filter(({ state }) => state === 'purchased')
        // The app cannot know of an event that was never delivered.
        if (expected && !paid.some(({ uid }) => deliveries.isKnown(uid))) continue
        if (platform.isRefused(business) && !deliveries.isUninstallKnown(business)) continue
        const { entitled, reason } = await explain(business)
        if (entitled === expected) continue
        const did = expected ? 'pays and is out' : 'does not pay and is in'
        verdict.fail('healed', `after ${what}: ${business} ${did} (${reason})`)
      }
      const { status, problems } = await health()
      const others = problems.filter((words) => !/\bdead\b/.test(words))
      if (status !== 'ok' && others.length > 0) {
        verdict.fail('healed', `after ${what}: health is ${status}: ${others.join('; ')}`)
      }
    },
  }
}

export type Probes = ReturnType<typeof createProbes>
