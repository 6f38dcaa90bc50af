import { MarketplaceError } from '../errors.js'
import type { Store, Subscription } from '../store/store.js'

/**
 * Returns `isEntitledNow(businessUid)`: the answer from the store, never one from memory. Rejects with
 * `entitlement_unknown` while the answer is not known, and when the store rejects.
 */
export function createPresentAnswer({
  store,
  answerOf,
}: {
  store: Pick<Store, 'subscriptionsOf'>
  answerOf(subscriptions: readonly Subscription[]): { entitled: boolean; known: boolean; meaning: string }
}): (businessUid: string) => Promise<boolean> {
  return async function isEntitledNow(businessUid) {
    const { entitled, known, meaning } = answerOf(await store.subscriptionsOf(businessUid))
    if (known) return entitled
    const message = `Cannot tell whether the business is entitled: ${meaning}`
    throw new MarketplaceError('entitlement_unknown', message)
  }
}
