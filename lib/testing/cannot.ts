import { MarketplaceError } from '../base/errors.js'

/** The error for a call that the simulated platform refuses. */
export function cannot(what: string, why: string): MarketplaceError {
  return new MarketplaceError('argument_invalid', `Cannot ${what}: ${why}`)
}
