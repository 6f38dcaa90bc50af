import { fullJitter, spread } from '../../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import type { SearchResult } from '../../platform/find-subscriptions.js'
import type { SearchClaim, SearchFinish, Store } from '../../store/port/store.js'
import { writeWhileLeased } from '../leases/lease.js'
import { createLeaseLoop } from '../leases/lease-loop.js'

/** The searches that run at once. One of them is left to those that the app has asked for. */
const CONCURRENCY = 2
/** The first pause after a failed search, and the longest. */
const PAUSE_MS = { first: SECOND, longest: 5 * MINUTE }
/** The interval is spread by this share, so that businesses that were searched together do not come back together. */
const SPREAD = 0.1

/**
 * Asks the platform for the subscriptions of businesses that have none in the store, with the option
 * `platform.findSubscriptions`. What it finds is read as if `track` had named it. Anybody with the delivery secret can make up
 * installs, so of what only installs have requested one search runs at a time.
 */
export function createSearcher(options: {
  store: Pick<Store, 'claimSearches' | 'renewSearch' | 'finishSearch'>
  find(businessUid: string, signal: AbortSignal): Promise<SearchResult>
  /** Whether all reads of the platform pause. */
  isPaused(): boolean
  reconcileEveryMs: number
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  random?: () => number
  /** Called after each failed search. */
  onFailed?(failed: Extract<SearchResult, { kind: 'failed' }>): void
  onError(error: unknown): void
}) {
  const { store, find, isPaused, reconcileEveryMs, leaseMs, clock } = options
  const { random = Math.random, onFailed = () => {} } = options

  const loop = createLeaseLoop<SearchClaim>({
    ...options,
    concurrency: CONCURRENCY,
    async claim(limit, others) {
      if (isPaused()) return { items: [], isAll: true }
      const ofInstalls = others.filter(({ isAsked }) => !isAsked).length
      const installLimit = Math.max(0, CONCURRENCY - 1 - ofInstalls)
      const items = await store.claimSearches({ limit, installLimit, leaseMs })
      return { items, isAll: items.length < limit }
    },
    run: (claim, lease) => (isPaused() ? giveBack(claim) : search(claim, lease.signal)),
    giveBack,
    renew: (claim) => store.renewSearch(claim, leaseMs),
  })

  async function search(claim: SearchClaim, signal: AbortSignal) {
    const result = await find(claim.id, signal)
    if (signal.aborted) return giveBack(claim)
    const finish = conclude(claim, result)
    await writeWhileLeased(() => store.finishSearch(claim, finish), signal, clock)
    if (result.kind === 'failed') onFailed(result)
    // It may have been requested again meanwhile.
    loop.wake(SECOND)
    if (finish.kind !== 'untried') loop.wake(finish.nextInMs)
  }

  function conclude({ failures }: SearchClaim, result: SearchResult): SearchFinish {
    if (result.kind === 'failed') {
      const nextInMs = fullJitter(failures, PAUSE_MS.first, PAUSE_MS.longest, random)
      return { kind: 'failed', failure: result.code, nextInMs }
    }
    const nextInMs = spread(reconcileEveryMs, SPREAD, random)
    if (result.kind === 'refused') return { kind: 'answered', found: [], failure: result.code, nextInMs }
    return { kind: 'answered', found: result.subscriptionUids, failure: null, nextInMs }
  }

  /** Makes the search due again at once. Without the lease this changes nothing. */
  async function giveBack(claim: SearchClaim) {
    await store.finishSearch(claim, { kind: 'untried' })
  }

  return loop
}
