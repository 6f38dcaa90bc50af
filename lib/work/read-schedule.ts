import { MINUTE, SECOND } from '../clock.js'

/** Re-reads while an event promised a change that no read has shown yet: a read may lag behind its event. */
export const VERIFY_DELAYS_MS: readonly number[] = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]

/** When what was never read is read again for those who wait for the answer: shares of `freshness.waitMs`. */
export const EARLY_SHARES: readonly number[] = [0.25, 0.85]

/** Re-reads of a record that is not shown any more, before it is believed gone. */
export const MISSING_RECHECK_MS: readonly number[] = [20 * SECOND, 40 * SECOND]

/** Of what was never read: two early reads for those who wait for the answer, then as every verification. */
export function stepAfter(
  { owed, verified }: { owed: number; verified: number },
  sinceRequestMs: number,
  waitMs: number,
): { inMs: number; next: number } | undefined {
  if (owed === 0) return undefined
  for (let step = verified; step < EARLY_SHARES.length; step++) {
    const inMs = (EARLY_SHARES[step] as number) * waitMs - sinceRequestMs
    if (inMs > 0) return { inMs, next: step + 1 }
  }
  const step = Math.max(verified, EARLY_SHARES.length)
  const inMs = VERIFY_DELAYS_MS[step - EARLY_SHARES.length]
  return inMs === undefined ? undefined : { inMs, next: step + 1 }
}

/**
 * The pause after a refusal of what was read before: 2 s, 4 s and so on up to 5 min, then a tenth of the time since the
 * first refusal, at most half an hour. So a mended mistake is found after a tenth of the time that it lasted, and a
 * business that is refused for good costs two calls an hour until refusals count as the last word.
 */
export function pauseAfterRefusal(refusals: number, sinceMs: number): number {
  const atFirst = Math.min(5 * MINUTE, SECOND * 2 ** Math.min(refusals, 30))
  return Math.min(30 * MINUTE, Math.max(atFirst, sinceMs / 10))
}

/** Ever more rarely: half of the time that it has lasted, and five minutes at least. */
export function halfSince(ms: number): number {
  return Math.max(5 * MINUTE, ms / 2)
}
