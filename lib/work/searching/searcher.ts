import { fullJitter, spread } from '../../base/backoff.js'
import { type Clock, SECOND } from '../../base/clock.js'
import type { SearchResult } from '../../platform/find-subscriptions.js'
import {
  MIN_SEARCH_INTERVAL_MS,
  SEARCH_PAUSE_MS,
  type SearchClaim,
  type SearchFinish,
  type Store,
} from '../../store/port/store.js'
import { writeWhileLeased } from '../leases/lease.js'
import { createLeaseLoop } from '../leases/lease-loop.js'
import type { createRefresher } from '../reading/refresher.js'

/** The searches that run at once. One of them is left to those that no install has made. */
const CONCURRENCY = 2
/** The interval is spread by this share, so that businesses that were searched together do not come back together. */
const SPREAD = 0.1

/**
 * Asks the platform for the subscriptions of businesses of which the store has none that was read, with the option
 * `platform.findSubscriptions`. What it finds is read as if `track` had named it. Anybody with the delivery secret can make up
 * installs, so of those one search runs at a time, at the pace of what was never read. A limit of the platform (429), and
 * refused credentials, pause searches and reads alike. After a limit that a search has met, the reads go on first: searches wait
 * for twice the time, so at least half of it is left to reads, whatever the limit of the app's list is.
 */
export function createSearcher(options: {
  store: Pick<Store, 'claimSearches' | 'renewSearch' | 'finishSearch'>
  find(businessUid: string, signal: AbortSignal): Promise<SearchResult>
  reads: Pick<ReturnType<typeof createRefresher>, 'isPaused' | 'noteSearch' | 'pace'>
  reconcileEveryMs: number
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  random?: () => number
  /** Called after each search that was written. */
  onSearch?(result: SearchResult): void
  onError(error: unknown): void
}) {
  const { store, find, reads, reconcileEveryMs, leaseMs, clock } = options
  const { random = Math.random, onSearch = () => {} } = options
  const { pace } = reads
  let limitedUntil = Number.NEGATIVE_INFINITY
  const isPaused = () => reads.isPaused() || clock.monotonic() < limitedUntil

  const loop = createLeaseLoop<SearchClaim>({
    ...options,
    concurrency: CONCURRENCY,
    async claim(limit, others) {
      if (isPaused()) return { items: [], isAll: true }
      const room = pace.room()
      const seats = Math.max(0, CONCURRENCY - 1 - others.filter(isOfInstall).length)
      const items = await store.claimSearches({ limit, installLimit: Math.min(seats, room), leaseMs })
      pace.leased(items.filter(isOfInstall).length)
      if (room < seats) loop.wake(pace.roomInMs())
      return { items, isAll: items.length < limit }
    },
    run: (claim, lease) => (isPaused() ? giveBack(claim) : search(claim, lease.signal)),
    giveBack,
    renew: (claim) => store.renewSearch(claim, leaseMs),
  })

  async function search(claim: SearchClaim, signal: AbortSignal) {
    pace.began(isOfInstall(claim))
    const beganAt = clock.monotonic()
    const result = await find(claim.id, signal)
    if (signal.aborted) return giveBack(claim)
    reads.noteSearch(result, beganAt)
    if (result.kind === 'throttled') limitedUntil = clock.monotonic() + 2 * (result.retryAfterMs ?? SECOND)
    const finish = conclude(claim, result)
    if (!(await writeWhileLeased(() => store.finishSearch(claim, finish), signal, clock))) return
    onSearch(result)
    // It may have been requested again meanwhile, or the answer may be too early.
    loop.wake(MIN_SEARCH_INTERVAL_MS)
    loop.wake(finish.nextInMs)
  }

  function conclude(
    { failures }: SearchClaim,
    result: SearchResult,
  ): Exclude<SearchFinish, { kind: 'untried' }> {
    const laterMs = spread(reconcileEveryMs, SPREAD, random)
    if (result.kind === 'found')
      return { kind: 'answered', found: result.subscriptionUids, failure: null, nextInMs: laterMs }
    if (result.kind === 'refused')
      return { kind: 'answered', found: [], failure: result.code, nextInMs: laterMs }
    const pauseMs = fullJitter(failures, SEARCH_PAUSE_MS.first, SEARCH_PAUSE_MS.longest, random)
    return {
      kind: 'failed',
      failure: result.code,
      nextInMs: Math.max(pauseMs, limitedUntil - clock.monotonic()),
    }
  }

  /** Makes the search due again at once. Without the lease this changes nothing. */
  async function giveBack(claim: SearchClaim) {
    await store.finishSearch(claim, { kind: 'untried' })
  }

  return loop
}

const isOfInstall = (claim: SearchClaim) => claim.isOfInstall
