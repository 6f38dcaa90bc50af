import { EVENTS, type EventName } from '../events/registry.js'
import { cannot } from './cannot.js'
import {
  envelopeOf,
  type FullSubscription,
  type Happening,
  newSubscription,
  type SentEnvelope,
} from './envelopes.js'

/** `data` of create and update: which subscription changed. */
export interface NoticeData {
  /** Identifier of the business. */
  business_id: string
  /** Identifier of the purchased item. */
  purchasable_uid: string
  /** Identifier of the subscription. */
  subscription_uid: string
}

/** `data` of the two `app_subscription` events. */
export interface AppSubscriptionData {
  /** Identifier of the business. */
  business_id: string
  /** The app's unique name. */
  app_id: string
}

/** `data` of the two `application` events. */
export interface ApplicationData {
  /** Identifier of the business. */
  business_id: string
  /** The app's unique name. */
  app_code_name: string
  /** When it happened: ISO 8601 with its offset from UTC. */
  event_time: string
}

/** The documented `data` of each event, as sent. */
export interface SampleData {
  /** A business has bought an app. */
  'purchasable_subscription/create': NoticeData
  /** The `purchase_state` has changed. */
  'purchasable_subscription/update': NoticeData
  /** Any subscription was updated. */
  'purchasable_subscription/updated': FullSubscription
  /** A business has installed an app. */
  'app_subscription/installed': AppSubscriptionData
  /** A business has uninstalled an app. */
  'app_subscription/uninstalled': AppSubscriptionData
  /** A business has installed the app. */
  'application/installed': ApplicationData
  /** A business has uninstalled the app. */
  'application/uninstalled': ApplicationData
}

/** An envelope whose `data` has the type of the event. */
export interface SampleDelivery<Name extends EventName> extends SentEnvelope {
  /** The entity of the event. */
  entity_name: (typeof EVENTS)[Name]['entity_name']
  /** What happened to it. */
  event_type: (typeof EVENTS)[Name]['event_type']
  /** Every documented field of the event. */
  data: SampleData[Name] & Record<string, unknown>
}

/**
 * A sample delivery of the event, with every documented field. Post it as JSON to your own webhook route.
 * `overrides` replaces or adds fields of `data`, of any type; `undefined` leaves a field out of the JSON.
 * All samples have the same business, app and subscription.
 *
 * @example const { data } = sampleDelivery('purchasable_subscription/updated', { purchase_state: 'suspended' })
 */
export function sampleDelivery<Name extends EventName>(
  name: Name,
  overrides: Record<string, unknown> = {},
): SampleDelivery<Name> {
  if (!Object.hasOwn(EVENTS, name))
    throw cannot(
      `make a sample of ${name}`,
      `the event does not exist; events are ${Object.keys(EVENTS).join(', ')}`,
    )
  const happening = {
    name,
    record: RECORD,
    businessUid: RECORD.business_uid,
    app: 'app',
    at: AT,
  } as Happening
  const { data, ...pair } = envelopeOf(happening, {})
  return { ...pair, data: { ...data, ...overrides } } as SampleDelivery<Name>
}

const AT = Date.parse('2024-05-01T10:00:00Z')

const RECORD = newSubscription({
  uid: 'subscription-1',
  display_name: 'app',
  purchasable_uid: 'purchasable-1',
  buyer_uid: 'buyer-1',
  business_uid: 'business-1',
  purchase_state: 'purchased',
  price: '9.99',
  currency: 'USD',
  now: new Date(AT).toISOString(),
})
