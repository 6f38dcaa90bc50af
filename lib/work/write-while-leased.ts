import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { sleep } from '../waiting.js'

/**
 * Repeats a failed write until it succeeds or the lease is lost: a short restart of the database must not cost a whole
 * lease. Throws an error that is not retryable at once.
 */
export async function writeWhileLeased<T>(
  write: () => Promise<T>,
  lost: AbortSignal,
  clock: Clock,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await write()
    } catch (error) {
      if (!isRetryable(error) || lost.aborted) throw error
      await sleep(writePauseMs(failures), clock, lost)
      if (lost.aborted) throw error
    }
  }
}

export function isRetryable(error: unknown): boolean {
  return error instanceof MarketplaceError && error.retryable
}

/** The pause after a failed write of a result. */
export function writePauseMs(failures: number): number {
  return fullJitter(failures, SECOND / 4, 5 * SECOND)
}
