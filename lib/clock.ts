export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/**
 * The time source and timers of everything in this package; tests pass their own.
 *
 * `now` is for people and for comparing with dates of the platform. Everything that measures (a lease, a deadline, a
 * pause, the age of a cached answer) uses `monotonic`, so that a wall clock that is set does not end or stretch it.
 */
export interface Clock {
  /** The wall clock: milliseconds since 1970, UTC. It may leap in both directions. */
  now(): number
  /** Milliseconds since any moment in the past. Never leaps, never goes back. */
  monotonic(): number
  /** Runs `callback` once after `delayMs`; the handle goes to `clearTimeout`. Keeps the process alive only if told to. */
  setTimeout(callback: () => void, delayMs: number, keepAlive?: boolean): unknown
  clearTimeout(handle: unknown): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(callback, delayMs, keepAlive = false) {
    const timer = setTimeout(callback, delayMs)
    return keepAlive ? timer : timer.unref()
  },
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
}

/** A clock without `monotonic` measures with its wall clock. */
export function withMonotonic(clock: Clock): Clock {
  return typeof clock.monotonic === 'function'
    ? clock
    : {
        now: () => clock.now(),
        monotonic: () => clock.now(),
        setTimeout: (callback, delayMs, keepAlive) => clock.setTimeout(callback, delayMs, keepAlive),
        clearTimeout: (handle) => clock.clearTimeout(handle),
      }
}
