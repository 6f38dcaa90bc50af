import { MarketplaceError } from '../base/errors.js'
import type { Cause, Entry, Store, StoredEntitlement, Subscription, ToldItems } from '../store/port/store.js'
import { byWeight, type Decision, type DecisionRules, decide, decisionOf } from './decide.js'
import { REASONS, type Reason } from './reasons.js'

/** What changed for a business, as `onEntitlementChange` gets it: what is true at the time of the call. */
export interface EntitlementChange {
  /** The same at every try: the handler's idempotency key. */
  id: string
  /** Identifier of the business. */
  business_uid: string
  /** Whether the business may use the app now: one item is enough. */
  entitled: boolean
  /** The items that entitle the business now, each once, sorted. */
  entitledItems: string[]
  /**
   * Those of the last call that succeeded; none before the first. They may be the same ones, if a call since then failed or
   * was cut off, and after a replay.
   */
  previousItems: string[]
  /** Why the business may use the app or not, as in `explain`: a key of `REASONS`. */
  reason: Reason
  /**
   * Why the subscription was read that showed the change: see `cause` of `PurchaseChange`. `clock`: the answer of
   * `entitledWhen` ended. Of several changes since the last call that of the first.
   */
  cause: Cause
  /** When the access ends if the platform shows no change until then, by `entitledWhen`: ISO 8601, UTC. Or null. */
  accessUntil: string | null
}

/** What an entry of the journal about an entitlement comes to. */
interface Telling {
  /** Null: handlers have nothing to do, and are not called. */
  payload: EntitlementChange | null
  /** What handlers know then; null: the same as before. */
  told: ToldItems | null
}

/**
 * Turns an entry about the entitlement of a business into what is true now, from the store. Rejects with
 * `entitlement_unknown` while that is not known, and with the store's own error when the store rejects.
 */
export function createTellings(options: {
  store: Pick<Store, 'subscriptionsOf' | 'toldOf'>
  rules: DecisionRules
  now(): number
}) {
  const { store, rules, now } = options

  return async function tellingOf({ payload, subscriptionUid }: Entry): Promise<Telling> {
    const { id, business_uid, cause, quiet } = JSON.parse(payload) as StoredEntitlement
    const subscriptions = await store.subscriptionsOf(business_uid)
    const before = await store.toldOf(business_uid)
    const previousItems = [...before.items]
    // The first read of a quiet import: its own item counts as told, and nothing else that changed meanwhile.
    if (quiet) {
      const its = subscriptions.find((each) => each.subscriptionUid === subscriptionUid)
      const item = its?.entitles ? its.purchasableUid : null
      const items = sorted(previousItems, item)
      return { payload: null, told: { businessUid: business_uid, items, isByCall: false } }
    }
    const { decision, entitledItems } = entitlementNow(business_uid, subscriptions, rules, now())
    if (!decision.known) {
      const message = `Cannot tell whether the business is entitled: ${REASONS[decision.reason].meaning}`
      throw new MarketplaceError('entitlement_unknown', message)
    }
    const isSame = JSON.stringify(entitledItems) === JSON.stringify(previousItems)
    if (isSame && !before.isUncertain) return { payload: null, told: null }
    const { entitled, reason, accessUntil } = decision
    const change = { id, business_uid, entitled, entitledItems, previousItems, reason, cause, accessUntil }
    return { payload: change, told: { businessUid: business_uid, items: entitledItems, isByCall: true } }
  }
}

/**
 * What is true of a business now, for handlers. `known` is false while the answer may become yes without a further entry: as
 * for a change (`answerOf`), what was only announced does not hold back an end.
 *
 * While the answer of a subscription is uncertain and another one entitles the business, it counts as when it was last read:
 * if that was wrong, its next read writes an entry.
 */
export function entitlementNow(
  business_uid: string,
  subscriptions: readonly Subscription[],
  rules: DecisionRules,
  now: number,
): { decision: Decision; entitledItems: string[] } {
  const judged = decide(business_uid, subscriptions, rules, now).subscriptions.map((verdict, i) => ({
    verdict,
    subscription: subscriptions[i] as Subscription,
  }))
  const counted = judged.filter(
    ({ verdict, subscription }) => verdict.reason !== 'not_read_yet' || subscription.quiet,
  )
  const verdicts = counted.map(({ verdict }) => verdict)
  const [best] = byWeight(verdicts)
  const reason = best?.reason ?? 'unknown_business'
  const decision = decisionOf(business_uid, reason, best?.asOf ?? null, verdicts, now)
  const entitling = counted.filter(({ verdict, subscription }) =>
    REASONS[verdict.reason].known ? verdict.entitled : subscription.entitles,
  )
  const items = entitling.map(({ verdict }) => verdict.purchasable_uid)
  return { decision, entitledItems: decision.entitled ? sorted(items) : [] }
}

/** These items, each once, so that two lists of the same ones are equal. */
function sorted(items: readonly (string | null)[], further: string | null = null): string[] {
  return [...new Set([...items, further].filter((item) => item !== null))].sort()
}
