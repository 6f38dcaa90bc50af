/** Full jitter: a random delay between 0 and `baseMs × 2^failures`, at most `capMs` and at least a tenth of `baseMs`. */
export function fullJitter(failures: number, baseMs: number, capMs: number, random = Math.random): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures, 30))
  return Math.max(baseMs / 10, Math.round(random() * ceiling))
}

/** `delayMs` spread by ± `share`, so that tasks scheduled together do not come back together. */
export function spread(delayMs: number, share: number, random = Math.random): number {
  return Math.round(delayMs * (1 - share + 2 * share * random()))
}
