import type { Clock } from './clock.js'

/** The longest slice of background work. Timers and requests of the app wait no longer than this. */
const SLICE_MS = 5

export interface Slices {
  /**
   * Nothing to wait for while the present slice lasts. After it a promise that resolves in the next turn of the event
   * loop, where the next slice begins.
   */
  yieldIfOver(): Promise<void> | undefined
}

/**
 * Divides work into small slices. Work whose promises resolve at once never leaves the microtask queue and blocks the
 * process, so it awaits `yieldIfOver()` between its steps. A slice begins with the first step in a turn of the event loop.
 */
export function createSlices(clock: Pick<Clock, 'monotonic'>): Slices {
  let beganAt: number | undefined
  let nextTurn: Promise<void> | undefined

  return {
    yieldIfOver() {
      const now = clock.monotonic()
      if (beganAt !== undefined) return now - beganAt > SLICE_MS ? nextTurn : undefined
      beganAt = now
      nextTurn = new Promise((resolve) =>
        setImmediate(() => {
          beganAt = undefined
          resolve()
        }),
      )
      return undefined
    },
  }
}
