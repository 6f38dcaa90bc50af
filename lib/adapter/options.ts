import type { Store } from '../store/store.js'

/**
 * How the suite comes by the stores it checks. It opens and closes every store it is given.
 *
 * @example storeConformance({ createStore: () => new MyStore(file()), reopen: ({ file }) => new MyStore(file) })
 */
export interface StoreConformanceOptions {
  /** A store over a new, empty database. Not opened. */
  createStore(): Store | Promise<Store>
  /** A new store over the data of one that the suite has closed. Not opened. Without it, those checks are left out. */
  reopen?: ((closed: Store) => Store | Promise<Store>) | undefined
  /**
   * One more store over the data of one that is open, as another process would have. Not opened. Leave it out where
   * the engine lets only one at the data; the checks of several at once are then left out.
   */
  beside?: ((open: Store) => Store | Promise<Store>) | undefined
  /** Moves the clock of these stores on, where it is the caller's; without it the suite waits real time, 250 ms at most. */
  advance?: ((ms: number) => unknown) | undefined
}
