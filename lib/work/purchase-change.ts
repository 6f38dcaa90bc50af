import type { Clock } from '../clock.js'
import { newId } from '../ids.js'
import type { SubscriptionRecord } from '../record.js'
import { type NewChange, type Subscription, subscriptionKey } from '../store/store.js'
import type { Move } from './conclusion.js'

/** A change as it is written into the journal and handed to `onPurchaseChange`. */
export interface PurchaseChange {
  /** The same at every try: the handler's idempotency key. */
  id: string
  business_uid: string
  subscription_uid: string
  /** The purchase_state before and after; null: never read, or no longer shown by the platform. */
  from: string | null
  to: string | null
  /** Why `to` is null: the platform does not show it, shows it no longer after an uninstall, or it is another business's now. */
  gone: 'missing' | 'revoked' | 'moved' | null
  /** Whether the business may use the app after this change, all its subscriptions considered. */
  entitled: boolean
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** ISO 8601, UTC. */
  observedAt: string
}

/** The change for the store to write. Whether it entitles is asked of the business's subscriptions as written. */
export function changeOf(
  { businessUid, from, to, record }: Move,
  options: {
    subscriptionUid: string
    entitledBy(subscriptions: Subscription[], now: number): boolean
    clock: Clock
  },
): NewChange {
  const { subscriptionUid, entitledBy, clock } = options
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
        entitled: entitledBy(subscriptions, now),
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
