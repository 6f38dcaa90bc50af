import { identifierOf, MAX_IDENTIFIER_LENGTH } from '../base/record.js'
import { createRepeats, isFieldName, isWord } from './fields.js'
import { EVENTS } from './registry.js'

/**
 * A copy of a received delivery for a test, without a value of it: `payload` of an entry of the journal, or any parsed body.
 * It is recognised as the delivery was. Texts of up to 40 letters in `entity_name`, `event_type` and `purchase_state` stay,
 * and so do names that look like those of fields, null, true, false and ''. Everything else is replaced, the same value by
 * the same one everywhere:
 *
 * | value | becomes |
 * |---|---|
 * | an identifier, such as that of the business | `business-1`, `subscription-1`, `purchasable-1`, `buyer-1`, `app-1` |
 * | any other text | `text-1` |
 * | a number, also as a text | 1, 2 …; a fraction stays one |
 * | a date or time in ISO 8601 | a day from 2024 on in the same format; later ones stay later, to the millisecond |
 * | a name that does not look like that of a field, or is a value elsewhere | `field-1`, or what replaces the same value |
 *
 * An event of your own is recognised only if its schema accepts such values. Throws a `RangeError` for a value that is nested
 * thousands of levels deep.
 *
 * @example await fetch(target, { method: 'POST', body: JSON.stringify(fixtureOf(entry.payload)) })
 */
export function fixtureOf(payload: unknown): unknown {
  const places: Place[] = []
  collect(payload, [], places)
  const values = new Map(places.flatMap(({ value }) => (isReplaced(value) ? [[String(value), value]] : [])))
  const lowerCase = new Set([...values.keys()].map((text) => text.toLowerCase()))
  const identifiers = new Set(identifiersIn(payload).map((text) => text.toLowerCase()))
  const isIdentifier = (text: string) => text !== '' && identifiers.has(text.toLowerCase())
  const repeatsIdentifier = createRepeats(identifiers)
  const isValue = (name: string) => lowerCase.has(name.toLowerCase()) || repeatsIdentifier(name)
  const timeOf = createTimes(values.keys())
  const numberOf = createNumbers()
  const names = createNames()
  // An identifier is named after its documented field, wherever else it stands.
  for (const { path, value } of places) {
    const kind = IDENTIFIERS[nameInData(path)]
    if (kind !== undefined && typeof value === 'string' && isOpaque(value)) names.of(value, kind)
  }
  return copy(payload, [])

  function copy(value: unknown, path: Path): unknown {
    if (typeof value === 'number') return numberOf(value)
    if (typeof value === 'string') return isShown(path, value, isIdentifier) ? value : textFor(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((each) => copy(each, [...path, null]))
    const fields = new Map<string, unknown>()
    for (const [name, each] of Object.entries(value)) {
      const replaced = nameFor(name)
      // Two times of one instant are replaced by one text.
      fields.set(fields.has(replaced) ? names.of(name, 'field') : replaced, copy(each, [...path, name]))
    }
    return Object.fromEntries(fields)
  }

  function nameFor(name: string): string {
    if (isFieldName(name, isValue)) return name
    const value = values.get(name)
    if (value === undefined) return names.of(name, 'field')
    return typeof value === 'number' ? String(numberOf(value)) : textFor(value)
  }

  function textFor(text: string): string {
    if (isTime(text)) return timeOf(text)
    return isNumeric(text) ? String(numberOf(text)) : names.of(text, 'text')
  }
}

/** What replaces the identifiers in the documented fields of `data`. */
const IDENTIFIERS: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  business_id: 'business',
  business_uid: 'business',
  subscription_uid: 'subscription',
  uid: 'subscription',
  bundled_from_subscription_uid: 'subscription',
  purchasable_uid: 'purchasable',
  buyer_uid: 'buyer',
  app_id: 'app',
  app_code_name: 'app',
  display_name: 'app',
})

/** The identifiers in the documented fields of a delivery, however much else it has. */
export function identifiersIn(payload: unknown): string[] {
  const envelopes: readonly unknown[] = Array.isArray(payload) ? payload : [payload]
  return envelopes.flatMap((envelope) => {
    const { data } = (envelope ?? {}) as { data?: unknown }
    if (typeof data !== 'object' || data === null) return []
    return Object.entries(data).flatMap(([name, value]) =>
      isReplaced(value) && IDENTIFIERS[name] !== undefined ? [String(value)] : [],
    )
  })
}

/** The names of the fields from the outermost object on; null for an element of an array. */
type Path = readonly (string | null)[]
interface Place {
  path: Path
  value: unknown
}

function collect(value: unknown, path: Path, places: Place[]) {
  if (typeof value !== 'object' || value === null) return void places.push({ path, value })
  for (const [name, each] of Object.entries(value))
    collect(each, [...path, Array.isArray(value) ? null : name], places)
}

/** The path within an envelope, which may be an element of an array. */
function inEnvelope(path: Path): Path {
  return path[0] === null ? path.slice(1) : path
}

function nameInData(path: Path): string {
  const [data, name, ...further] = inEnvelope(path)
  return data === 'data' && further.length === 0 ? (name ?? '') : ''
}

function isShown(path: Path, text: string, isIdentifier: (text: string) => boolean): boolean {
  const [name, ...further] = inEnvelope(path)
  const isName = further.length === 0 && (name === 'entity_name' || name === 'event_type')
  // Without these the copy would not be recognised, so they stay even if a business has one as its name.
  if (text === '' || (isName && NAMES.has(text))) return true
  return (isName || nameInData(path) === 'purchase_state') && isWord(text) && !isIdentifier(text)
}

const NAMES = new Set<string>(
  Object.values(EVENTS).flatMap(({ entity_name, event_type }) => [entity_name, event_type]),
)
const isReplaced = (value: unknown) => typeof value === 'string' || typeof value === 'number'
const TIME = /^\d{4}-\d\d-\d\d(?:([T ])\d\d:\d\d(:\d\d)?(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?)?$/
const isTime = (text: string) => TIME.test(text) && !Number.isNaN(Date.parse(text))
const isNumeric = (text: string) => text.length <= 40 && /^-?\d+(\.\d+)?$/.test(text)
const isOpaque = (text: string) => text !== '' && !isTime(text) && !isNumeric(text)

/** Gives each time a day of its own, in their order. */
function createTimes(texts: Iterable<string>) {
  const instants = [...new Set([...texts].filter(isTime).map((text) => Date.parse(text)))].sort(
    (a, b) => a - b,
  )
  return (text: string): string => {
    const day = new Date(Date.UTC(2024, 0, 1 + instants.indexOf(Date.parse(text)))).toISOString().slice(0, 10)
    const [, separator, seconds = '', fraction = '', zone = ''] = TIME.exec(text) as RegExpExecArray
    if (separator === undefined) return day
    return `${day}${separator}00:00${(seconds + fraction).replace(/\d/g, '0')}${zone.replace(/\d/g, '0')}`
  }
}

/** Numbers in the order in which they are first seen. `72` and `"72"` are one. */
function createNumbers() {
  const ranks = new Map<string, number>()
  return <Value extends string | number>(value: Value): Value => {
    const text = String(value)
    const rank = ranks.get(text) ?? ranks.size + 1
    ranks.set(text, rank)
    const sign = text.startsWith('-') ? -1 : 1
    if (typeof value === 'number') return (sign * likeNumber(value, rank)) as Value
    const [, fraction = ''] = text.split('.')
    return `${sign * rank}${fraction === '' ? '' : `.${fraction.replace(/\d/g, '0')}`}` as Value
  }
}

/** What is not a safe integer is no identifier, and stays none. */
function likeNumber(value: number, rank: number): number {
  if (!Number.isInteger(value)) return rank + 0.5
  return Number.isSafeInteger(value) ? rank : 2 ** 53 + 2 * rank
}

/** Names such as `business-1`, one for each text. */
function createNames() {
  const names = new Map<string, string>()
  const counts = new Map<string, number>()
  return {
    of(text: string, kind: string): string {
      const known = names.get(text)
      if (known !== undefined) return known
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      const name = asOdd(text, `${kind}-${count}`)
      names.set(text, name)
      return name
    },
  }
}

/** A text that cannot be an identifier is replaced by one that cannot either, for the same reason. */
function asOdd(text: string, name: string): string {
  if (text === '' || identifierOf(text) !== null) return name
  if (text.length > MAX_IDENTIFIER_LENGTH) return name.padEnd(MAX_IDENTIFIER_LENGTH + 1, 'x')
  return text.isWellFormed() ? `${name}\n` : `${name}\ud800`
}
