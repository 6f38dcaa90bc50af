import { fullJitter } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Store } from '../store/store.js'
import { sleep } from '../waiting.js'

/** Makes the store adopt the app's items, which may have changed since the last start. Tries again until it succeeds. */
export async function adoptItems(options: {
  store: Pick<Store, 'adoptItems'>
  purchasableUids: readonly string[]
  clock: Clock
  isClosing(): boolean
  onError(error: unknown): void
}): Promise<void> {
  const { store, purchasableUids, clock, isClosing, onError } = options
  for (let failures = 0; !isClosing(); failures++) {
    try {
      return await store.adoptItems(purchasableUids)
    } catch (error) {
      onError(error)
      await sleep(fullJitter(failures, SECOND, MINUTE), clock)
    }
  }
}
