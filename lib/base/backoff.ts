import { HOUR, SECOND } from './clock.js'

/** Full jitter: a random delay between 0 and `baseMs × 2^failures`, at most `capMs` and at least a tenth of `baseMs`. */
export function fullJitter(failures: number, baseMs: number, capMs: number, random = Math.random): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures, 30))
  return Math.max(baseMs / 10, Math.round(random() * ceiling))
}

/** `delayMs` spread by ± `share`, so that tasks scheduled together do not come back together. */
export function spread(delayMs: number, share: number, random = Math.random): number {
  return Math.round(delayMs * (1 - share + 2 * share * random()))
}

/**
 * A Retry-After header in ms from now, clamped to [1 s, 1 h]; undefined when it is missing or unreadable.
 * Reads both forms of RFC 9110: seconds and an HTTP date.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  if (!header) return undefined
  const text = header.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(HOUR, Math.max(SECOND, ms))
}
