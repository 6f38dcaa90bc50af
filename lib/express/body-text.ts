import { isUtf8 } from 'node:buffer'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'

/** The bytes of a body as text without a byte order mark. Throws `body_not_utf8`. */
export function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw notUtf8()
  return withoutBom(bytes.toString('utf8'))
}

export function withoutBom(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

export function notUtf8(): MarketplaceError {
  return unreadable('body_not_utf8', 'it is not valid UTF-8')
}

export function tooLarge(limitBytes: number): MarketplaceError {
  return unreadable('body_too_large', `it is larger than ${limitBytes} bytes`)
}

/** The error for a body that cannot be read. `why` must not contain the body. */
export function unreadable(code: ErrorCode, why: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError(code, `Cannot read the body of the delivery: ${why}`, { cause })
}
