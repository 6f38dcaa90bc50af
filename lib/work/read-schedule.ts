import { MINUTE, SECOND } from '../clock.js'

/** Re-reads while an event promised a change that no read has shown yet: a read may lag behind its event. */
export const VERIFY_DELAYS_MS: readonly number[] = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]

/** When what was never read is read again for those who wait for the answer: shares of `freshness.waitMs`. */
export const EARLY_SHARES: readonly number[] = [0.25, 0.85]

/** Re-reads of a record that is not shown any more, before it is believed gone. */
export const MISSING_RECHECK_MS: readonly number[] = [20 * SECOND, 40 * SECOND]
