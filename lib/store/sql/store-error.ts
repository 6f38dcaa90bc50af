import { MarketplaceError, messageOf } from '../../base/errors.js'
import type { Engine } from './engine.js'

/**
 * The error for callers of the store: one of this package, with the message of the driver. One of `isDataError` is not
 * retryable, because the database would refuse the same data again.
 */
export function asStoreError(
  error: unknown,
  cannot: string,
  isDataError: Engine['isDataError'] = () => false,
): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  const code = isDataError(error) ? 'argument_invalid' : 'store_unavailable'
  return new MarketplaceError(code, `${cannot}: ${messageOf(error)}`, { cause: error })
}
