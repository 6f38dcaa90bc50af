import { MarketplaceError } from '../base/errors.js'
import type { Cause, Entry, Store, StoredEntitlement, Subscription } from '../store/port/store.js'
import { byWeight, type DecisionRules, decide, decisionOf } from './decide.js'
import { REASONS, type Reason } from './reasons.js'

/** What changed for a business, as `onEntitlementChange` gets it: what is true at the time of the call. */
export interface EntitlementChange {
  /**
   * The handler's idempotency key: the same at every try. If a further change came before a try, that try has it too, and
   * another id.
   */
  id: string
  /** Identifier of the business. */
  business_uid: string
  /**
   * Whether the business may use the app, as its subscriptions were last read: one item is enough. It stays true while none
   * of them can be read (`stale`), and between the end of an answer and the read that follows.
   */
  entitled: boolean
  /** The items that entitle the business, as last read: each once, sorted. */
  entitledItems: string[]
  /**
   * The items before the changes for which the handler is called: each once, sorted. They are the same ones if an item ended
   * and began again before the call.
   */
  previousItems: string[]
  /** The reason of the answer at the time of the call, without subscriptions that were only announced. */
  reason: Reason
  /**
   * Why the subscription was read that showed the change: see `cause` of `PurchaseChange`. `clock`: the answer of
   * `entitledWhen` ended. Of several changes that of the last.
   */
  cause: Cause
  /** When the access ends if the platform shows no change until then, by `entitledWhen`: ISO 8601, UTC. Or null. */
  accessUntil: string | null
}

/**
 * Turns the entries about the entitlement of a business that one call settles into what is true now, from the store. Rejects
 * with `entitlement_unknown` while an import without announcements is being read, and with the store's own error.
 */
export function createEntitlementChanges(options: {
  store: Pick<Store, 'subscriptionsOf' | 'entitlementsFrom'>
  rules: DecisionRules
  now(): number
}) {
  const { store, rules, now } = options

  return async function entitlementChangeOf(entries: readonly Entry[]): Promise<EntitlementChange> {
    const [first, last] = [entries[0], entries.at(-1)] as [Entry, Entry]
    const { id, business_uid, cause } = JSON.parse(last.payload) as StoredEntitlement
    const subscriptions = await store.subscriptionsOf(business_uid)
    // Afterwards, so they have all that the subscriptions have: to take back what came since then changes nothing.
    const items = itemsOf(subscriptions, await store.entitlementsFrom(first.id))
    const { reason, accessUntil } = answerNow(business_uid, subscriptions, rules, now())
    return {
      id,
      business_uid,
      entitled: items.entitledItems.length > 0,
      ...items,
      reason,
      cause,
      accessUntil,
    }
  }
}

/**
 * The items that entitle a business, as last read, and those before these flips and all later ones. The flips are taken back
 * from the last to the first, because an item may have ended and begun again.
 */
export function itemsOf(
  subscriptions: readonly Pick<Subscription, 'entitles' | 'record'>[],
  flips: readonly Pick<StoredEntitlement, 'before' | 'after'>[],
): Pick<EntitlementChange, 'entitledItems' | 'previousItems'> {
  const given = subscriptions.flatMap(({ entitles, record }) =>
    entitles && record ? record.purchasable_uid : [],
  )
  const previous = new Set(given)
  for (const { before, after } of [...flips].reverse()) {
    if (after !== null) previous.delete(after)
    if (before !== null) previous.add(before)
  }
  return { entitledItems: [...new Set(given)].sort(), previousItems: [...previous].sort() }
}

/** The answer for a business now. What was only announced does not count: it must not hide the reason of an end. */
export function answerNow(
  business_uid: string,
  subscriptions: readonly Subscription[],
  rules: DecisionRules,
  now: number,
): { reason: Reason; accessUntil: string | null } {
  const verdicts = decide(business_uid, subscriptions, rules, now).subscriptions
  const isAwaited = ({ quiet }: Subscription, i: number) => quiet && verdicts[i]?.reason === 'not_read_yet'
  // Its first read writes no entry, so nothing would correct what handlers were told before it.
  if (subscriptions.some(isAwaited)) {
    const message = `Cannot tell what entitles the business: ${REASONS.not_read_yet.meaning}`
    throw new MarketplaceError('entitlement_unknown', message)
  }
  const counted = verdicts.filter(({ reason }) => reason !== 'not_read_yet')
  const [best] = byWeight(counted)
  return decisionOf(business_uid, best?.reason ?? 'unknown_business', best?.asOf ?? null, counted, now)
}
