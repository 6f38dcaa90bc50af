import { type Clock, SECOND } from '../clock.js'
import type { HealthProblem } from '../health.js'
import { MIN_READ_INTERVAL_MS, type ReadClaim, type Store, URGENCY } from '../store/store.js'
import { createBusinessClaims } from './business-claims.js'
import { createReadClasses } from './read-classes.js'
import { createReadLoop } from './read-loop.js'
import { createReadOutcomes } from './read-outcomes.js'
import { createReadPause } from './read-pause.js'
import { createRefreshSubscription, type ReadingOptions } from './refresh-subscription.js'

/**
 * Keeps the subscriptions of the store equal to those of the platform. Level-triggered: an event only makes a
 * subscription due, and the read decides. The same column schedules retries, verifications and the regular reconcile.
 *
 * There are two loops. Subscriptions that an event named and nobody has read yet have a loop of their own, so a flood of
 * forged ones cannot delay those of customers. The other loop shares its slots among all other classes: requested
 * reads precede routine ones, and the reconcile never has all slots.
 */
export function createRefresher(
  options: ReadingOptions & {
    store: Pick<Store, 'claimReads' | 'finishRead' | 'renewRead' | 'otherBusinesses' | 'readOthers'>
    /** Whether reads of the business wait for its token. A slow token endpoint must not delay businesses with a token. */
    isWaitingForToken(businessUid: string): boolean
    concurrency: number
    leaseMs: number
    renewEveryMs: number
    pollMs: number
    clock: Clock
    onError(error: unknown): void
  },
) {
  const { store, isWaitingForToken, concurrency } = options
  const { leaseMs, renewEveryMs, pollMs, clock, onError } = options
  const outcomes = createReadOutcomes({ clock })
  const pause = createReadPause(clock)
  const classes = createReadClasses({ concurrency, isWaitingForToken })
  const claims = createBusinessClaims({ store, leaseMs, isPaused: pause.isOn })
  const { refresh, giveBack } = createRefreshSubscription({ ...options, outcomes, pause })
  /** Businesses that the second loop may claim next: many forged subscriptions of one must not take all its reads. */
  const yielding = new Set<string>()
  let requestedAt = Number.NEGATIVE_INFINITY
  let closing = false

  const shared = {
    concurrency,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (claim: ReadClaim) => store.renewRead(claim, leaseMs),
    read,
    giveBack,
    mayBegin: () => !pause.isOn(),
  }

  const firstReads = createReadLoop({
    ...shared,
    // Forged ones among them must not fill the queue for tokens ahead of customers.
    isWaiting: () => false,
    claim: (limit) => claims.claim({ limit, urgencies: [URGENCY.eventOfUnread], except: yielding }),
    onEnd(claim) {
      claims.release(claim)
      yielding.add(claim.subscription.businessUid)
      laterReads.wake()
    },
  })

  const laterReads = createReadLoop({
    ...shared,
    isWaiting: (claim) =>
      claim.urgency === URGENCY.event && isWaitingForToken(claim.subscription.businessUid),
    async claim(limit) {
      const leased = await claims.claim({ limit, urgencies: classes.order(), choose: classes.chooser() })
      if (yielding.size > 0) firstReads.wake()
      yielding.clear()
      for (const claim of leased) classes.begin(claim)
      return leased
    },
    onSlotFree: classes.end,
    onEnd: claims.release,
  })

  const loops = [firstReads, laterReads]

  async function read(claim: ReadClaim, signal: AbortSignal, onWriting: () => void) {
    const pauseBeganAt = clock.monotonic() - MIN_READ_INTERVAL_MS
    const conclusion = await refresh(claim, signal, onWriting)
    if (!conclusion) return
    const { nextInMs } = conclusion
    // The request may be for this subscription, and is then due after its next pause.
    if (requestedAt >= pauseBeganAt) wake(MIN_READ_INTERVAL_MS)
    if (nextInMs !== null && nextInMs < 30 * SECOND) wake(nextInMs)
  }

  function wake(inMs?: number) {
    if (!closing) for (const loop of loops) loop.wake(inMs)
  }

  return {
    start() {
      for (const loop of loops) loop.start()
    },
    /** A read was requested: it is due now, or after the pause that follows the last read of its subscription. */
    requested() {
      requestedAt = clock.monotonic()
      wake()
      wake(MIN_READ_INTERVAL_MS)
    },
    async close(graceMs: number) {
      closing = true
      await Promise.all(loops.map((loop) => loop.close(graceMs)))
    },
    /** When the loops last looked for work; the older of the two times. */
    lookedAt: () => Math.min(...loops.map((loop) => loop.lookedAt())),
    isPaused: pause.isOn,
    refusal: outcomes.refusal,
    async hold() {
      await Promise.all(loops.map((loop) => loop.hold()))
    },
    resume() {
      for (const loop of loops) loop.resume()
    },
    runAlone: laterReads.runAlone,
    problems: (): HealthProblem[] => [...pause.problems(), ...outcomes.problems()],
  }
}
