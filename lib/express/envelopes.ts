import { isUtf8 } from 'node:buffer'
import type { Envelope, Receipt } from '../base/envelope.js'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'

/** The bytes or the text of a body, or the value that an earlier middleware parsed from it. */
export type Body = ({ bytes: Buffer } | { text: string } | { parsed: unknown }) & {
  /** The bytes as the sender sent them, before decompression; undefined if an earlier middleware left none. */
  sent?: Buffer | undefined
}

/** The most envelopes in an array. A longer array is a single unrecognised envelope. */
const MAX_ENVELOPES = 1_000

/**
 * The envelopes of a body, and `acknowledgement`, which makes the JSON of the 200 from their receipts:
 * `{ received, id }`, for an array of 1 to 1,000 also `ids`, and `issues` if there are any.
 *
 * Throws `body_not_utf8` or `body_not_json`; `acknowledgement` throws when a receipt is missing.
 */
export function envelopesOf(body: Body) {
  const text = 'parsed' in body ? undefined : textOf(body)
  const value = 'parsed' in body ? body.parsed : parse(text as string)
  const isListed = Array.isArray(value) && value.length > 0 && value.length <= MAX_ENVELOPES
  const envelopes: Envelope[] = isListed ? value.map(asElement) : [{ value, text: text ?? null }]

  function acknowledgement(receipts: readonly Receipt[]): string {
    if (receipts.length !== envelopes.length) {
      throw new Error(`accept returned ${receipts.length} receipts for ${envelopes.length} envelopes`)
    }
    return isListed ? receiptsText(receipts) : receiptText(receipts)
  }

  return { text, envelopes, acknowledgement }
}

/** The text of a body without a byte order mark. */
function textOf(body: { bytes: Buffer } | { text: string }): string {
  if ('bytes' in body && !isUtf8(body.bytes)) throw notUtf8()
  const text = 'bytes' in body ? body.bytes.toString('utf8') : body.text
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error has no cause, because the message of a SyntaxError quotes the body.
    throw unreadable('body_not_json', 'it is not JSON')
  }
}

function asElement(value: unknown): Envelope {
  return { value, text: null }
}

function receiptText([receipt]: readonly Receipt[]): string {
  const { id, issues } = receipt as Receipt
  return JSON.stringify(issues?.length ? { received: true, id, issues } : { received: true, id })
}

function receiptsText(receipts: readonly Receipt[]): string {
  const ids = receipts.map(({ id }) => id)
  const issues = receipts.flatMap((receipt, i) => (receipt.issues ?? []).map((issue) => `[${i}] ${issue}`))
  return JSON.stringify({ received: true, id: ids[0], ids, ...(issues.length ? { issues } : {}) })
}

export function notUtf8(): MarketplaceError {
  return unreadable('body_not_utf8', 'it is not valid UTF-8')
}

export function tooLarge(limitBytes: number): MarketplaceError {
  return unreadable('body_too_large', `it is larger than ${limitBytes} bytes`)
}

/** The error for a body that cannot be read. `why` must not contain the body. */
export function unreadable(code: ErrorCode, why: string): MarketplaceError {
  return new MarketplaceError(code, `Cannot read the body of the delivery: ${why}`)
}
