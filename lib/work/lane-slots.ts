import { type Clock, SECOND } from '../clock.js'
import { createSlotQueue } from './slot-queue.js'

/** How long a lane may wait for a slot, or hold one while other lanes are due. */
export const PATIENCE_MS = SECOND
/** As many lanes are leased before a slot is free as are worked off in this time. */
const AHEAD_MS = 40

/** At most `concurrency` lanes have handlers running; the next ones wait here, leased ahead. */
export function createLaneSlots(options: { concurrency: number; maxAhead: number; clock: Clock }) {
  const { concurrency, maxAhead, clock } = options
  let inSlots = 0
  /** Moving average of the time that a lane holds its slot. */
  let slotMs = Number.POSITIVE_INFINITY
  const queue = createSlotQueue({
    patienceMs: PATIENCE_MS,
    clock,
    onLate() {
      slotMs = Number.POSITIVE_INFINITY
    },
  })

  return {
    /** Whether the lane has a slot now. False: it goes back to the store, because it waited too long or lost its lease. */
    take(signal: AbortSignal): boolean | Promise<boolean> {
      // The claim took longer than the lease, so the lane may be somebody else's.
      if (signal.aborted) return false
      const enter = () => {
        inSlots++
      }
      if (inSlots >= concurrency) return queue.wait(signal, enter)
      enter()
      return true
    },

    leave(beganAt: number) {
      const ms = Math.max(0.01, clock.monotonic() - beganAt)
      slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
      inSlots--
      queue.admit()
    },

    /** How many lanes to lease before a slot is free. */
    ahead: () => Math.min(maxAhead, Math.floor((concurrency * AHEAD_MS) / slotMs)),
    /** How many lanes wait for a slot. */
    waiting: queue.size,
    rest: queue.rest,
  }
}
