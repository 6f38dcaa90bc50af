import { UPDATED_EVENT_FIELDS } from '../base/record.js'
import { EVENTS, type EventName } from '../events/registry.js'

/** The envelope of a delivery as sent (interface document, Event envelope). */
export interface SentEnvelope {
  /** The entity of the event. */
  entity_name: string
  /** What happened to it. */
  event_type: string
  /** The fields of the event. */
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

/** A subscription of the simulator: every documented field, in the types of the interface document. */
export interface FullSubscription {
  /** Subscription identifier. */
  uid: string
  /** Code name of the app. */
  display_name: string
  /** Identifier of the purchased item (the app). */
  purchasable_uid: string
  /** Identifier of the buyer. */
  buyer_uid: string
  /** Identifier of the purchasing business. */
  business_uid: string
  /** Currency code. */
  purchase_currency: string
  /** Decimal amount with two decimals. */
  purchase_price: string
  /** One of the purchase states, or what `set` made of it. */
  purchase_state: string
  /** Null, as in the samples of the document. */
  cancellation_date: string | null
  /** Null, as in the samples of the document. */
  expiration_date: string | null
  /** Time of the last change: ISO 8601, UTC, with milliseconds. */
  updated_at: string
  /** Time of its creation: ISO 8601, UTC, with milliseconds. */
  created_at: string
  /** A billing period: `monthly`. */
  payment_type: string
  /** Null, as in the sample of the document. */
  bundled_from_subscription_uid: string | null
  /** Whether it is `purchased`. */
  is_active: boolean
  [field: string]: unknown
}

/** The fields in which new subscriptions differ. */
export type NewSubscription = Pick<
  FullSubscription,
  'uid' | 'display_name' | 'purchasable_uid' | 'buyer_uid' | 'business_uid' | 'purchase_state'
> & { price: string; currency: string; now: string }

export function newSubscription({ price, currency, now, ...known }: NewSubscription): FullSubscription {
  return {
    uid: known.uid,
    display_name: known.display_name,
    purchasable_uid: known.purchasable_uid,
    buyer_uid: known.buyer_uid,
    business_uid: known.business_uid,
    purchase_currency: currency,
    purchase_price: price,
    purchase_state: known.purchase_state,
    cancellation_date: null,
    expiration_date: null,
    updated_at: now,
    created_at: now,
    payment_type: 'monthly',
    bundled_from_subscription_uid: null,
    // Not stated by the document; we chose true for the state that gives access.
    is_active: known.purchase_state === 'purchased',
  }
}

/** A subscription as the read call returns it: without the fields that only the updated event has. */
export function readable(record: FullSubscription): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([field]) => !(field in UPDATED_EVENT_FIELDS)))
}
