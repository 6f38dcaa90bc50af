import type { Clock } from './clock.js'
import { createLine } from './line.js'

/**
 * Deadlines of one length behind one timer, which waits for the oldest deadline that is left. A deadline fires no later
 * than with a timer of its own; see docs/decisions/one-timer-linked-lines.md.
 */
export function createDeadlines(ms: number, clock: Clock) {
  const open = createLine<{ at: number; onLate(): void }>()
  let timer: unknown
  let isArmed = false

  function arm() {
    const oldest = open.first()
    isArmed = oldest !== undefined
    // Never longer than the limit, even if the clock goes wrong.
    if (oldest) timer = clock.setTimeout(sweep, Math.min(ms, Math.max(0, oldest.at - clock.monotonic())))
  }

  function sweep() {
    const now = clock.monotonic()
    try {
      // A timer of Node may fire up to a millisecond early.
      for (let oldest = open.first(); oldest && oldest.at <= now; oldest = open.first()) {
        open.removeFirst()
        oldest.onLate()
      }
    } finally {
      arm()
    }
  }

  return {
    /** Calls `onLate` after `ms`, once; returns a function that cancels the deadline. */
    set(onLate: () => void): () => void {
      const cancel = open.add({ at: clock.monotonic() + ms, onLate })
      if (!isArmed) arm()
      return cancel
    },
    /** Clears the timer if no deadline is open. Otherwise it stays armed, because the next call is likely soon. */
    rest() {
      if (open.first()) return
      clock.clearTimeout(timer)
      isArmed = false
    },
  }
}
