import type { Clock } from '../clock.js'
import { createDeadlines } from '../deadlines.js'
import { createLine } from '../line.js'

/** Leased work that waits for a slot, in order of arrival. */
export function createSlotQueue(options: {
  /** How long work waits for a slot. */
  patienceMs: number
  clock: Clock
  /** Called when work has waited too long: the work in the slots is slow. */
  onLate(): void
}) {
  const { patienceMs, clock, onLate } = options
  const deadlines = createDeadlines(patienceMs, clock)
  const waiting = createLine<(hasSlot: boolean) => void>()

  return {
    /** True: `admit` has given it a slot, after a call of `onEnter`. False: it waited too long, or `signal` aborted. */
    wait(signal: AbortSignal, onEnter: () => void): Promise<boolean> {
      return new Promise((resolve) => {
        const end = (hasSlot: boolean) => {
          leave()
          cancelDeadline()
          signal.removeEventListener('abort', giveUp)
          if (hasSlot) onEnter()
          resolve(hasSlot)
        }
        const giveUp = () => end(false)
        const leave = waiting.add(end)
        const cancelDeadline = deadlines.set(() => {
          onLate()
          giveUp()
        })
        signal.addEventListener('abort', giveUp)
      })
    },
    /** Gives a free slot to the first in the queue. */
    admit() {
      waiting.first()?.(true)
    },
    /** Ends the wait of all without a slot. */
    clear() {
      for (const end of waiting.values()) end(false)
    },
    size: () => waiting.size,
    rest: deadlines.rest,
  }
}
