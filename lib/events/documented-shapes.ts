import { type BuiltInEvents, EVENTS, type EventData, type EventName } from './registry.js'
import { installSubject, noticeSubject, recordSubject, type Subject } from './subject.js'

/** A built-in event, as the classifier returns it. */
interface Documented {
  recognised: true
  name: EventName<BuiltInEvents>
  data: unknown
  subject: Subject
}

/**
 * The event of an envelope whose `data` has exactly a shape of the interface document: its fields and no others, with
 * plain ASCII identifiers. Undefined for every other envelope, which then goes to the schemas. Nearly all deliveries have
 * such a shape, and plain code reads it several times faster than a schema. A property test compares both results.
 */
export function documentedEvent(
  entityName: string,
  eventType: string,
  data: unknown,
): Documented | undefined {
  if (typeof data !== 'object' || data === null) return undefined
  try {
    return Object.getPrototypeOf(data) === Object.prototype
      ? eventOf(entityName, eventType, data as Fields)
      : undefined
  } catch {
    // A getter threw; no JSON value has one.
    return undefined
  }
}

function eventOf(entityName: string, eventType: string, fields: Fields): Documented | undefined {
  switch (entityName) {
    case 'purchasable_subscription':
      if (eventType === 'created') return noticeOf('purchasable_subscription/create', fields)
      if (eventType !== 'update') return undefined
      return noticeOf('purchasable_subscription/update', fields) ?? recordOf(fields)
    case 'application':
    case 'app_subscription':
      return installOf(entityName, eventType, fields)
    default:
      return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

function noticeOf(
  name: 'purchasable_subscription/create' | 'purchasable_subscription/update',
  fields: Fields,
): Documented | undefined {
  const { business_id, purchasable_uid, subscription_uid } = fields
  if (!isPlain(business_id) || !isPlain(purchasable_uid) || !isPlain(subscription_uid)) return undefined
  if (countOf(fields) !== 3) return undefined
  const data = { business_id, purchasable_uid, subscription_uid }
  return { recognised: true, name, data, subject: noticeSubject(data) }
}

function installOf(
  entity: 'application' | 'app_subscription',
  eventType: string,
  fields: Fields,
): Documented | undefined {
  if (eventType !== 'installed' && eventType !== 'uninstalled') return undefined
  const { business_id, app_id, app_code_name, event_time } = fields
  if (!isPlain(business_id)) return undefined
  const name = `${entity}/${eventType}` as const
  const subjectOf = eventType === 'installed' ? installed : uninstalled
  if (entity === 'app_subscription') {
    if (!isPlain(app_id) || countOf(fields) !== 2) return undefined
    const data = { business_id, app_id }
    return { recognised: true, name, data, subject: subjectOf(data) }
  }
  if (!isPlain(app_code_name) || typeof event_time !== 'string' || event_time === '') return undefined
  if (countOf(fields) !== 3) return undefined
  const data = { business_id, app_code_name, event_time }
  return { recognised: true, name, data, subject: subjectOf(data) }
}

/** A full record may have further fields, which keep their values. */
function recordOf(fields: Fields): Documented | undefined {
  const { uid, business_uid, purchasable_uid, purchase_state } = fields
  if (!isPlain(uid) || !isPlain(business_uid) || !isPlain(purchasable_uid)) return undefined
  if (typeof purchase_state !== 'string' || Object.hasOwn(fields, '__proto__')) return undefined
  const data: EventData<'purchasable_subscription/updated'> = {
    uid,
    business_uid,
    purchasable_uid,
    purchase_state,
  }
  for (const field in fields) if (!CHECKED.has(field)) data[field] = fields[field]
  const subject = recordSubject(data)
  return { recognised: true, name: 'purchasable_subscription/updated', data, subject }
}

const CHECKED = new Set(['uid', 'business_uid', 'purchasable_uid', 'purchase_state'])
const installed = installSubject('installed')
const uninstalled = installSubject('uninstalled')

/** Stricter than `identifierOf`: every text that passes here passes there too. */
function isPlain(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]{1,255}$/.test(value)
}

/** Counts inherited fields too, as the schemas do. */
function countOf(fields: Fields): number {
  let count = 0
  for (const _field in fields) count++
  return count
}

/** Whether a registry has the built-in rows. The shortcut matches only their schemas. */
export function hasBuiltInRows(registry: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(EVENTS).every(([name, row]) => registry[name] === row)
}
