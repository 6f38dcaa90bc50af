import type { Store } from '../../../lib/store/port/store.js'
import { CREATE_STORE, type PostgresStore } from '../../../lib/store-option.js'

/** A store of the test as a value of the option `store`: one with faults, of a simulated process, or with SQL beside it. */
export function storeOption(store: Store): PostgresStore {
  const option = { [CREATE_STORE]: () => store, grants: () => '' }
  return option
}

/** The store, each of whose calls `around` makes by `call`, or delays, or replaces; subscriptions apart. */
export function wrapStore(
  store: Store,
  around: (name: keyof Store, call: () => Promise<unknown>) => unknown,
): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name] as unknown
      if (typeof method !== 'function' || name === 'subscribe') return method
      return (...given: unknown[]) => around(name, () => method.apply(target, given))
    },
  })
}
