import { MINUTE, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import type { Store } from '../../store/port/store.js'

/** Makes a read of every known subscription due. */
export function createRefreshAll({ store }: { store: Pick<Store, 'refreshAll'> }) {
  return async function refreshAll(options: { withinMs?: number } = {}): Promise<{ subscriptions: number }> {
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
