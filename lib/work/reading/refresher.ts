import type { Clock } from '../../base/clock.js'
import {
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type Store,
  URGENCY,
  type Urgency,
} from '../../store/port/store.js'
import { createClasses } from '../leases/classes.js'
import { createLeaseLoop, type LeaseLoop } from '../leases/lease-loop.js'
import { createReadOutcomes } from './outcomes.js'
import { createRefreshSubscription, type ReadingOptions } from './refresh-subscription.js'
import { createUnreadPace } from './unread-pace.js'

/**
 * Keeps the subscriptions of the store equal to those of the platform. Level-triggered: an event only makes a
 * subscription due, and the read decides. The same column schedules retries, verifications and the regular reconcile.
 *
 * All reads share one loop, whose slots `../leases/classes.ts` distributes. It never reads two subscriptions of one business
 * at once, except that a candidate business may be tried beside one of its own, and that one which was never read delays
 * only others that were never read.
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
  const { store, isWaitingForToken, leaseMs, clock } = options
  const pace = createUnreadPace(clock)
  const outcomes = createReadOutcomes({ clock, onThrottled: pace.limited })
  const classes = createReadClasses(isWaitingForToken)
  const { refresh, giveBack } = createRefreshSubscription({ ...options, outcomes })
  let requestedAt = Number.NEGATIVE_INFINITY

  const loop: LeaseLoop<ReadClaim> = createLeaseLoop<ReadClaim>({
    ...options,
    // Forged subscriptions, which were never read, must not fill the queue for tokens ahead of customers.
    isWaiting: (claim) =>
      claim.urgency === URGENCY.event && isWaitingForToken(claim.subscription.businessUid),
    hasSeat: classes.hasSeat,
    async claim(limit, others) {
      if (outcomes.isPaused()) return { items: [], isAll: true }
      // Leases ahead count as all others do: of these what was never read may have half too, as it costs reads.
      const { choose } = classes.chooser(others, others.length + limit)
      const room = pace.room()
      let isPaced = false
      let isPutOff = false
      const items = await store.claimReads({
        limit,
        leaseMs,
        ...businessesRead(loop.items()),
        urgencies: classes.all,
        choose(due, taken) {
          const isFull = taken.filter(isOfUnread).length >= room
          isPaced = isFull && due.some(isOfUnread)
          return choose(isFull ? due.filter((urgency) => !isOfUnread(urgency)) : due, taken)
        },
        onPutOff() {
          isPutOff = true
        },
      })
      items.forEach(classes.leased)
      pace.leased(items.filter(({ urgency }) => isOfUnread(urgency)).length)
      if (isPaced) loop.wake(pace.roomInMs())
      return { items, isAll: items.length < limit && !isPutOff }
    },
    // A read that was leased ahead does not begin after the answer to another one has paused all reads.
    run: (claim, lease) =>
      outcomes.isPaused() ? giveBack(claim) : read(claim, lease.signal, lease.leaveSlot),
    giveBack,
    renew: (claim) => store.renewRead(claim, leaseMs),
  })

  async function read(claim: ReadClaim, signal: AbortSignal, onWriting: () => void) {
    const pauseBeganAt = clock.monotonic() - MIN_READ_INTERVAL_MS
    pace.began(isOfUnread(claim.urgency))
    const conclusion = await refresh(claim, signal, onWriting)
    if (!conclusion) return
    const { nextInMs } = conclusion
    // The request may be for this subscription, and is then due after its next pause.
    if (requestedAt >= pauseBeganAt) loop.wake(MIN_READ_INTERVAL_MS)
    if (nextInMs !== null) loop.wake(nextInMs)
  }

  return {
    ...loop,
    /** A read was requested: it is due now, or after the pause that follows the last read of its subscription. */
    requested() {
      requestedAt = clock.monotonic()
      loop.wake()
      loop.wake(MIN_READ_INTERVAL_MS)
    },
    ...{ isPaused: outcomes.isPaused, areHeldUp: outcomes.areHeldUp },
    /** For the searches, which call the same platform: they keep its pauses and its pace, and note what they meet. */
    ...{ noteSearch: outcomes.noteSearch, pace },
    refusal: outcomes.refusal,
    problems: outcomes.problems,
  }
}

const isOfUnread = (urgency: Urgency) => urgency === URGENCY.eventOfUnread

/** The businesses that are being read, apart from those of which only what was never read is. */
function businessesRead(claims: readonly ReadClaim[]) {
  const businessesOf = (isUnread: boolean) =>
    claims.flatMap(({ urgency, subscription }) =>
      isOfUnread(urgency) === isUnread ? subscription.businessUid : [],
    )
  return { except: businessesOf(false), exceptUnread: businessesOf(true) }
}

/**
 * Regular reads, and those of every class but the first that wait for a token, leave one seat to events of what was
 * read before.
 */
export const createReadClasses = (isWaitingForToken: (businessUid: string) => boolean) =>
  createClasses<ReadClaim, Urgency>({
    classes: Object.values(URGENCY),
    unread: URGENCY.eventOfUnread,
    isLong: (urgency) => urgency === URGENCY.reconcile,
    mayTakeLong: ({ urgency, subscription }) =>
      urgency !== URGENCY.event && isWaitingForToken(subscription.businessUid),
  })
