import { MarketplaceError } from '../errors.js'

/** Two identifiers must not be kept as one: some libraries cut at NUL, and half of a surrogate pair is no UTF-8. */
export function refuseUnfit(row: object) {
  for (const [name, value] of Object.entries(row)) {
    if (NAMES_OF_IDENTIFIERS.has(name) && typeof value === 'string' && /[\0\p{Cs}]/u.test(value)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot keep ${name}: it has NUL or half of a surrogate pair`,
      )
    }
  }
}

const NAMES_OF_IDENTIFIERS = new Set(['id', 'key', 'businessUid', 'subscriptionUid', 'purchasableUid'])
