import { type Clock, SECOND } from '../clock.js'
import { createDeadlines } from '../deadlines.js'

/** How long a lane may wait for a slot, or hold one while other lanes are due. */
export const PATIENCE_MS = SECOND
/** As many lanes are leased before a slot is free as are worked off in this time. */
const AHEAD_MS = 40

/** At most `concurrency` lanes have handlers running; the next ones wait here, leased ahead. */
export function createLaneSlots<Lane extends { hasSlot: boolean }>(options: {
  concurrency: number
  maxAhead: number
  clock: Clock
}) {
  const { concurrency, maxAhead, clock } = options
  const patience = createDeadlines(PATIENCE_MS, clock)
  const queue: (() => void)[] = []
  let inSlots = 0
  /** Moving average of the time that a lane holds its slot. */
  let slotMs = Number.POSITIVE_INFINITY

  return {
    /** Whether the lane has a slot now; false if it waited too long or lost its lease. */
    take(lane: Lane, signal: AbortSignal): boolean | Promise<boolean> {
      // The claim took longer than the lease, so the lane may be somebody else's.
      if (signal.aborted) return false
      const enterSlot = () => {
        inSlots++
        lane.hasSlot = true
      }
      if (inSlots < concurrency) {
        enterSlot()
        return true
      }
      return new Promise((resolve) => {
        const end = (has: boolean) => {
          cancelDeadline()
          signal.removeEventListener('abort', giveUp)
          const at = queue.indexOf(enter)
          if (at >= 0) queue.splice(at, 1)
          if (has) enterSlot()
          resolve(has)
        }
        const enter = () => end(true)
        const giveUp = () => end(false)
        // The lanes before it are slow, so this one goes back to the store.
        const cancelDeadline = patience.set(() => {
          slotMs = Number.POSITIVE_INFINITY
          giveUp()
        })
        signal.addEventListener('abort', giveUp, { once: true })
        queue.push(enter)
      })
    },

    leave(lane: Lane, beganAt: number) {
      const ms = Math.max(0.01, clock.monotonic() - beganAt)
      slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
      inSlots--
      lane.hasSlot = false
      queue[0]?.()
    },

    /** How many lanes to lease before a slot is free. */
    ahead: () => Math.min(maxAhead, Math.floor((concurrency * AHEAD_MS) / slotMs)),
    /** How many lanes wait for a slot. */
    waiting: () => queue.length,
    rest: patience.rest,
  }
}
