import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { sleep } from '../waiting.js'

/**
 * Writes a result until it is written, or its lease is lost: a database that restarts for a moment must not cost a
 * whole lease. What trying again cannot mend is thrown at once.
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
      const mayPass = error instanceof MarketplaceError && error.retryable
      if (!mayPass || lost.aborted) throw error
      await sleep(fullJitter(failures, SECOND / 4, 5 * SECOND), clock, lost)
      if (lost.aborted) throw error
    }
  }
}
