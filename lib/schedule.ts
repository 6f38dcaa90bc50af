/** Time: the clock as a value, the delays between tries, and nothing that knows what is being tried. */

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** The time source and timers of everything in this package; tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number
  /** Runs `callback` once after `delayMs`; the handle goes to `clearTimeout`. Keeps the process alive only if told to. */
  setTimeout(callback: () => void, delayMs: number, keepAlive?: boolean): unknown
  clearTimeout(handle: unknown): void
}

export const systemClock: Clock = {
  now: Date.now,
  setTimeout(callback, delayMs, keepAlive = false) {
    const timer = setTimeout(callback, delayMs)
    return keepAlive ? timer : timer.unref()
  },
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
}

/** Full jitter: anything between 0 and `baseMs × 2^failures`, capped, and never below a tenth of the base. */
export function fullJitter(failures: number, baseMs: number, capMs: number, random = Math.random): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures, 30))
  return Math.max(baseMs / 10, Math.round(random() * ceiling))
}

/** `delayMs` spread by ± `share`, so that what was scheduled together does not come back together. */
export function spread(delayMs: number, share: number, random = Math.random): number {
  return Math.round(delayMs * (1 - share + 2 * share * random()))
}

/**
 * A Retry-After header in ms from now, clamped to [1 s, 1 h]; undefined when it is missing or says nothing.
 * Both forms of RFC 9110 are read: seconds and an HTTP date.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  if (!header) return undefined
  const text = header.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(HOUR, Math.max(SECOND, ms))
}
