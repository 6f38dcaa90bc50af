import { EVENTS, type EventName } from '../events/registry.js'
import { cannot } from './cannot.js'
import type { FullSubscription, SentEnvelope } from './envelopes.js'

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
  const { entity_name, event_type } = EVENTS[name]
  return { entity_name, event_type, data: { ...SAMPLE_DATA[name], ...overrides } } as SampleDelivery<Name>
}

const NOTICE: NoticeData = {
  business_id: 'business-1',
  purchasable_uid: 'purchasable-1',
  subscription_uid: 'subscription-1',
}

const APP_SUBSCRIPTION: AppSubscriptionData = { business_id: 'business-1', app_id: 'app' }

const APPLICATION: ApplicationData = {
  business_id: 'business-1',
  app_code_name: 'app',
  event_time: '2024-05-01T10:00:00.000+00:00',
}

const SAMPLE_DATA: SampleData = {
  'purchasable_subscription/create': NOTICE,
  'purchasable_subscription/update': NOTICE,
  'purchasable_subscription/updated': {
    uid: 'subscription-1',
    display_name: 'app',
    purchasable_uid: 'purchasable-1',
    buyer_uid: 'buyer-1',
    business_uid: 'business-1',
    purchase_currency: 'USD',
    purchase_price: '9.99',
    purchase_state: 'purchased',
    cancellation_date: null,
    expiration_date: null,
    updated_at: '2024-05-01T10:00:00.000Z',
    created_at: '2024-05-01T10:00:00.000Z',
    payment_type: 'monthly',
    bundled_from_subscription_uid: null,
    is_active: true,
  },
  'app_subscription/installed': APP_SUBSCRIPTION,
  'app_subscription/uninstalled': APP_SUBSCRIPTION,
  'application/installed': APPLICATION,
  'application/uninstalled': APPLICATION,
}
