import type { Clock } from '../clock.js'

/** The longest slice of background work. Timers and requests of the app wait no longer than this. */
const SLICE_MS = 5

/**
 * Divides work into small slices. Work whose promises resolve at once never leaves the microtask queue and blocks the
 * process. Code that awaits `turn()` between its steps goes on at once during a slice, and after the slice in the next
 * turn of the event loop.
 */
export function createSlices(clock: Clock): { turn(): Promise<void> | undefined } {
  let beganAt = Number.NEGATIVE_INFINITY
  let next: Promise<void> | undefined

  const isOver = () => clock.monotonic() - beganAt > SLICE_MS

  async function wait(): Promise<void> {
    // Several callers wait for the same turn, and the first may use up the new slice.
    while (isOver()) {
      next ??= new Promise((resolve) =>
        setImmediate(() => {
          next = undefined
          beganAt = clock.monotonic()
          resolve()
        }),
      )
      await next
    }
  }

  return { turn: () => (isOver() ? wait() : undefined) }
}
