import { fullJitter } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Problems } from '../health.js'
import type { ReadResult } from '../platform/client.js'
import type { SubscriptionRecord } from '../record.js'
import {
  MAX_LAPSES,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type Store,
  type Subscription,
  type SubscriptionCounts,
  type Urgency,
} from '../store/store.js'
import { sleep } from '../waiting.js'
import { ownerIn } from './compare-records.js'
import { concludeRead } from './conclude-read.js'
import { type Conclusion, untouched } from './conclusion.js'
import { createLeaseLoop, type LeaseLoop } from './lease-loop.js'
import { changeOf } from './purchase-change.js'
import { createReadOutcomes } from './read-outcomes.js'
import { createReadPause } from './read-pause.js'
import { createReadTurns, type SharedUrgency } from './read-turns.js'
import { writeWhileLeased } from './write-while-leased.js'

/**
 * Keeps what the store knows equal to what the platform says. Level-triggered: an event only makes a subscription due,
 * and what is read decides. The same column brings back retries, verifications and the regular reconcile.
 *
 * What was asked for goes before what is routine. Subscriptions that an event named and nobody has read yet have a loop of
 * their own, so that a flood of made-up ones cannot hold back those of customers; the other loop shares its slots among
 * the classes, and the reconcile never has all of them.
 */
export function createRefresher(options: {
  store: Pick<Store, 'claimRead' | 'finishRead' | 'renewRead' | 'adoptItems'>
  read(request: { subscriptionUid: string; businessUid: string; signal: AbortSignal }): Promise<ReadResult>
  /** Whether reads for the business wait for its token: a slow token endpoint must not hold up those that have one. */
  isWaitingForToken(businessUid: string): boolean
  stateOf(record: SubscriptionRecord): string
  entitledBy(subscriptions: Subscription[], now: number): boolean
  /** The app's own items: what was remembered of another item that is one of these now is read. */
  purchasableUids: readonly string[]
  concurrency: number
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  reconcileEveryMs: number
  /** How long callers wait for a read of what was just announced. */
  waitMs: number
  clock: Clock
  random?: () => number
  /** Told of every read: its subscription, result and conclusion. */
  onRead?(claim: ReadClaim, result: ReadResult, conclusion: Conclusion): void
  onError(error: unknown): void
}) {
  const {
    store,
    read,
    isWaitingForToken,
    stateOf,
    entitledBy,
    purchasableUids,
    concurrency,
    leaseMs,
    renewEveryMs,
    pollMs,
    reconcileEveryMs,
    waitMs,
  } = options
  const { clock, random = Math.random, onRead = () => {}, onError } = options
  const busy = new Set<string>()
  const outcomes = createReadOutcomes({ clock })
  const turns = createReadTurns()
  const pause = createReadPause(clock)
  /** What has been read and is being written: the platform is free for the next. */
  const writing = new Set<ReadClaim>()
  /** What the second loop runs. */
  const running = new Set<ReadClaim>()
  /** Businesses whose turn is the second loop's: however many made-up ones are named for one, it gets a read between. */
  const yielding = new Set<string>()
  let closing = false
  let claimTurn: Promise<unknown> = Promise.resolve()

  const firstReads = createLoop({
    // Made-up ones among them must not fill the line for tokens in front of customers.
    isWaiting: () => false,
    claim: () => claimOf([1], yielding),
    run: (claim, signal) =>
      refresh(claim, signal, () => firstReads.slotFreed()).finally(() => {
        yielding.add(claim.subscription.businessUid)
        laterReads.wake()
      }),
  })

  const laterReads = createLoop({
    isWaiting: (claim) => claim.urgency === 0 && isWaitingForToken(claim.subscription.businessUid),
    async claim() {
      const order = turns.order(hasNoSlot)
      const claims = await claimOf(order)
      if (yielding.size > 0) firstReads.wake()
      yielding.clear()
      for (const claim of claims) {
        running.add(claim)
        turns.taken(claim.urgency as SharedUrgency, order)
      }
      return claims
    },
    run: (claim, signal) =>
      refresh(claim, signal, () => {
        running.delete(claim)
        laterReads.slotFreed()
      }).finally(() => running.delete(claim)),
  })

  const loops = [firstReads, laterReads]

  function createLoop(
    what: Pick<Parameters<typeof createLeaseLoop<ReadClaim>>[0], 'isWaiting' | 'claim' | 'run'>,
  ): LeaseLoop {
    return createLeaseLoop<ReadClaim>({
      ...what,
      isWaiting: (claim) =>
        (writing.has(claim) && writing.size <= concurrency) || what.isWaiting?.(claim) === true,
      concurrency,
      leaseMs,
      renewEveryMs,
      pollMs,
      clock,
      onError,
      renew: (claim) => store.renewRead(claim, leaseMs),
      run: (claim, signal) =>
        what.run(claim, signal).finally(() => {
          writing.delete(claim)
          busy.delete(claim.subscription.businessUid)
        }),
    })
  }

  /** One claim at a time, so that each sees the businesses the others have taken: one read per business. */
  function claimOf(urgencies: readonly Urgency[], except: Iterable<string> = []): Promise<ReadClaim[]> {
    const claimed = claimTurn.then(async () => {
      if (pause.isOn()) return []
      const found = await store.claimRead({ leaseMs, except: [...busy, ...except], urgencies })
      if (found) busy.add(found.subscription.businessUid)
      return found ? [found] : []
    })
    claimTurn = claimed.catch(() => {})
    return claimed
  }

  /** One slot is never the reconcile's; nor do all wait for tokens of what nobody has asked for just now. */
  function hasNoSlot(urgency: Urgency): boolean {
    if (urgency === 0) return false
    const most = Math.max(1, concurrency - 1)
    const others = [...running].filter((claim) => claim.urgency !== 0)
    const reconciles = others.filter((claim) => claim.urgency === 4)
    const waiting = others.filter((claim) => isWaitingForToken(claim.subscription.businessUid))
    return waiting.length >= most || (urgency === 4 && reconciles.length >= most)
  }

  /** With the row's own business, and when that does not show it, with the one that was named beside it. */
  async function readFor(claim: ReadClaim, signal: AbortSignal) {
    const { subscriptionUid, businessUid } = claim.subscription
    const result = await read({ subscriptionUid, businessUid, signal })
    outcomes.note(businessUid, claim.subscription.record !== null, result)
    if (signal.aborted || !['missing', 'refused', 'token_refused'].includes(result.kind)) return { result }
    const candidate = ownerIn(result, claim.subscription) ?? claim.candidateBusinessUid
    if (candidate === null || candidate === businessUid) return { result }
    // Only a record that names this very business counts: the client discards any other.
    const ofCandidate = await read({ subscriptionUid, businessUid: candidate, signal })
    return ofCandidate.kind === 'found' ? { result: ofCandidate } : { result, ofCandidate }
  }

  /** Calls `onWriting` once the platform has answered. */
  async function refresh(claim: ReadClaim, signal: AbortSignal, onWriting: () => void) {
    if (claim.lapses >= MAX_LAPSES) {
      // Whatever ends the process here again and again, the others come first; never given up: somebody may have paid.
      await store.finishRead(claim, { ...untouched(claim), failure: 'lease_lapsed', nextInMs: 5 * MINUTE })
      return
    }
    const { result, ofCandidate } = await readFor(claim, signal)
    if (signal.aborted) {
      // Closing: due again at once, for whoever comes next. (With the lease lost this changes nothing.)
      await store.finishRead(claim, { ...untouched(claim), nextInMs: 0 })
      return
    }
    pause.after(result)
    const conclusion = concludeRead(claim, result, {
      now: clock.now(),
      random,
      reconcileEveryMs,
      waitMs,
      stateOf,
      hasServedSince: outcomes.hasServedSince,
      ofCandidate,
    })
    const { moves, ...finish } = conclusion
    const written = {
      ...finish,
      changes: moves.map((move) => changeOf(move, { subscriptionUid: claim.id, entitledBy, clock })),
    }
    const isHeld = writeWhileLeased(() => store.finishRead(claim, written), signal, clock)
    writing.add(claim)
    onWriting()
    if (!(await isHeld)) return
    onRead(claim, result, conclusion)
    wake(MIN_READ_INTERVAL_MS)
    if (finish.nextInMs !== null && finish.nextInMs < 30 * SECOND) wake(finish.nextInMs)
  }

  /** The configuration may have changed since the last start. Tried again until the store has taken it. */
  async function adoptItems(failures = 0): Promise<void> {
    try {
      await store.adoptItems(purchasableUids)
    } catch (error) {
      onError(error)
      await sleep(fullJitter(failures, SECOND, MINUTE), clock)
      if (!closing) return adoptItems(failures + 1)
    }
  }

  function wake(inMs?: number) {
    if (!closing) for (const loop of loops) loop.wake(inMs)
  }

  return {
    start() {
      for (const loop of loops) loop.start()
      adoptItems()
    },
    wake,
    async close(graceMs: number) {
      closing = true
      await Promise.all(loops.map((loop) => loop.close(graceMs)))
    },
    /** When both lanes last looked for work; the older of the two. */
    lookedAt: () => Math.min(...loops.map((loop) => loop.lookedAt())),
    isPaused: pause.isOn,
    problems: (counts: SubscriptionCounts): Problems => ({
      failing: [],
      degraded: [...pause.problems(), ...outcomes.problems(counts)],
    }),
    running: () => loops.reduce((sum, loop) => sum + loop.running(), 0),
  }
}
