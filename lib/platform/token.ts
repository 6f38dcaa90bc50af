import type { TokenKind } from '../base/envelope.js'
import { MarketplaceError } from '../base/errors.js'

/** A token and its kind. Logs never show the value: it is neither enumerable nor part of JSON. */
export interface Token<Kind extends TokenKind = TokenKind> {
  /** `app`, `business` or `directory`. It decides which events the token registers. */
  readonly kind: Kind
  /** The secret itself. Neither logs nor JSON show it. */
  readonly value: string
}

/**
 * A token the platform issued to the app for a business (the token endpoint's `access_token`). Throws `argument_invalid`
 * for what cannot be a header.
 *
 * @example const token = appToken(process.env.APP_TOKEN)
 */
export const appToken = (value: string) => token('app', value)
/**
 * A token of a business.
 *
 * @example const token = businessToken(process.env.BUSINESS_TOKEN)
 */
export const businessToken = (value: string) => token('business', value)
/**
 * A token of a directory.
 *
 * @example const token = directoryToken(process.env.DIRECTORY_TOKEN)
 */
export const directoryToken = (value: string) => token('directory', value)

function token<const Kind extends TokenKind>(kind: Kind, value: string): Token<Kind> {
  if (!isHeaderSafe(value)) {
    throw new MarketplaceError(
      'argument_invalid',
      `Cannot use the ${kind} token: expected one line of ASCII text`,
    )
  }
  // The value is a getter: `inspect` with `showHidden` prints the value of a property that is merely not enumerable.
  return Object.freeze(
    Object.defineProperty({ kind } as { kind: Kind; value: string }, 'value', { get: () => value }),
  )
}

/** Whether a value can be a token in a header: one line of visible ASCII of at most 8 KiB. */
export function isHeaderSafe(token: unknown): token is string {
  return typeof token === 'string' && token.length <= 8_192 && /^[\x21-\x7e]+$/.test(token)
}
