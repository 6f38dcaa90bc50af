import { DAY, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Decision, Health } from '../../../lib/index.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { type SkipReason, type Verdict, wordsOf } from '../world/promises.js'
import type { App } from './app.js'
import type { Buyers } from './buyers.js'
import type { Deliveries } from './deliveries.js'
import type { Ledger } from './ledger.js'
import type { Platform } from './platform.js'
import { isOfSender, type Sender } from './sender.js'

const ANSWER_WITHIN_MS = 10 * SECOND

/** Checks the app from outside, as a visitor and an operator do. */
export function createProbes(world: {
  time: VirtualClock
  app: App
  platform: Platform
  deliveries: Deliveries
  buyers: Buyers
  verdict: Verdict
  ledger: Ledger
  sender: Sender | undefined
}) {
  const { time, app, platform, deliveries, buyers, verdict, ledger, sender } = world
  let probes = 0
  /** A customer who has paid for a long time, and stops on a probe's request. */
  const PAYER = 'probe-payer'

  const health = (): Promise<Health> => time.until(app.marketplace().health())
  const explain = (business: string): Promise<Decision> => time.until(app.marketplace().explain(business))

  /** Problems other than one that a fault leaves behind: for a week after their reads that deliveries did not arrive. */
  function problemsLeft({ problems }: Health): string[] {
    const isSilent = deliveries.missedSince(time.passed() - 3 * 7 * DAY) >= 3
    return problems
      .filter((problem) => !(sender && isOfSender(problem)))
      .map(wordsOf)
      .filter((words) => !(isSilent && words.includes('without an event')))
  }

  /** Whether nothing that health reports keeps an answer from following a delivered event. A dead entry does not. */
  function isWell(found: Health): boolean {
    const left = problemsLeft(found).filter((words) => !/\bdead\b/.test(words))
    return found.status === 'ok' || (found.problems.length > 0 && left.length === 0)
  }

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
    if (!(await time.until(isDelivered))) return verdict.skipped('in', 'the delivery was lost or refused')
    time.lookClosely(ANSWER_WITHIN_MS + 4 * SECOND)
    if (!isWell(before)) {
      verdict.skipped('in', 'health is not ok')
      return void (await time.advance(ANSWER_WITHIN_MS))
    }
    if (await answers(business, expected, isNew)) {
      verdict.made('in')
      // A handler takes up to a second.
      await time.advance(3 * SECOND)
      return checkOpen('a visit', business, expected)
    }
    // A full disk may take the delivery, and not the record that its read finds.
    if (!isWell(await health())) return verdict.skipped('in', 'health is not ok')
    verdict.made('in')
    const { reason } = await explain(business)
    const did = expected ? (isNew ? 'has bought' : 'has paid again') : 'has stopped paying'
    verdict.fail('in', `health is ok, ${business} ${did}, and after 10 s the answer is ${reason}`)
  }

  function checkOpen(what: string, business: string, expected: boolean, isKnown = true) {
    // A change waits as long as its answer is not known.
    if (!isKnown) return verdict.skipped('open', 'the answer is not known')
    if (ledger.isWithoutChange(business))
      return verdict.skipped('open', 'no handler got a change of the business')
    const isOpen = app.open.get(business) ?? false
    // A change beside a new subscription that was not read yet: the handler closed the map, and no change may follow.
    if (isOpen !== expected && ledger.isWithoutAnswer(business))
      return verdict.skipped('open', 'its last change was handled while the answer was unknown')
    verdict.made('open')
    if (isOpen === expected) return
    verdict.fail('open', `after ${what}: the map of the app has ${business} ${isOpen ? 'open' : 'shut'}`)
  }

  /** Why the app cannot be expected to know the truth about a business; undefined if it can. */
  function whyUnknown(business: string): SkipReason | undefined {
    const bought = platform.of(business).filter(({ state }) => state === 'purchased')
    const isNamed = bought.some(({ uid }) => deliveries.isKnown(uid))
    if (platform.isPaying(business)) return isNamed ? undefined : 'no delivery named the purchase'
    const isProven = !platform.isRefused(business) || deliveries.isEndKnown(business)
    return isProven ? undefined : 'a refused token alone proves nothing'
  }

  async function cleanUp() {
    const { subscriptions, journal } = app.marketplace()
    for (const { uid, business, state } of platform.subscriptions.values()) {
      if (state !== 'purchased' || deliveries.isKnown(uid) || platform.isRefused(business)) continue
      await time.until(subscriptions.track({ subscriptionUid: uid, businessUid: business }))
      deliveries.learn(uid)
      time.lookClosely(MINUTE)
    }
    for (const { id } of await time.until(journal.list({ status: 'dead', limit: 1_000 }))) {
      await time.until(journal.replay(id))
      time.lookClosely(MINUTE)
    }
    await time.advance(MINUTE)
  }

  return {
    health,
    explain,

    /** Checks the answer for a business that everybody knows. */
    async expect(promised: 'healed' | 'right', business: string, expected: boolean, when: string) {
      verdict.made(promised)
      const { entitled, reason } = await explain(business)
      if (entitled === expected) return
      verdict.fail(
        promised,
        `${business} ${expected ? 'pays' : 'does not pay'}, and ${when} the answer is ${reason}`,
      )
    },
    /** Checks that nobody who pays is out, after at most an outage of the platform: it may have hidden a new purchase. */
    async expectPayers(when: string, except?: string) {
      for (const business of buyers.all) {
        if (business === except || !platform.isPaying(business)) continue
        const isShown = platform.of(business).some(({ uid }) => platform.isShownAsPaid(uid))
        if (isShown) await this.expect('healed', business, true, when)
        else verdict.skipped('healed', 'no read has shown the purchase')
      }
    },
    /** Checks that the app does not know the answer. */
    async expectUnknown(business: string, when: string) {
      verdict.made('healed')
      const { known, reason, asOf } = await explain(business)
      if (known) verdict.fail('healed', `${business}: ${when} the answer is ${reason}, as of ${asOf}`)
    },
    checkOpen,

    /** Checks that a new event is answered within seconds, unless health reports a problem. */
    async visit() {
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      const payer = platform.of(PAYER).at(-1)?.uid
      if (payer) {
        await expectAnswer(PAYER, false, buyers.move(payer, 'suspended'))
        await expectAnswer(PAYER, true, buyers.move(payer, 'purchased'))
      } else await expectAnswer(PAYER, true, buyers.buy(PAYER).isDelivered, true)
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
      const others = [...buyers.all].filter((business) => business !== PAYER)
      // Several businesses, because a failure of only one need not be the app's fault.
      for (const other of others.flatMap((business) => platform.of(business).slice(-1)).slice(0, 6)) {
        follow(deliveries.purchase(other, 'update'))
      }
      if (payer) follow(buyers.move(payer.uid, 'suspended'))
      await time.advance(20 * SECOND)
      if (payer) follow(buyers.move(payer.uid, 'purchased'))
      // A clock that dozes would delay the reads that tell an outage from a lag.
      time.lookClosely(MINUTE + 8 * SECOND)
      await time.advance(MINUTE + 8 * SECOND)
      const { status, problems } = await health()
      const isMet = status !== 'ok' || refused > 0 || !isMetByRefusing
      if (isMet) verdict.made('honest')
      else verdict.skipped('honest', 'the app has not met the fault')
      if (status === 'ok') {
        if (isMet) verdict.fail('honest', `${what} for a minute, and health is ok`)
        // When health is ok, its promises are checked too.
        await this.visit()
      } else if (!problems.some((problem) => wordsOf(problem).trim().includes(' '))) {
        verdict.fail(
          'honest',
          `${what}, and health is ${status} without a useful problem: ${JSON.stringify(problems)}`,
        )
      }
    },

    /**
     * Checks that payers are in and others are out, after everything has worked for longer than a reconcile. The operator
     * has cleaned up: purchases that no delivery named are tracked, and dead entries are replayed.
     */
    async healed({ what, misleadsHandlers = false }: { what: string; misleadsHandlers?: boolean }) {
      await cleanUp()
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      for (const business of buyers.all) {
        const expected = platform.isPaying(business)
        const why = whyUnknown(business)
        if (why) {
          verdict.skipped('healed', why)
          verdict.skipped('open', why)
          continue
        }
        verdict.made('healed')
        const { entitled, known, reason } = await explain(business)
        if (entitled !== expected) {
          const did = expected ? 'pays and is out' : 'does not pay and is in'
          verdict.fail('healed', `after ${what}: ${business} ${did} (${reason})`)
        }
        if (misleadsHandlers) {
          app.open.set(business, entitled)
          verdict.skipped('open', 'handlers got the answers of a wrong option')
        } else checkOpen(what, business, expected, known)
      }
      verdict.made('healed')
      const found = await health()
      const { status } = found
      const others = problemsLeft(found)
      if (status !== 'ok' && others.length > 0) {
        verdict.fail('healed', `after ${what}: health is ${status}: ${others.join('; ')}`)
      }
    },
  }
}

export type Probes = ReturnType<typeof createProbes>
