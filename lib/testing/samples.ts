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
  business_id: string
  purchasable_uid: string
  subscription_uid: string
}

/** `data` of the two `app_subscription` events. */
export interface AppSubscriptionData {
  business_id: string
  app_id: string
}

/** `data` of the two `application` events. */
export interface ApplicationData {
  business_id: string
  app_code_name: string
  event_time: string
}

/** The documented `data` of each event, as sent. */
export interface SampleData {
  'purchasable_subscription/create': NoticeData
  'purchasable_subscription/update': NoticeData
  'purchasable_subscription/updated': FullSubscription
  'app_subscription/installed': AppSubscriptionData
  'app_subscription/uninstalled': AppSubscriptionData
  'application/installed': ApplicationData
  'application/uninstalled': ApplicationData
}

/** An envelope whose `data` has the type of the event. */
export interface SampleDelivery<Name extends EventName> extends SentEnvelope {
  entity_name: (typeof EVENTS)[Name]['entity_name']
  event_type: (typeof EVENTS)[Name]['event_type']
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
