import { MarketplaceError } from '../base/errors.js'
import { isStorable } from '../base/record.js'

/**
 * Throws `argument_invalid` for an identifier that a database would change, so that two identifiers never become one:
 * some libraries cut a text at NUL, and half of a surrogate pair has no form in UTF-8.
 */
export function requireStorable(row: {
  readonly id?: string
  readonly key?: string
  readonly businessUid?: string | null
  readonly subscriptionUid?: string | null
  readonly purchasableUid?: string | null
}) {
  // The names are spelled out, because this runs for every delivery: a loop over them is 3 × slower.
  refuse('id', row.id)
  refuse('key', row.key)
  refuse('businessUid', row.businessUid)
  refuse('subscriptionUid', row.subscriptionUid)
  refuse('purchasableUid', row.purchasableUid)
}

function refuse(name: string, value: string | null | undefined) {
  if (typeof value === 'string' && !isStorable(value)) {
    throw new MarketplaceError(
      'argument_invalid',
      `Cannot store ${name}: it contains NUL or half of a surrogate pair`,
    )
  }
}
