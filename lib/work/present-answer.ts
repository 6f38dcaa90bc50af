import { MarketplaceError } from '../errors.js'
import type { Store, Subscription } from '../store/store.js'

/**
 * Returns `isEntitledNow(businessUid)`: the answer from the store, never one from memory that is older than the call.
 * Calls of one turn for one business share a query, which begins after all of them. Rejects with `entitlement_unknown`
 * while the answer is not known, and when the store rejects.
 */
export function createPresentAnswer({
  store,
  answerOf,
}: {
  store: Pick<Store, 'subscriptionsOf'>
  answerOf(subscriptions: readonly Subscription[]): { entitled: boolean; known: boolean; meaning: string }
}): (businessUid: string) => Promise<boolean> {
  const beginning = new Map<string, Promise<boolean>>()

  async function look(businessUid: string): Promise<boolean> {
    await null
    beginning.delete(businessUid)
    const { entitled, known, meaning } = answerOf(await store.subscriptionsOf(businessUid))
    if (!known)
      throw new MarketplaceError(
        'entitlement_unknown',
        `Cannot tell whether the business is entitled: ${meaning}`,
      )
    return entitled
  }

  return function isEntitledNow(businessUid) {
    const shared = beginning.get(businessUid) ?? look(businessUid)
    beginning.set(businessUid, shared)
    return shared
  }
}
