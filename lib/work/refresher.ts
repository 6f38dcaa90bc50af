import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Problems } from '../health.js'
import { newId } from '../ids.js'
import type { ReadResult } from '../platform/client.js'
import type { SubscriptionRecord } from '../record.js'
import {
  MAX_LAPSES,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type ReadFinish,
  type Store,
  type Subscription,
  subscriptionKey,
} from '../store/store.js'
import { type Conclusion, concludeRead } from './conclude-read.js'
import { createLeaseLoop, type LeaseLoop } from './lease-loop.js'
import { writeWhileLeased } from './write-while-leased.js'

/** A change as it is written into the journal and handed to `onPurchaseChange`. */
export interface PurchaseChange {
  /** The same at every try: the handler's idempotency key. */
  id: string
  business_uid: string
  subscription_uid: string
  /** The purchase_state before and after; null: never read, or no longer shown by the platform. */
  from: string | null
  to: string | null
  /** Whether the business may use the app after this change, all its subscriptions considered. */
  entitled: boolean
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** ISO 8601, UTC. */
  observedAt: string
}

/**
 * Keeps what the store knows equal to what the platform says. Level-triggered: an event only makes a subscription due,
 * and what is read decides. The same column brings back retries, verifications and the regular reconcile.
 *
 * Subscriptions never read before have a lane of their own, so that a flood of made-up ones cannot hold back those of
 * customers, and a reconcile of everything cannot hold back a new purchase.
 */
export function createRefresher(options: {
  store: Pick<Store, 'claimRead' | 'finishRead' | 'renewRead'>
  read(request: { subscriptionUid: string; businessUid: string; signal: AbortSignal }): Promise<ReadResult>
  /** Whether reads for the business wait for its token: a slow token endpoint must not hold up those that have one. */
  isWaitingForToken(businessUid: string): boolean
  stateOf(record: SubscriptionRecord): string
  entitledBy(subscriptions: Subscription[], now: number): boolean
  concurrency: number
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  reconcileEveryMs: number
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
    concurrency,
    leaseMs,
    renewEveryMs,
    pollMs,
    reconcileEveryMs,
  } = options
  const { clock, random = Math.random, onRead = () => {}, onError } = options
  const busy = new Set<string>()
  let pausedUntil = 0
  let pausedBy = ''
  let closing = false
  let claimTurn: Promise<unknown> = Promise.resolve()

  const loops = (['known', 'new'] as const).map(
    (lane): LeaseLoop =>
      createLeaseLoop<ReadClaim>({
        concurrency,
        leaseMs,
        renewEveryMs,
        pollMs,
        clock,
        onError,
        // Made-up ones among the new must not fill the line for tokens in front of customers.
        isWaiting: (claim) => lane === 'known' && isWaitingForToken(claim.subscription.businessUid),
        renew: (claim) => store.renewRead(claim, leaseMs),
        run: (claim, signal) =>
          refresh(claim, signal).finally(() => busy.delete(claim.subscription.businessUid)),
        claim() {
          // One claim at a time, so that each sees the businesses the others have taken: one read per business.
          const claimed = claimTurn.then(async () => {
            if (clock.now() < pausedUntil) return []
            const found = await store.claimRead({ leaseMs, except: [...busy], lane })
            if (found) busy.add(found.subscription.businessUid)
            return found ? [found] : []
          })
          claimTurn = claimed.catch(() => {})
          return claimed
        },
      }),
  )

  async function refresh(claim: ReadClaim, signal: AbortSignal) {
    const { subscriptionUid, businessUid } = claim.subscription
    if (claim.lapses >= MAX_LAPSES) {
      // Whatever ends the process here again and again, the others come first; never given up: somebody may have paid.
      await store.finishRead(claim, { ...untouched(claim), failure: 'lease_lapsed', nextInMs: 5 * MINUTE })
      return
    }
    const result = await read({ subscriptionUid, businessUid, signal })
    if (signal.aborted) {
      // Closing: due again at once, for whoever comes next. (With the lease lost this changes nothing.)
      await store.finishRead(claim, { ...untouched(claim), nextInMs: 0 })
      return
    }
    pauseFor(result)
    const now = clock.now()
    const conclusion = concludeRead(claim, result, { now, random, reconcileEveryMs, stateOf })
    const { moved, ...finish } = conclusion
    const written = moved ? { ...finish, change: changeOf(claim, moved) } : finish
    const isHeld = await writeWhileLeased(() => store.finishRead(claim, written), signal, clock)
    if (!isHeld) return
    onRead(claim, result, conclusion)
    wake(MIN_READ_INTERVAL_MS)
    if (finish.nextInMs !== null && finish.nextInMs < 30 * SECOND) wake(finish.nextInMs)
  }

  /** Too many calls, or our own credentials: every read would meet the same, so all wait. */
  function pauseFor(result: ReadResult) {
    const forMs =
      result.kind === 'throttled'
        ? (result.retryAfterMs ?? SECOND)
        : result.kind === 'credentials_refused'
          ? 10 * SECOND
          : 0
    if (forMs === 0) return
    pausedUntil = Math.max(pausedUntil, clock.now() + forMs)
    pausedBy =
      result.kind === 'throttled'
        ? 'the platform limits our rate'
        : "the platform refuses the app's credentials"
  }

  function changeOf(
    claim: ReadClaim,
    moved: NonNullable<Conclusion['moved']>,
  ): NonNullable<ReadFinish['change']> {
    const id = newId(clock.now())
    return {
      id,
      key: subscriptionKey(claim.id),
      payload(subscriptions, now) {
        const change: PurchaseChange = {
          id,
          business_uid: claim.subscription.businessUid,
          subscription_uid: claim.id,
          from: moved.from,
          to: moved.to,
          entitled: entitledBy(subscriptions, now),
          record: moved.record,
          observedAt: new Date(now).toISOString(),
        }
        return JSON.stringify(change)
      },
    }
  }

  function wake(inMs?: number) {
    if (!closing) for (const loop of loops) loop.wake(inMs)
  }

  return {
    start() {
      for (const loop of loops) loop.start()
    },
    wake,
    async close(graceMs: number) {
      closing = true
      await Promise.all(loops.map((loop) => loop.close(graceMs)))
    },
    /** When both lanes last looked for work; the older of the two. */
    lookedAt: () => Math.min(...loops.map((loop) => loop.lookedAt())),
    problems: (): Problems => ({
      failing: [],
      degraded: pausedUntil > clock.now() ? [`reads are paused: ${pausedBy}`] : [],
    }),
    running: () => loops.reduce((sum, loop) => sum + loop.running(), 0),
  }
}

function untouched(claim: ReadClaim): ReadFinish {
  return { settled: false, failure: claim.subscription.failure, progress: claim.progress, nextInMs: 0 }
}
