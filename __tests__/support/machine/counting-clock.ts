import type { Clock } from '../../../lib/base/clock.js'

/** The clock, and how many of its timers are armed: now, at most, and in all. */
export function countingClock(inner: Clock): {
  clock: Clock
  timers: { armed: number; most: number; set: number }
} {
  const open = new Set<unknown>()
  const timers = { armed: 0, most: 0, set: 0 }
  const count = () => {
    timers.armed = open.size
    timers.most = Math.max(timers.most, open.size)
  }
  const clock: Clock = {
    ...inner,
    setTimeout(callback, delayMs) {
      const handle = inner.setTimeout(() => {
        open.delete(handle)
        count()
        callback()
      }, delayMs)
      open.add(handle)
      timers.set++
      count()
      return handle
    },
    clearTimeout(handle) {
      open.delete(handle)
      count()
      inner.clearTimeout(handle)
    },
  }
  return { clock, timers }
}
