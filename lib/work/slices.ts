import type { Clock } from '../clock.js'

/** How long background work may hold the event loop: timers and requests of the app wait no longer than this. */
const SLICE_MS = 5

/**
 * Keeps work in small slices. Work whose promises resolve at once never leaves the microtask queue, and nothing else
 * of the process runs meanwhile; whoever awaits `turn()` between steps goes on at once while the slice lasts, and after
 * it when the event loop has come round.
 */
export function createSlices(clock: Clock): { turn(): Promise<void> | undefined } {
  let beganAt = Number.NEGATIVE_INFINITY
  let next: Promise<void> | undefined

  const isOver = () => clock.monotonic() - beganAt > SLICE_MS

  async function wait(): Promise<void> {
    // Several wait for the same turn; what the first does with it may use it up.
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
