import type { Store } from '../../../lib/store/port/store.js'
import { CREATE_STORE, type PostgresStore } from '../../../lib/store-option.js'

/** A store of the test as a value of the option `store`: one with faults, of a simulated process, or with SQL beside it. */
export function storeOption(store: Store): PostgresStore {
  const option = { [CREATE_STORE]: () => store, grants: () => '' }
  return option
}
