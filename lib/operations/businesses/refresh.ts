import type { Clock } from '../../base/clock.js'
import { requireIdentifier } from '../../base/record.js'
import { createRecheck } from '../../base/waiting.js'
import { type DecisionRules, isOfApp } from '../../entitlement/decide.js'
import type { Searches } from '../../entitlement/load-decision.js'
import type { Search, Store, Subscription } from '../../store/port/store.js'
import { isBehindOthers } from '../../store/subscriptions/claims.js'

/**
 * Returns `businesses.refresh(businessUid)`: requests a read of all its subscriptions and waits until they are read, have
 * failed, or time is up. Once a subscription of the business was read, it waits for those alone: anybody with the delivery
 * secret can name others. `explain` waits for the others if the answer is no. With `searches` a business of which no subscription
 * to the app was read is searched for at the platform first.
 */
export function createRefreshAndWait<Decision>(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsOf' | 'readFirst' | 'subscribe'>
  explain(businessUid: string): Promise<Decision>
  timeoutMs: number
  /** Searches the platform for subscriptions of a business; undefined where nobody does. */
  searches: Searches | undefined
  rules: Pick<DecisionRules, 'purchasableUids'>
  clock: Clock
}) {
  const { store, explain, timeoutMs, searches, rules, clock } = options
  const hasOne = (subscriptions: readonly Subscription[]) =>
    subscriptions.some((each) => isOfApp(each, rules))

  return async function refresh(given: string | number): Promise<Decision> {
    const businessUid = requireIdentifier(given, 'business_uid')
    const deadline = clock.monotonic() + timeoutMs
    const recheck = createRecheck(clock)
    let isPutFirst = false
    /** The requests to wait for, by subscription. What follows in a flood of events is not awaited. */
    let awaited: ReadonlyMap<string, number> | undefined
    const unsubscribe = store.subscribe(recheck.end)
    try {
      await store.requestRefresh({ kind: 'business', businessUid, install: null })
      let isSearching = searches !== undefined && !hasOne(await store.subscriptionsOf(businessUid))
      if (isSearching) await searches?.requestSearch?.(businessUid, 'refresh')
      for (;;) {
        // A failed read counts as done: it is tried again in the background, and the decision names the failure.
        // First the search: what it has found is stored with its answer.
        const search = isSearching ? await searches?.searchOf(businessUid) : undefined
        const subscriptions = await store.subscriptionsOf(businessUid)
        isSearching &&= !hasOne(subscriptions) && isOwed(search)
        if (!isSearching)
          awaited ??= new Map(
            subscriptions.map(({ subscriptionUid, generation }) => [subscriptionUid, generation]),
          )
        const generations = awaited
        const isReading = readOrAll(subscriptions).some(
          ({ subscriptionUid, settledGeneration, failure }) =>
            failure === null && settledGeneration < (generations?.get(subscriptionUid) ?? 0),
        )
        if (!isPutFirst && isBehindOthers(subscriptions, clock.now())) {
          isPutFirst = true
          store.readFirst(businessUid).catch(() => {})
        }
        const leftMs = deadline - clock.monotonic()
        if (!(isSearching || isReading) || leftMs <= 0) break
        await recheck.wait(leftMs)
      }
    } finally {
      unsubscribe()
    }
    return explain(businessUid)
  }
}

/** Whether the platform has not answered a search yet, and no try has failed. */
function isOwed(search: Search | undefined): boolean {
  return search?.pending === true && search.failure === null
}

/** The subscriptions that were read before, or all if none was. */
function readOrAll(subscriptions: readonly Subscription[]): readonly Subscription[] {
  const read = subscriptions.filter(({ readAt }) => readAt !== null)
  return read.length > 0 ? read : subscriptions
}
