import { type Clock, systemClock } from '../../lib/schedule.js'

/** The system's clock, set forward (or back) by leaps; timers keep the system's pace. */
export function jumpingClock(): { clock: Clock; jump(ms: number): void } {
  let ahead = 0
  return {
    clock: { ...systemClock, now: () => Date.now() + ahead },
    jump(ms) {
      ahead += ms
    },
  }
}
