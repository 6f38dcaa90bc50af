import type { Clock } from '../clock.js'

/**
 * Deadlines that are all equally long, with one timer for all of them instead of one each: a receiver under load would
 * arm and clear tens of thousands a second. The timer is armed for the oldest deadline, and when it fires, for the oldest
 * that is left. So an item is late at its limit, not before, and not later than a timer of its own would be.
 */
export function createDeadlines<Item>(options: {
  timeoutMs: number
  clock: Clock
  /** Called once for an item that was not stopped within `timeoutMs`. Must not throw. */
  onLate(item: Item): void
}) {
  const { timeoutMs, clock, onLate } = options
  /** Every item with its deadline on the monotonic clock, the earliest first. */
  const waiting = new Map<Item, number>()
  let isArmed = false

  function arm(delayMs: number): void {
    isArmed = true
    // Never longer than the limit, whatever becomes of the clock.
    clock.setTimeout(sweep, Math.min(delayMs, timeoutMs))
  }

  function sweep(): void {
    const now = clock.monotonic()
    for (const [item, deadline] of waiting) {
      // A timer of Node may fire up to a millisecond before its time.
      if (deadline > now) {
        arm(deadline - now)
        return
      }
      waiting.delete(item)
      onLate(item)
    }
    isArmed = false
  }

  return {
    start(item: Item): void {
      waiting.set(item, clock.monotonic() + timeoutMs)
      if (!isArmed) arm(timeoutMs)
    },
    /** Nothing happens for an item that is late already, or was never started. */
    stop(item: Item): void {
      waiting.delete(item)
    },
  }
}
