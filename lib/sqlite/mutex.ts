import type { Slices } from '../base/waiting.js'

/** Lets one caller at a time use a connection, in the order of the calls. */
export interface Mutex {
  /** Resolves when the caller has the connection, with the function that passes it on. */
  lock(): Promise<() => void>
}

/** @param slices without them a chain of queries that never waits would not let the event loop run */
export function createMutex(slices?: Slices): Mutex {
  let last: Promise<void> = Promise.resolve()

  return {
    async lock() {
      const before = last
      let unlock = () => {}
      last = new Promise((resolve) => {
        unlock = resolve
      })
      await before
      await slices?.yieldIfOver()
      return unlock
    },
  }
}
