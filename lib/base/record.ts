import { z } from 'zod'
import { MarketplaceError } from './errors.js'

/**
 * The fields of a subscription record, in the order and with the notes of the interface document. A record need not
 * have all of them: see `SubscriptionRecord`.
 */
export const RECORD_FIELDS = {
  uid: 'Subscription identifier.',
  purchasable_uid: 'Identifier of the purchased item (the app).',
  buyer_uid: 'Identifier of the buyer.',
  business_uid: 'Identifier of the purchasing business.',
  purchase_currency: 'Currency code.',
  purchase_price: 'Decimal amount carried as a string with two decimals.',
  purchase_state: 'See the purchase states.',
  cancellation_date: 'Null in samples; format not given.',
  expiration_date: 'Null in samples; format not given.',
  updated_at: 'ISO 8601 UTC timestamp with milliseconds.',
  created_at: 'ISO 8601 UTC timestamp with milliseconds.',
  payment_type: 'A billing period; the value monthly is used.',
} as const

/** The further fields of a `purchasable_subscription/updated` payload (interface document). */
export const UPDATED_EVENT_FIELDS = {
  display_name: 'Code name of the app.',
  bundled_from_subscription_uid: 'Null in the sample.',
  is_active: 'Boolean.',
} as const

/**
 * Each field has its documented type, or null, which the platform may send for any field. Prices have come as numbers
 * too.
 */
interface DocumentedFields {
  /** Identifier of the buyer. */
  buyer_uid?: string | null
  /** Currency code. */
  purchase_currency?: string | null
  /** Decimal amount, with two decimals as documented. */
  purchase_price?: string | number | null
  /** The document gives no format; null in its samples. */
  cancellation_date?: string | null
  /** The document gives no format; null in its samples. */
  expiration_date?: string | null
  /** When the platform last changed the record: ISO 8601, UTC. An older record never replaces a newer one. */
  updated_at?: string | null
  /** When the subscription was created: ISO 8601, UTC. */
  created_at?: string | null
  /** A billing period, such as `monthly`. */
  payment_type?: string | null
  /** Code name of the app. Only in the data of `purchasable_subscription/updated`. */
  display_name?: string | null
  /** Null in the sample of the document. Only in the data of `purchasable_subscription/updated`. */
  bundled_from_subscription_uid?: string | null
  /** Only in the data of `purchasable_subscription/updated`. It decides nothing here. */
  is_active?: boolean | null
}

/**
 * A subscription as the platform sent it. The three identifiers and `purchase_state` are strings; a value without one
 * of them is not a record. Every other field may be missing, and keeps the value that the platform sent. The types of
 * the documented fields are not checked: a record with another type is still accepted.
 */
export interface SubscriptionRecord extends DocumentedFields {
  /** Identifier of the subscription. */
  uid: string
  /** Identifier of the business that bought it. */
  business_uid: string
  /** Identifier of the purchased item: see the option `app.purchasableUid`. */
  purchasable_uid: string
  /** As the platform sent it: a documented state or any other text. Only `canonicalState` and `grants` interpret it. */
  purchase_state: string
  [field: string]: unknown
}

/**
 * A full record in an event. An event only announces a change, which is then read from the platform. So only the two
 * identifiers are required; compare `SubscriptionRecord`, which is read from the platform.
 */
export interface AnnouncedRecord extends DocumentedFields {
  /** Identifier of the subscription. */
  uid: string
  /** Identifier of the business that bought it. */
  business_uid: string
  /** Null when the platform sent none, or a value that cannot be an identifier. */
  purchasable_uid: string | null
  /** As the platform sent it; null when it is not a text. */
  purchase_state: string | null
  [field: string]: unknown
}

/**
 * Not stated by the document; we chose a length that fits an index of every database and every identifier seen so
 * far.
 */
export const MAX_IDENTIFIER_LENGTH = 255

/** C0 with NUL, DEL and C1. */
const CONTROL = /\p{Cc}/u

/** Why `value` cannot be an identifier, or undefined when it can. Never contains the value. */
function identifierFault(value: unknown): string | undefined {
  if (typeof value === 'number') {
    // Beyond 2^53 two different identifiers would become the same number.
    return Number.isSafeInteger(value)
      ? undefined
      : 'expected an identifier, got a number that is not a safe integer'
  }
  if (value === undefined || value === null || value === '') return 'expected an identifier, got none'
  if (typeof value !== 'string') return 'expected an identifier, got neither a string nor a number'
  if (value.length > MAX_IDENTIFIER_LENGTH) {
    return `expected an identifier of at most ${MAX_IDENTIFIER_LENGTH} characters`
  }
  if (CONTROL.test(value) || !value.isWellFormed())
    return 'expected an identifier without control characters or lone surrogates'
  return undefined
}

/**
 * An identifier as a string, in any format (it need not be a UUID). A number becomes a string. Nothing is trimmed or
 * normalised, so two different identifiers stay different.
 */
export const identifier = z.unknown().transform((value, { issues }): string => {
  const fault = identifierFault(value)
  if (fault === undefined) return String(value)
  // Not `addIssue`: it made a refusal 3 × slower, and the record schema refuses every update notice first.
  issues.push({ code: 'custom', message: fault, input: value })
  return z.NEVER
})

/** An optional identifier: null when the platform sent none, or a value that cannot be an identifier. */
export const optionalIdentifier = z
  .unknown()
  .optional() // without it zod refuses a missing key before the transform runs
  .transform(identifierOf)

/** The one rule for identifiers: a fit text as it is, a safe integer as text, and null for every other value. */
export function identifierOf(value: unknown): string | null {
  return identifierFault(value) === undefined ? String(value) : null
}

/** `value` as an identifier, for the argument `name`. Throws `argument_invalid`. */
export function requireIdentifier(value: unknown, name: string): string {
  const fault = identifierFault(value)
  if (fault === undefined) return String(value)
  throw new MarketplaceError('argument_invalid', `Cannot use ${name}: ${fault}`)
}

/**
 * A record read from the platform. Only the required fields are checked; further values are never examined, however
 * deep.
 */
const subscriptionRecord = z.looseObject({
  uid: identifier,
  business_uid: identifier,
  purchasable_uid: identifier,
  purchase_state: z.string(),
})

/** The schema of a record in an event; see `AnnouncedRecord`. */
export const announcedRecord: z.ZodType<AnnouncedRecord> = z.looseObject({
  uid: identifier,
  business_uid: identifier,
  purchasable_uid: optionalIdentifier,
  purchase_state: z
    .unknown()
    .optional()
    .transform((value) => (typeof value === 'string' ? value : null)),
})

/**
 * A copy of the record in `value`: identifiers become strings, every other field stays unchanged, and a `__proto__` key
 * is left out. Undefined when `value` is not an object, or lacks a usable `uid`, `business_uid`, `purchasable_uid` or
 * `purchase_state`. Never throws for JSON values.
 */
export function parseRecord(value: unknown): SubscriptionRecord | undefined {
  const result = subscriptionRecord.safeParse(value)
  return result.success ? result.data : undefined
}

/** Whether every database can store the text: PostgreSQL refuses NUL, and half of a surrogate pair is not valid UTF-8. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

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

/** A text made storable. For states and texts for people; identifiers that are not storable are refused instead. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** `updated_at` as ms since 1970; NaN when it is missing or unreadable, so that no comparison holds. */
export function updatedAtMs({ updated_at }: SubscriptionRecord): number {
  if (typeof updated_at !== 'string') return Number.NaN
  // The platform's times are UTC. JavaScript reads a time without an offset as local time.
  // `$` stands first, so that a text of colons is searched once from its end, and not from each of them.
  const hasOffset = !/$(?<=\d\d:\d\d[\d:.]*)/.test(updated_at) || /[+-]\d\d:\d\d$/.test(updated_at)
  return Date.parse(hasOffset ? updated_at : `${updated_at}Z`)
}
