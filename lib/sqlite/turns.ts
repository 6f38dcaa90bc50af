import { nextTurn } from '../waiting.js'
/** One connection, one at a time: callers take turns in the order in which they came. */
export interface Turns {
  /** Resolves when it is the caller's turn, with the function that passes it on. */
  take(): Promise<() => void>
}

/** A chain of queries resolves without ever leaving the microtasks of one turn of the event loop. */
const SLICE_MS = 5

/** @param yields whether a turn leaves the event loop to others once `SLICE_MS` of work have been done in one go */
export function createTurns(yields: boolean): Turns {
  let last: Promise<void> = Promise.resolve()
  let sliceBegan: number | undefined

  async function leaveRoom() {
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
      if (yields) await leaveRoom()
      return pass
    },
  }
}
