import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'

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
      await pause(fullJitter(failures, SECOND / 4, 5 * SECOND), lost, clock)
      if (lost.aborted) throw error
    }
  }
}

function pause(ms: number, lost: AbortSignal, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clock.clearTimeout(timer)
      lost.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimeout(end, ms)
    lost.addEventListener('abort', end, { once: true })
  })
}
