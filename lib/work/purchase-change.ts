import type { Clock } from '../clock.js'
import { newId } from '../ids.js'
import type { SubscriptionRecord } from '../record.js'
import { type NewChange, type Subscription, subscriptionKey } from '../store/store.js'
import type { Move } from './conclusion.js'

/** A change as the journal stores it and `onPurchaseChange` gets it. */
export interface PurchaseChange {
  /** The same at every try: the handler's idempotency key. */
  id: string
  business_uid: string
  subscription_uid: string
  /** The purchase_state before and after; null: never read, or no longer shown by the platform. */
  from: string | null
  to: string | null
  /**
   * Why `to` is null. `missing`: the platform does not show it. `revoked`: the business uninstalled. `moved`: it is
   * another business's now.
   */
  gone: 'missing' | 'revoked' | 'moved' | null
  /** Whether the business may use the app after this change, by all its subscriptions. */
  entitled: boolean
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** ISO 8601, UTC. */
  observedAt: string
}

/** The change for the store to write. The store calls `payload` with the subscriptions of the business as written. */
export function changeOf(
  { businessUid, from, to, record }: Move,
  options: {
    subscriptionUid: string
    isEntitledBy(subscriptions: Subscription[], now: number): boolean
    clock: Clock
  },
): NewChange {
  const { subscriptionUid, isEntitledBy, clock } = options
  const id = newId(clock.now())
  return {
    id,
    key: subscriptionKey(subscriptionUid),
    businessUid,
    payload(subscriptions, now) {
      const change: PurchaseChange = {
        id,
        business_uid: businessUid,
        subscription_uid: subscriptionUid,
        from,
        to,
        gone: to === null ? goneIn(subscriptions, subscriptionUid) : null,
        entitled: isEntitledBy(subscriptions, now),
        record,
        observedAt: new Date(now).toISOString(),
      }
      return JSON.stringify(change)
    },
  }
}

function goneIn(subscriptions: readonly Subscription[], uid: string): PurchaseChange['gone'] {
  const written = subscriptions.find(({ subscriptionUid }) => subscriptionUid === uid)
  return written ? written.gone : 'moved'
}
