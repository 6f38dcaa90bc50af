import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Problems } from '../health.js'
import type { ReadResult } from '../platform/client.js'
import type { SubscriptionRecord } from '../record.js'
import {
  type ClaimReads,
  MAX_LAPSES,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type Store,
  type Subscription,
  type SubscriptionCounts,
  type Urgency,
} from '../store/store.js'
import { adoptItems } from './adopt-items.js'
import { ownerIn } from './compare-records.js'
import { concludeRead } from './conclude-read.js'
import { type Conclusion, untouched } from './conclusion.js'
import { changeOf } from './purchase-change.js'
import { createReadLoop } from './read-loop.js'
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
  store: Pick<Store, 'claimReads' | 'finishRead' | 'renewRead' | 'adoptItems'>
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
  /** What the second loop has leased. */
  const running = new Set<ReadClaim>()
  /** Businesses whose turn is the second loop's: however many made-up ones are named for one, it gets a read between. */
  const yielding = new Set<string>()
  let requestedAt = Number.NEGATIVE_INFINITY
  let closing = false
  let claimTurn: Promise<unknown> = Promise.resolve()

  const shared = {
    concurrency,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (claim: ReadClaim) => store.renewRead(claim, leaseMs),
    read: refresh,
    giveBack,
    mayBegin: () => !pause.isOn(),
  }

  const firstReads = createReadLoop({
    ...shared,
    // Made-up ones among them must not fill the line for tokens in front of customers.
    isWaiting: () => false,
    claim: (limit) => claimOf({ limit, urgencies: [1], except: yielding }),
    onEnd(claim) {
      busy.delete(claim.subscription.businessUid)
      yielding.add(claim.subscription.businessUid)
      laterReads.wake()
    },
  })

  const laterReads = createReadLoop({
    ...shared,
    isWaiting: (claim) => claim.urgency === 0 && isWaitingForToken(claim.subscription.businessUid),
    async claim(limit) {
      const claims = await claimOf({ limit, urgencies: turns.order(hasNoSlot), choose: chooseClass() })
      if (yielding.size > 0) firstReads.wake()
      yielding.clear()
      for (const claim of claims) {
        const urgency = claim.urgency as SharedUrgency
        turns.taken(urgency, turns.order(hasNoSlot))
        running.add(claim)
      }
      return claims
    },
    onSlotFree: (claim) => running.delete(claim),
    onEnd: (claim) => busy.delete(claim.subscription.businessUid),
  })

  const loops = [firstReads, laterReads]

  /** One claim at a time, so that each sees the businesses the others have taken: one read per business. */
  function claimOf(
    options: Pick<ClaimReads, 'limit' | 'urgencies' | 'choose'> & { except?: Iterable<string> },
  ): Promise<ReadClaim[]> {
    const claimed = claimTurn.then(async () => {
      if (pause.isOn()) return []
      const except = [...busy, ...(options.except ?? [])]
      const claims = await store.claimReads({ ...options, leaseMs, except })
      for (const claim of claims) busy.add(claim.subscription.businessUid)
      return claims
    })
    claimTurn = claimed.catch(() => {})
    return claimed
  }

  /** The classes of one claim: by their turns, as if what it has taken so far were running. */
  function chooseClass(): NonNullable<ClaimReads['choose']> {
    let tried = turns.copy()
    return (due, taken) => {
      const last = taken.at(-1) as SharedUrgency | undefined
      if (last === undefined) tried = turns.copy()
      else
        tried.taken(
          last,
          tried.order((urgency) => hasNoSlot(urgency, taken.slice(0, -1))),
        )
      return tried.order((urgency) => hasNoSlot(urgency, taken)).find((urgency) => due.includes(urgency))
    }
  }

  /** One slot is never the reconcile's; nor do all wait for tokens of what nobody has asked for just now. */
  function hasNoSlot(urgency: Urgency, taken: readonly Urgency[] = []): boolean {
    if (urgency === 0) return false
    const most = Math.max(1, concurrency - 1)
    let waiting = 0
    let reconciles = taken.filter((each) => each === 4).length
    for (const claim of running) {
      if (claim.urgency === 0) continue
      if (claim.urgency === 4) reconciles++
      if (isWaitingForToken(claim.subscription.businessUid)) waiting++
    }
    return waiting >= most || (urgency === 4 && reconciles >= most)
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
    const begunAt = clock.monotonic() - MIN_READ_INTERVAL_MS
    const { result, ofCandidate } = await readFor(claim, signal)
    if (signal.aborted) return giveBack(claim)
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
    onWriting()
    if (!(await isHeld)) return
    onRead(claim, result, conclusion)
    if (requestedAt >= begunAt) wake(MIN_READ_INTERVAL_MS)
    if (finish.nextInMs !== null && finish.nextInMs < 30 * SECOND) wake(finish.nextInMs)
  }

  /** Due again at once, for whoever comes next. With the lease lost this changes nothing. */
  async function giveBack(claim: ReadClaim) {
    await store.finishRead(claim, { ...untouched(claim), nextInMs: 0 })
  }

  function wake(inMs?: number) {
    if (!closing) for (const loop of loops) loop.wake(inMs)
  }

  return {
    start() {
      for (const loop of loops) loop.start()
      adoptItems({ store, purchasableUids, clock, onError, isClosing: () => closing })
    },
    /** A read was requested: due now, or when the pause after the last read of its subscription is over. */
    requested() {
      requestedAt = clock.monotonic()
      wake()
      wake(MIN_READ_INTERVAL_MS)
    },
    async close(graceMs: number) {
      closing = true
      await Promise.all(loops.map((loop) => loop.close(graceMs)))
    },
    /** When both loops last looked for work; the older of the two. */
    lookedAt: () => Math.min(...loops.map((loop) => loop.lookedAt())),
    isPaused: pause.isOn,
    problems(counts: SubscriptionCounts): Problems {
      return { failing: [], degraded: [...pause.problems(), ...outcomes.problems(counts)] }
    },
    running: () => loops.reduce((sum, loop) => sum + loop.running(), 0),
  }
}
