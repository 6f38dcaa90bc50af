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
  /** Calls a timer off. */
  clearTimeout(handle: unknown): void
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(callback, delayMs, keepAlive = false) {
    // Node runs what is further ahead than its limit at once.
    const timer = setTimeout(callback, Math.min(delayMs, LONGEST_TIMER_MS))
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

/**
 * The same clock, which never throws, and whose timers cannot end the process: what a callback throws, or what its
 * promise rejects with, goes to `onError`. Should the app's own clock fail, the system's stands in.
 */
export function guardedClock(clock: Clock, onError: (error: unknown) => void): Clock {
  function either<T>(own: () => T, system: () => T): T {
    try {
      return own()
    } catch (error) {
      onError(error)
      return system()
    }
  }
  return {
    // Without `either`: these two are called several times for every delivery.
    now() {
      try {
        return clock.now()
      } catch (error) {
        onError(error)
        return systemClock.now()
      }
    },
    monotonic() {
      try {
        return clock.monotonic()
      } catch (error) {
        onError(error)
        return systemClock.monotonic()
      }
    },
    setTimeout(callback, delayMs, keepAlive) {
      const run = () => {
        try {
          const result: unknown = callback()
          if (result instanceof Promise) result.catch(onError)
        } catch (error) {
          onError(error)
        }
      }
      return either(
        () => clock.setTimeout(run, delayMs, keepAlive),
        () => systemClock.setTimeout(run, delayMs, keepAlive),
      )
    },
    clearTimeout(handle) {
      either(
        () => clock.clearTimeout(handle),
        () => {},
      )
    },
  }
}
