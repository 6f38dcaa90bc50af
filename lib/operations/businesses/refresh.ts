import type { Clock } from '../../base/clock.js'
import { requireIdentifier } from '../../base/record.js'
import { createRecheck } from '../../base/waiting.js'
import type { Store } from '../../store/port/store.js'
import { isBehindOthers } from '../../store/subscriptions/claims.js'

/**
 * Returns `businesses.refresh(businessUid)`: requests a read of all its subscriptions and waits until they are read, have
 * failed, or time is up.
 */
export function createRefreshAndWait<Decision>(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsOf' | 'readFirst' | 'subscribe'>
  explain(businessUid: string): Promise<Decision>
  timeoutMs: number
  clock: Clock
}) {
  const { store, explain, timeoutMs, clock } = options

  return async function refresh(given: string | number): Promise<Decision> {
    const businessUid = requireIdentifier(given, 'business_uid')
    const deadline = clock.monotonic() + timeoutMs
    const recheck = createRecheck(clock)
    let isPutFirst = false
    /** The requests to wait for, by subscription. Those that follow in a flood of events are not awaited. */
    const awaited = new Map<string, number>()
    const unsubscribe = store.subscribe(recheck.end)
    try {
      await store.requestRefresh({ kind: 'business', businessUid, install: null })
      for (;;) {
        // A failed read counts as done: it is tried again in the background, and the decision names the failure.
        const subscriptions = await store.subscriptionsOf(businessUid)
        for (const { subscriptionUid, generation } of subscriptions)
          if (!awaited.has(subscriptionUid)) awaited.set(subscriptionUid, generation)
        const isReading = subscriptions.some(
          ({ subscriptionUid, settledGeneration, failure }) =>
            failure === null && settledGeneration < (awaited.get(subscriptionUid) ?? 0),
        )
        if (!isPutFirst && isBehindOthers(subscriptions, clock.now())) {
          isPutFirst = true
          store.readFirst(businessUid).catch(() => {})
        }
        const leftMs = deadline - clock.monotonic()
        if (!isReading || leftMs <= 0) break
        await recheck.wait(leftMs)
      }
    } finally {
      unsubscribe()
    }
    return explain(businessUid)
  }
}
