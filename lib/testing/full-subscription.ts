import { UPDATED_EVENT_FIELDS } from '../record.js'

/** A subscription of the simulator: every documented field, in the types of the interface document. */
export interface FullSubscription {
  uid: string
  display_name: string
  purchasable_uid: string
  buyer_uid: string
  business_uid: string
  purchase_currency: string
  purchase_price: string
  purchase_state: string
  cancellation_date: string | null
  expiration_date: string | null
  updated_at: string
  created_at: string
  payment_type: string
  bundled_from_subscription_uid: string | null
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
