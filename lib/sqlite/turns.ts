import { nextTurn } from '../waiting.js'

/** A connection has one user at a time. Callers take turns in the order of their calls. */
export interface Turns {
  /** Resolves when the caller has the turn, with the function that passes it on. */
  take(): Promise<() => void>
}

/** Without a bound a chain of queries would never leave the microtasks of one turn of the event loop. */
const SLICE_MS = 5

/** @param yields whether a turn first lets the event loop run, once `SLICE_MS` of work were done in a row */
export function createTurns(yields: boolean): Turns {
  let last: Promise<void> = Promise.resolve()
  let sliceBegan: number | undefined

  async function yieldIfLong() {
    const now = performance.now()
    if (sliceBegan === undefined) {
      sliceBegan = now
      setImmediate(() => {
        sliceBegan = undefined
      })
    } else if (now - sliceBegan > SLICE_MS) {
      await nextTurn()
    }
  }

  return {
    async take() {
      const before = last
      let pass = () => {}
      last = new Promise((resolve) => {
        pass = resolve
      })
      await before
      if (yields) await yieldIfLong()
      return pass
    },
  }
}
