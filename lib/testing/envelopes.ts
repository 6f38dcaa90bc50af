import { EVENTS, type EventName } from '../events/registry.js'
import type { FullSubscription } from './full-subscription.js'

/** The envelope of a delivery as sent (interface document, Event envelope). */
export interface SentEnvelope {
  entity_name: string
  event_type: string
  data: Record<string, unknown>
}

/** The cause of an event on the platform. `at` is in milliseconds since 1970. */
export type Happening =
  | { name: `purchasable_subscription/${string}` & EventName; record: FullSubscription; at: number }
  | {
      name: Exclude<EventName, `purchasable_subscription/${string}`>
      businessUid: string
      app: string
      at: number
    }

/** The form of deliveries where the interface document leaves it open. The default of each field is as documented. */
export interface DeliveryStyle {
  /** `purchasable_subscription/create` carries the full record instead of three identifiers. */
  fullRecordCreate?: boolean
  /** `purchasable_subscription/update` carries the full record instead of three identifiers. */
  fullRecordUpdate?: boolean
  /** The body is a JSON array that holds the envelope. */
  arrays?: boolean
  /** Generated identifiers consist of digits, and such identifiers are sent as numbers. */
  numericIds?: boolean
  /** The Content-Type header, default `application/json`; null sends none. */
  contentType?: string | null
  /** Sends the body in chunks, without a Content-Length. */
  chunked?: boolean
  /** Sends `Expect: 100-continue`, and the body only after the target asks for it. */
  expectContinue?: boolean
}

/** The envelope of the event that `happening` causes. */
export function envelopeOf(happening: Happening, style: DeliveryStyle): SentEnvelope {
  const { entity_name, event_type } = EVENTS[happening.name]
  const data = dataOf(happening, style)
  return { entity_name, event_type, data: style.numericIds ? withNumbers(data) : data }
}

function dataOf(happening: Happening, style: DeliveryStyle): Record<string, unknown> {
  switch (happening.name) {
    case 'purchasable_subscription/create':
      return style.fullRecordCreate ? { ...happening.record } : noticeOf(happening.record)
    case 'purchasable_subscription/update':
      return style.fullRecordUpdate ? { ...happening.record } : noticeOf(happening.record)
    case 'purchasable_subscription/updated':
      return { ...happening.record }
    case 'app_subscription/installed':
    case 'app_subscription/uninstalled':
      return { business_id: happening.businessUid, app_id: happening.app }
    case 'application/installed':
    case 'application/uninstalled':
      return {
        business_id: happening.businessUid,
        app_code_name: happening.app,
        event_time: new Date(happening.at).toISOString().replace('Z', '+00:00'),
      }
  }
}

function noticeOf(record: FullSubscription): Record<string, unknown> {
  const { business_uid: business_id, purchasable_uid, uid: subscription_uid } = record
  return { business_id, purchasable_uid, subscription_uid }
}

const IDENTIFIERS = /^(uid|.+_uid|business_id|app_id|app_code_name)$/

function withNumbers(data: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(data).map(([field, value]) => {
    // Up to 15 digits without a leading zero: a number that comes back as the same string.
    const fits = typeof value === 'string' && /^(0|[1-9]\d{0,14})$/.test(value) && IDENTIFIERS.test(field)
    return [field, fits ? Number(value) : value]
  })
  return Object.fromEntries(entries)
}
