/** Replaces a hidden value. */
export const MASK = '•••'

/** Fields of a record that support sees; all others are hidden. */
const SHOWN_FIELDS = new Set([
  'uid',
  'business_uid',
  'purchasable_uid',
  'purchase_state',
  'created_at',
  'updated_at',
  'cancellation_date',
  'expiration_date',
  'payment_type',
])

/** A record for support: all names of fields, and the values of the fields above. */
export function maskedRecord(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).map(([field, value]) => [
      shownKey(field),
      SHOWN_FIELDS.has(field) || value === null ? value : MASK,
    ]),
  )
}

/** The shape of a value: keys and types, without values. `{ data: { uid: 'text' } }`. */
export function shapeOf(value: unknown, depth = 0): unknown {
  if (value === null) return 'null'
  if (Array.isArray(value))
    return depth > 5 ? 'list' : value.length === 0 ? [] : [shapeOf(value[0], depth + 1)]
  if (typeof value !== 'object') return typeof value === 'string' ? 'text' : typeof value
  if (depth > 5) return 'object'
  const keys = Object.keys(value).sort().slice(0, MAX_KEYS)
  return Object.fromEntries(
    keys.map((key) => [shownKey(key), shapeOf((value as Record<string, unknown>)[key], depth + 1)]),
  )
}

const MAX_KEYS = 50

/** The key if it looks like a name, else the mask: it may be a value that is used as a key. */
function shownKey(key: string): string {
  return /^[a-z_][\w.-]{0,63}$/i.test(key) && !/\d{4}/.test(key) ? key : MASK
}

/**
 * `text` without the values of `payload`, because an error of a handler may quote its payload. The `identifiers` of the
 * business and the subscription stay: support needs them.
 */
export function withoutValues(
  text: string,
  payload: unknown,
  identifiers: readonly (string | null)[],
): string {
  const values = new Set<string>()
  collectValues(payload, values, 0)
  for (const identifier of identifiers) if (identifier !== null) values.delete(identifier)
  return [...values]
    .sort((a, b) => b.length - a.length)
    .reduce((left, value) => left.replaceAll(value, MASK), text)
}

/** Shorter values occur in ordinary sentences. */
const SHORTEST_VALUE = 4

function collectValues(value: unknown, values: Set<string>, depth: number) {
  if (values.size > 500 || depth > 12) return
  if (typeof value === 'string' || typeof value === 'number') {
    if (String(value).length >= SHORTEST_VALUE) values.add(String(value))
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) {
      if (shownKey(key) === MASK) collectValues(key, values, depth + 1)
      collectValues(each, values, depth + 1)
    }
  }
}

/**
 * Returns `jsonOf(value)`: JSON without secrets, for every role. It removes the delivery secret (also in target addresses),
 * bearer tokens, and fields with the name of a secret or a token. This package stores none of them, but an error of a
 * handler or a payload may contain one.
 */
export function jsonWithoutSecrets(targetUrl: (mountUrl: string) => string) {
  const secret = targetUrl('https://console.invalid/').replace(/^.*\//, '')

  function scrub(text: string): string {
    return text.replace(CREDENTIALS, `$1 ${MASK}`).replace(NAMED, `$1$2${MASK}`)
  }

  return function jsonOf(value: unknown): string {
    const text = JSON.stringify(value, (key, each) => {
      if (SECRET_NAMES.test(key) && each !== null) return MASK
      return typeof each === 'string' ? scrub(each) : each
    })
    return secret === '' ? text : text.replaceAll(secret, MASK)
  }
}

const CREDENTIALS = /\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi
const NAMES = '(?:client_secret|access_token|refresh_token|api_key|password)'
const SECRET_NAMES = new RegExp(`^${NAMES}$`, 'i')
/** `client_secret=…` and `"client_secret": "…"`, also in JSON inside a text. */
const NAMED = new RegExp(`\\b(${NAMES})(\\\\*["']?\\s*[=:]\\s*\\\\*["']?)[^\\s"'&,;}\\\\]+`, 'gi')
