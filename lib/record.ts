import { z } from 'zod'
import { MarketplaceError } from './errors.js'

/**
 * The fields the interface document gives a subscription record, in its order and with its notes. The last three are
 * carried by the `purchasable_subscription/updated` payload only. Nothing here says that a record has them:
 * see `SubscriptionRecord`.
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

/** What the `purchasable_subscription/updated` payload carries beside `RECORD_FIELDS` (interface document). */
export const UPDATED_EVENT_FIELDS = {
  display_name: 'Code name of the app.',
  bundled_from_subscription_uid: 'Null in the sample.',
  is_active: 'Boolean.',
} as const

/** In the types of the document, and null, which the platform may send for anything. Prices have come as numbers too. */
interface DocumentedFields {
  buyer_uid?: string | null
  purchase_currency?: string | null
  purchase_price?: string | number | null
  cancellation_date?: string | null
  expiration_date?: string | null
  /** ISO 8601, UTC. */
  updated_at?: string | null
  /** ISO 8601, UTC. */
  created_at?: string | null
  payment_type?: string | null
  display_name?: string | null
  bundled_from_subscription_uid?: string | null
  is_active?: boolean | null
}

/**
 * A subscription as the platform sent it. The three identifiers and `purchase_state` are strings; without one of them
 * there is no record. Every other field may be missing and is kept as it came. Those that the document names have the
 * documented types, which are not checked: a platform that sends another type is not refused.
 */
export interface SubscriptionRecord extends DocumentedFields {
  uid: string
  business_uid: string
  purchasable_uid: string
  /** As it came: one of the documented states, or anything else; only `canonicalState` and `grants` interpret it. */
  purchase_state: string
  [field: string]: unknown
}

/**
 * A full record as an event carries it. An event only announces that the platform has something to show, so nothing but
 * the two identifiers is essential; compare `SubscriptionRecord`, which is read from the platform.
 */
export interface AnnouncedRecord extends DocumentedFields {
  uid: string
  business_uid: string
  /** Null when the platform sent none, or nothing that can be an identifier. */
  purchasable_uid: string | null
  /** As it came; null when the platform sent no text. */
  purchase_state: string | null
  [field: string]: unknown
}

/** Not stated by the document; we chose what fits an index of every database and any identifier seen so far. */
export const MAX_IDENTIFIER_LENGTH = 255

/** C0 with NUL, DEL and C1. */
const CONTROL = /\p{Cc}/u

/** Why `value` cannot be an identifier, or undefined when it can. Never contains the value. */
function identifierFault(value: unknown): string | undefined {
  if (typeof value === 'number') {
    // Beyond 2^53 two identifiers would read as one and the same number.
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
 * An identifier as a string: any format (they need not be UUIDs), numbers taken as strings. Nothing is trimmed or
 * normalised, so two different identifiers stay different.
 */
export const identifier = z.unknown().transform((value, { issues }): string => {
  const fault = identifierFault(value)
  if (fault === undefined) return String(value)
  // Not addIssue: it made a refusal three times as dear, and every update notice is first refused as a record.
  issues.push({ code: 'custom', message: fault, input: value })
  return z.NEVER
})

/** An identifier that nothing depends on: null where the platform sent none, or something that cannot be one. */
export const optionalIdentifier = z
  .unknown()
  .optional() // without it zod refuses a missing key, whatever the transform makes of undefined
  .transform(identifierOf)

/** The one rule for identifiers: a text that is fit to be one, or a safe integer as its text; else null. */
export function identifierOf(value: unknown): string | null {
  return identifierFault(value) === undefined ? String(value) : null
}

/** `value` as an identifier, for the argument `name`. Throws `argument_invalid`. */
export function requireIdentifier(value: unknown, name: string): string {
  const uid = identifierOf(value)
  if (uid !== null) return uid
  throw new MarketplaceError('argument_invalid', `Cannot use ${name}: it is not an identifier`)
}

/** A record read from the platform. Only the essentials are checked; unknown values are never looked into, however deep. */
const subscriptionRecord = z.looseObject({
  uid: identifier,
  business_uid: identifier,
  purchasable_uid: identifier,
  purchase_state: z.string(),
})

/** A record that an event carries; see `AnnouncedRecord`. */
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
 * The record in `value`: a copy with identifiers as strings and every other field as it came (a `__proto__` key is
 * left out). Undefined when `value` is not an object, or lacks a usable `uid`, `business_uid`, `purchasable_uid` or
 * `purchase_state`. Never throws for JSON values.
 */
export function parseRecord(value: unknown): SubscriptionRecord | undefined {
  const result = subscriptionRecord.safeParse(value)
  return result.success ? result.data : undefined
}

/**
 * A text from outside as every database keeps it: PostgreSQL takes no NUL, and half of a surrogate pair is not valid UTF-8.
 * For what people read and states are compared by; identifiers with such characters are refused instead.
 */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** `updated_at` as ms since 1970; NaN when it is missing or unreadable: then it says nothing about age. */
export function updatedAtMs({ updated_at }: SubscriptionRecord): number {
  if (typeof updated_at !== 'string') return Number.NaN
  // The platform's times are UTC. One without an offset would be read as this machine's own.
  const hasOffset = !/\d\d:\d\d[\d:.]*$/.test(updated_at) || /[+-]\d\d:\d\d$/.test(updated_at)
  return Date.parse(hasOffset ? updated_at : `${updated_at}Z`)
}
