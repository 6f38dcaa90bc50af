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
/** The most issues in the reply to an array. */
const MAX_ISSUES = 10
/** The text in place of a value that is nested too deeply for `JSON.stringify`. */
const TOO_DEEP = '"nested too deeply to be stored"'

/**
 * The envelopes of a body, and `acknowledgement`, which makes the JSON of the 200 from their receipts:
 * `{ received, id }`, for an array of 1 to 1,000 also `ids`, and the first `issues` if there are any.
 *
 * `text` is that of the body, undefined if an earlier middleware has `parsed` it. Throws `body_not_json`; `acknowledgement`
 * throws when a receipt is missing.
 */
export function envelopesOf(text: string | undefined, parsed: unknown) {
  const value = text === undefined ? parsed : parse(text)
  const isListed = Array.isArray(value) && value.length > 0 && value.length <= MAX_ENVELOPES
  const envelopes: Envelope[] = isListed ? value.map(asEnvelope) : [{ value, text: text ?? jsonOf(value) }]
  // The acknowledgement is kept while the envelopes are stored, so it keeps none of their values.
  const count = envelopes.length

  function acknowledgement(receipts: readonly Receipt[]): string {
    if (receipts.length !== count) {
      throw new Error(`accept returned ${receipts.length} receipts for ${count} envelopes`)
    }
    return isListed ? receiptsText(receipts) : receiptText(receipts)
  }

  return { envelopes, acknowledgement }
}

/** The text of a body without a byte order mark; undefined if an earlier middleware has parsed it. Throws `body_not_utf8`. */
export function textOf(body: Body): string | undefined {
  if ('parsed' in body) return undefined
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

function asEnvelope(value: unknown): Envelope {
  return { value, text: jsonOf(value) }
}

/** The JSON of a value. One that is nested too deeply keeps the plain values that identify an event and its subject. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? TOO_DEEP
  } catch {
    return isObject(value) ? JSON.stringify(plainValuesOf(value)) : TOO_DEEP
  }
}

function plainValuesOf({ entity_name, event_type, data }: Record<string, unknown>) {
  const plain = Object.entries(isObject(data) ? data : {}).filter(([, field]) => PLAIN.includes(typeof field))
  const names = { entity_name, event_type }
  const isNamed = Object.values(names).every((name) => PLAIN.includes(typeof name))
  return { ...(isNamed ? names : {}), data: Object.fromEntries(plain) }
}

const PLAIN: readonly string[] = ['string', 'number', 'boolean']

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function receiptText([receipt]: readonly Receipt[]): string {
  const { id, issues } = receipt as Receipt
  return JSON.stringify(issues?.length ? { received: true, id, issues } : { received: true, id })
}

function receiptsText(receipts: readonly Receipt[]): string {
  const ids = receipts.map(({ id }) => id)
  const all = receipts.flatMap((receipt, i) => (receipt.issues ?? []).map((issue) => `[${i}] ${issue}`))
  const issues = all.slice(0, MAX_ISSUES)
  if (all.length > MAX_ISSUES) issues.push(`and ${all.length - MAX_ISSUES} more`)
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
