import { MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Store } from '../store/store.js'

/**
 * How soon `refreshAll` reads.
 *
 * @example await marketplace.refreshAll({ withinMs: 60_000 })
 */
export interface RefreshAllOptions {
  /** The longest time for all reads: they are spread evenly, over a quarter of a second for each if that is shorter. 1 second to 24 hours; default 10 minutes. */
  withinMs?: number
}

/** Makes a read of every known subscription due. */
export function createRefreshAll({ store }: { store: Pick<Store, 'refreshAll'> }) {
  return async function refreshAll(options: RefreshAllOptions = {}): Promise<{ subscriptions: number }> {
    const { withinMs = REFRESH_ALL_MS } = options ?? {}
    if (!Number.isInteger(withinMs) || withinMs < SECOND || withinMs > 24 * 60 * MINUTE)
      throw new MarketplaceError(
        'argument_invalid',
        'Cannot refresh all subscriptions: withinMs must be a whole number of milliseconds, 1 second to 24 hours',
      )
    return { subscriptions: await store.refreshAll(withinMs) }
  }
}

export const REFRESH_ALL_MS = 10 * MINUTE
