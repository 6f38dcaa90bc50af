import type { Store } from '../store/store.js'

/** A sample: uids have no order, so among as many there is one of the app's own items if the app has customers. */
const SAMPLE = 100

/** Passes on the items of some stored subscriptions. After a restart they show at once that none is of the app's items. */
export async function lookAtItems(
  store: Pick<Store, 'listSubscriptions'>,
  onItems: (items: (string | null)[]) => void,
  onError: (error: unknown) => void,
): Promise<void> {
  try {
    const some = await store.listSubscriptions({ limit: SAMPLE })
    onItems(some.map(({ purchasableUid }) => purchasableUid))
  } catch (error) {
    onError(error)
  }
}
