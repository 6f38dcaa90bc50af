import { EVENTS } from '../../index.js'

/** Takes the place of a value or a name that support does not see. */
export const MASK = '•••'

/** Whether a role sees this name of a field. */
export type IsShown = (name: string) => boolean

/** Fields of a record whose values support sees. */
const SHOWN_FIELDS = [
  'uid',
  'business_uid',
  'purchasable_uid',
  'purchase_state',
  'created_at',
  'updated_at',
  'cancellation_date',
  'expiration_date',
]

/**
 * The names of fields that support sees: those of the platform's interface document, and of a stored change. Any other name
 * may be a value that is used as a name.
 */
const KNOWN_NAMES: ReadonlySet<string> = new Set([
  ...SHOWN_FIELDS,
  ...['entity_name', 'event_type', 'data'],
  ...['buyer_uid', 'payment_type', 'purchase_currency', 'purchase_price'],
  ...['display_name', 'bundled_from_subscription_uid', 'is_active'],
  ...['business_id', 'subscription_uid', 'app_id', 'app_code_name', 'event_time'],
  ...['id', 'from', 'to', 'gone', 'cause', 'record', 'observedAt'],
])

export const isKnownName: IsShown = (name) => KNOWN_NAMES.has(name)

const KNOWN_EVENTS: ReadonlySet<string> = new Set(
  Object.values(EVENTS).flatMap(({ entity_name, event_type }) => [entity_name, event_type]),
)

/** For `entity_name` and `event_type` of a delivery: a text that no event of the document has may be any value. */
export const isKnownEventName: IsShown = (name) => KNOWN_EVENTS.has(name)

/** A record for support: the known names of fields, and the values of the fields above. */
export function maskedRecord(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).map(([field, value]) => [
      isKnownName(field) ? field : MASK,
      SHOWN_FIELDS.includes(field) || value === null ? value : MASK,
    ]),
  )
}

/** The shape of a value: names and types, without values. `{ data: { uid: 'text' } }`. */
export function shapeOf(value: unknown, isShown: IsShown, depth = 0): unknown {
  if (value === null) return 'null'
  if (Array.isArray(value))
    return depth > 5 ? 'list' : value.length === 0 ? [] : [shapeOf(value[0], isShown, depth + 1)]
  if (typeof value !== 'object') return typeof value === 'string' ? 'text' : typeof value
  if (depth > 5) return 'object'
  const names = Object.keys(value).sort().slice(0, MAX_NAMES)
  return Object.fromEntries(
    names.map((name) => [
      isShown(name) ? name : MASK,
      shapeOf((value as Record<string, unknown>)[name], isShown, depth + 1),
    ]),
  )
}

const MAX_NAMES = 50

/**
 * The class of an error, from its text in the journal, which begins with it. A text without a class is a sentence of this
 * package.
 */
export function errorClassOf(text: string): string {
  return /^([\p{ID_Continue}$]+): /u.exec(text)?.[1] ?? 'MarketplaceError'
}
