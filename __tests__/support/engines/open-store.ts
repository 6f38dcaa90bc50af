import { systemClock } from '../../../lib/base/clock.js'
import type { Store } from '../../../lib/store/port/store.js'
import { type PostgresStore, storeFor } from '../../../lib/store-option.js'
import { onCleanUp } from '../clean-up.js'

/** The store of a value of the option `store`, not opened. Closed after the test. */
export function storeOf(option: string | PostgresStore, clock = systemClock): Store {
  const store = storeFor(option, clock)
  onCleanUp(() => store.close())
  return store
}

/** The same, open. */
export async function openedStore(...of: Parameters<typeof storeOf>): Promise<Store> {
  const store = storeOf(...of)
  await store.open()
  return store
}
