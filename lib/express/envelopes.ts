import { isUtf8 } from 'node:buffer'
import type { Envelope, Receipt } from '../base/envelope.js'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'

/** The bytes or the text of a body, or the JSON of the value that an earlier middleware parsed from it. */
export type Body = ({ bytes: Buffer } | { text: string } | { json: string }) & {
  /** The bytes as the sender sent them, before decompression; undefined if an earlier middleware left none. */
  sent?: Buffer | undefined
}

/** The most envelopes in an array. A longer array is a single unrecognised envelope. */
const MAX_ENVELOPES = 1_000
/** The most issues in the reply to an array. */
const MAX_ISSUES = 10
/** The most levels of an element that is stored as a whole. Real ones have few. */
const MAX_LEVELS = 100
/** The text in place of a value without any. */
const NOT_STORED = '"nested too deeply to be stored"'

/**
 * The envelopes of a body, and `acknowledgement`, which makes the JSON of the 200 from their receipts:
 * `{ received, id }`, for an array of 1 to 1,000 also `ids`, and the first `issues` if there are any.
 *
 * Throws `body_not_json`; `acknowledgement` throws when a receipt is missing.
 */
export function envelopesOf(text: string) {
  const value = parse(text)
  const isListed = Array.isArray(value) && value.length > 0 && value.length <= MAX_ENVELOPES
  const envelopes: Envelope[] = isListed ? value.map(asEnvelope) : [{ value, text }]
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

/** The text of a body without a byte order mark. Throws `body_not_utf8`. */
export function textOf(body: Body): string {
  if ('json' in body) return body.json
  if ('bytes' in body && !isUtf8(body.bytes)) throw notUtf8()
  const text = 'bytes' in body ? body.bytes.toString('utf8') : body.text
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

/** The value of a text. Throws `body_not_json`. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error has no cause, because the message of a SyntaxError quotes the body.
    throw unreadable('body_not_json', 'it is not JSON')
  }
}

/** An element of an array. The JSON of one with more levels would take time by the square of their number. */
function asEnvelope(value: unknown): Envelope {
  return { value, text: hasMoreLevels(value, MAX_LEVELS) ? plainJsonOf(value) : JSON.stringify(value) }
}

/**
 * The JSON of a value that an earlier middleware has parsed, perhaps by a parser that leaves bigints. `JSON.stringify` fails at
 * some thousand levels, and if the value is circular.
 */
export function jsonOf(value: unknown): string {
  return (
    stringified(value) ?? (Array.isArray(value) ? `[${value.map(elementJson).join()}]` : plainJsonOf(value))
  )
}

function elementJson(value: unknown): string {
  return stringified(value) ?? plainJsonOf(value)
}

function stringified(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, withoutBigints)
  } catch {
    return undefined
  }
}

/** The JSON of the plain values that identify an event and its subject. */
function plainJsonOf(value: unknown): string {
  return isObject(value) ? JSON.stringify(plainValuesOf(value)) : NOT_STORED
}

function hasMoreLevels(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((each) => hasMoreLevels(each, levels - 1))
}

function withoutBigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
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
