import type { Store } from '../../../lib/store/port/store.js'

/**
 * How the suite gets the stores it checks. It opens and closes every one of them.
 */
export interface StoreConformanceOptions {
  /** Returns a store over a new, empty database, not opened. */
  createStore(): Store | Promise<Store>
  /** Returns a new store over the data of a closed one, not opened. Without this option, its checks are left out. */
  reopen?: ((closed: Store) => Store | Promise<Store>) | undefined
  /**
   * Returns another store over the data of an open one, as another process would have, not opened. Leave the option out
   * if the engine allows only one process. Then the checks of two stores are left out.
   */
  beside?: ((open: Store) => Store | Promise<Store>) | undefined
  /** Advances the clock of the stores, if it is the caller's. Without this option the suite waits, 250 ms at most. */
  advance?: ((ms: number) => unknown) | undefined
}
