import { type Clock, systemClock } from '../../../lib/base/clock.js'

/**
 * The system's clock with offsets: `jump` moves it as if time had passed; `leap` moves only the wall clock, as when a
 * person or a time server sets it, or while the machine sleeps. Timers keep the system's pace.
 */
export function jumpingClock(): { clock: Clock; jump(ms: number): void; leap(ms: number): void } {
  let passed = 0
  let set = 0
  return {
    clock: {
      ...systemClock,
      now: () => Date.now() + passed + set,
      monotonic: () => systemClock.monotonic() + passed,
    },
    jump(ms) {
      passed += ms
    },
    leap(ms) {
      set += ms
    },
  }
}
