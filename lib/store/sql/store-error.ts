import { MarketplaceError, messageOf } from '../../base/errors.js'

/** The error for callers of the store: one of this package, with the message of the driver. */
export function asStoreError(error: unknown, cannot: string): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  return new MarketplaceError('store_unavailable', `${cannot}: ${messageOf(error)}`, { cause: error })
}
