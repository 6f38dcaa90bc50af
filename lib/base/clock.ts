export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/**
 * The time source and timers of everything in this package; tests pass their own.
 *
 * `now` is for people and for comparison with dates of the platform. Leases, deadlines and short pauses use `monotonic`,
 * so that setting the wall clock neither ends nor extends them. Ages use both: see `createAgingTime`.
 */
export interface Clock {
  /** The wall clock: milliseconds since 1970, UTC. It may leap in both directions. */
  now(): number
  /** Milliseconds since a fixed moment in the past. Never leaps, never goes back. May stand still while the machine sleeps. */
  monotonic(): number
  /** Runs `callback` once after `delayMs`; the handle goes to `clearTimeout`. Does not keep the process alive. */
  setTimeout(callback: () => void, delayMs: number): unknown
  /** Calls a timer off. */
  clearTimeout(handle: unknown): void
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node runs a timer beyond this limit at once.
  setTimeout: (callback, delayMs) => setTimeout(callback, Math.min(delayMs, LONGEST_TIMER_MS)).unref(),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
}

/** A leap of the wall clock: it has moved by more than this against the monotonic clock. */
export const LEAP_MS = SECOND

/**
 * Milliseconds by which answers, tokens and pauses age: the larger of what has passed by the wall clock and by the
 * monotonic one, which stands still while a machine sleeps. It never goes back.
 */
export function createAgingTime(clock: Pick<Clock, 'now' | 'monotonic'>): () => number {
  let ahead = clock.now() - clock.monotonic()
  let slept = 0
  return () => {
    const monotonic = clock.monotonic()
    const leapt = clock.now() - monotonic - ahead
    if (Math.abs(leapt) > LEAP_MS) {
      ahead += leapt
      slept += Math.max(0, leapt)
    }
    return monotonic + slept
  }
}

/**
 * Returns whether the wall clock has leapt forward since the last call: the machine may have slept, while the monotonic clock
 * stood still, and others have taken over what this process holds.
 */
export function createSleepWatch(clock: Pick<Clock, 'now' | 'monotonic'>): () => boolean {
  const age = createAgingTime(clock)
  const slept = () => age() - clock.monotonic()
  let before = slept()
  return () => {
    const now = slept()
    const hasSlept = now - before > LEAP_MS
    before = now
    return hasSlept
  }
}

/** The clock of an app, with `now` in place of a missing `monotonic`. */
export function withMonotonic(clock: Clock): Clock {
  return typeof clock.monotonic === 'function'
    ? clock
    : {
        now: () => clock.now(),
        monotonic: () => clock.now(),
        setTimeout: (callback, delayMs) => clock.setTimeout(callback, delayMs),
        clearTimeout: (handle) => clock.clearTimeout(handle),
      }
}

/**
 * The same clock, made safe: it never throws, and its timers cannot end the process. `onError` gets every error that a
 * callback throws and every rejection of its promise. If the app's own clock fails, the system clock replaces it.
 * `around` runs each callback.
 */
export function guardedClock(
  clock: Clock,
  onError: (error: unknown) => void,
  around: (callback: () => unknown) => unknown = (callback) => callback(),
): Clock {
  function either<T>(own: () => T, system: () => T): T {
    try {
      return own()
    } catch (error) {
      onError(error)
      return system()
    }
  }
  return {
    // Without `either`: each delivery calls these two several times.
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
    setTimeout(callback, delayMs) {
      const run = () => {
        try {
          const result = around(callback)
          if (result instanceof Promise) result.catch(onError)
        } catch (error) {
          onError(error)
        }
      }
      return either(
        () => clock.setTimeout(run, delayMs),
        () => systemClock.setTimeout(run, delayMs),
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
