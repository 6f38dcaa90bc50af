import type { Store, Subscription } from '../store/store.js'

/**
 * Returns `isEntitledNow(businessUid)`: the answer from the store, never one from memory that is older than the call.
 * Calls of one turn for one business share a query, which begins after all of them. Rejects when the store does.
 */
export function createPresentAnswer({
  store,
  isEntitledBy,
}: {
  store: Pick<Store, 'subscriptionsOf'>
  isEntitledBy(subscriptions: readonly Subscription[]): boolean
}): (businessUid: string) => Promise<boolean> {
  const beginning = new Map<string, Promise<boolean>>()

  async function look(businessUid: string): Promise<boolean> {
    await null
    beginning.delete(businessUid)
    return isEntitledBy(await store.subscriptionsOf(businessUid))
  }

  return function isEntitledNow(businessUid) {
    const shared = beginning.get(businessUid) ?? look(businessUid)
    beginning.set(businessUid, shared)
    return shared
  }
}
