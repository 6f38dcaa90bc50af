import { HOUR, SECOND } from './clock.js'

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
 * A Retry-After header in ms from now, clamped to [1 s, 1 h]; undefined when it is missing or unreadable.
 * Both forms of RFC 9110 are read: seconds and an HTTP date.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  if (!header) return undefined
  const text = header.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(HOUR, Math.max(SECOND, ms))
}
