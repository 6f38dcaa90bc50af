import { MarketplaceError } from '../errors.js'

/** The error for what the simulated platform would not do. */
export function cannot(what: string, why: string): MarketplaceError {
  return new MarketplaceError('argument_invalid', `Cannot ${what}: ${why}`)
}
