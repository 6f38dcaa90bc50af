import { MarketplaceError } from '../errors.js'

/** Two identifiers must not be kept as one: some libraries cut at NUL, and half of a surrogate pair is no UTF-8. */
export function refuseUnfit(row: { readonly [Name in (typeof IDENTIFIERS)[number]]?: string | null }) {
  for (const name of IDENTIFIERS) {
    const value = row[name]
    if (typeof value === 'string' && (value.includes('\0') || !isWellFormed.call(value))) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot keep ${name}: it has NUL or half of a surrogate pair`,
      )
    }
  }
}

// Every supported Node has it; the library that TypeScript compiles for has not.
const { isWellFormed } = String.prototype as unknown as { isWellFormed(this: string): boolean }

const IDENTIFIERS = ['id', 'key', 'businessUid', 'subscriptionUid', 'purchasableUid'] as const
