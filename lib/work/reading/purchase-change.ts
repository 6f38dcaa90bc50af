import type { Clock } from '../../base/clock.js'
import { newId } from '../../base/ids.js'
import type { SubscriptionRecord } from '../../base/record.js'
import { type Cause, changesKey, type Gone, type NewChange, type ReadClaim } from '../../store/port/store.js'
import type { Conclusion, Move } from './facts.js'

/** A change as `onPurchaseChange` gets it. */
export interface PurchaseChange extends StoredChange {
  /**
   * Whether the business may use the app now: computed from the store for each call of the handler, also at a retry, a
   * replay, and for a handler that was registered later. So it may differ from `to`, which a later change may have
   * replaced. It is the answer of `isEntitled(businessUid)`: one subscription of any item of the app is enough. While the
   * answer may become yes without a further change, no handler is called. For one item of several, call `isEntitled` with
   * `purchasableUid`.
   */
  entitled: boolean
}

/** A change as the journal stores it: what does not become wrong later. */
export interface StoredChange {
  /** The same at every try: the handler's idempotency key. */
  id: string
  /** Identifier of the business. */
  business_uid: string
  /** Identifier of the subscription. */
  subscription_uid: string
  /** The `purchase_state` before the change; null: never read, or not shown by the platform. */
  from: string | null
  /** The `purchase_state` after the change; null: no longer shown by the platform, see `gone`. */
  to: string | null
  /**
   * Why `to` is null. `missing`: the platform does not show it. `revoked`: the business uninstalled. `ended`: the platform
   * refuses to show it, and an event or the time since then shows that it has ended. `moved`: it is another business's now.
   * `other_item`: its item is none of `app.purchasableUid`.
   */
  gone: Gone | 'moved' | 'other_item' | null
  /**
   * Why the subscription was read. `event`: an event named it or its business. `request`: `track` or `refresh`. `import`:
   * an import, `subscriptions.refreshAll`, or the first read after a restore, a migration or a correction of
   * `app.purchasableUid`. `reconcile`: the regular read, so no event had announced the change. `clock`: the answer of
   * `entitledWhen` ended, so it was read early. A retry and a verification have the cause of the read that they follow.
   */
  cause: Cause
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** ISO 8601, UTC. */
  observedAt: string
}

/** The change for the store to write, from the read of `claim` and one move of its conclusion. */
export function changeOf(
  claim: ReadClaim,
  { businessUid, from, to, record }: Move,
  { found }: Pick<Conclusion, 'found'>,
  clock: Clock,
): NewChange {
  const id = newId(clock.now())
  const subscription_uid = claim.id
  const { record: known, gone, businessUid: ofBusiness } = claim.subscription
  const isOfOtherItem = to === null && found?.gone === null && found.record?.business_uid === ofBusiness
  // The item of a known purchase has become one of the app's, or is none any more, and the record names the same item.
  const isOfOwnItem = from === null && gone === null && businessUid === ofBusiness
  const isCorrected =
    (isOfOwnItem || isOfOtherItem) &&
    known !== null &&
    known.purchasable_uid === found?.record?.purchasable_uid
  const cause = isCorrected ? 'import' : claim.cause
  const change: StoredChange = {
    id,
    business_uid: businessUid,
    subscription_uid,
    from,
    to,
    gone: to === null ? (found?.gone ?? (isOfOtherItem ? 'other_item' : 'moved')) : null,
    cause,
    record,
    observedAt: new Date(clock.now()).toISOString(),
  }
  return { id, key: changesKey(businessUid), businessUid, cause, payload: JSON.stringify(change) }
}
