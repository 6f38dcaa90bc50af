import { deepFreeze } from '../base/freeze.js'
import { identifierOf } from '../base/record.js'
import {
  byWeight,
  type Decision,
  type DecisionRules,
  decisionOf,
  type SubscriptionVerdict,
  withOtherItems,
  withSearch,
} from './decide.js'
import { grants } from './purchase-state.js'

/**
 * For an app with several items, such as plans.
 *
 * @example await marketplace.isEntitled('business-1', { purchasableUid: ['pro', 'team'] })
 */
export interface ItemOptions {
  /**
   * Only a subscription of this item, or of one of these, entitles. If the field is present it must name an item:
   * `undefined` and an empty list name none, and deny. Without the field every item of the app counts. A field that no
   * question has denies too.
   */
  purchasableUid?: PurchasableUids
}

/** One item of the app, or several of which any counts. */
export type PurchasableUids = string | number | readonly (string | number)[]

/** Whether the decision entitles to the requested items. Allocates nothing for texts: every warm answer calls it. */
export function entitlesTo({ entitled, entitledItems }: Decision, options: ItemOptions | undefined): boolean {
  if (!entitled || !namesItems(options)) return entitled
  const asked: unknown = options?.purchasableUid
  if (!Array.isArray(asked)) return isAmong(entitledItems, asked)
  for (let i = 0; i < asked.length; i++) if (isAmong(entitledItems, asked[i])) return true
  return false
}

/** The decision about the requested items only: from their subscriptions, and from those whose item is not known yet. */
export function decisionAbout(
  decision: Decision,
  options: ItemOptions | undefined,
  { purchasableUids, maxStaleMs }: Pick<DecisionRules, 'purchasableUids' | 'maxStaleMs'>,
  now: number,
): Decision {
  const { business_uid, reason, subscriptions } = decision
  if (!namesItems(options) || reason === 'invalid_business_uid' || reason === 'store_unavailable')
    return decision
  const asked = itemsOf(options?.purchasableUid)
  const items = asked.filter((item) => isOneOfTheApps(item, purchasableUids))
  if (items.length === 0) return decisionOf(business_uid, 'item_unknown', null, [], now)
  if (subscriptions.length === 0) return decision
  const verdicts = subscriptions
    // Before the first read its item is only what an event said.
    .filter(({ asOf, purchasable_uid: item }) => asOf === null || item === null || items.includes(item))
    .map((verdict) => asOfNow(verdict, maxStaleMs, now))
  const [best] = byWeight(verdicts)
  const withoutOne = subscriptions.length > 0 ? 'other_item' : reason
  const about = decision.search?.answered === false ? reason : (best?.reason ?? withoutOne)
  const bare = decisionOf(business_uid, about, best?.asOf ?? null, verdicts, now)
  const other = bare.reason === 'other_item' ? withOtherItems(bare, subscriptions, items) : bare
  const full = decision.search ? withSearch(other, decision.search) : other
  // An answer from memory while the database is down stays marked as stale.
  return decision.stale && reason !== 'stale' ? deepFreeze({ ...full, stale: true }) : full
}

/**
 * A decision that was made earlier, from the subscriptions that still give access; undefined once its evidence is too old, or
 * all access that it gave has ended.
 */
export function decisionLater(decision: Decision, maxStaleMs: number, now: number): Decision | undefined {
  const { business_uid, entitled, asOf, subscriptions } = decision
  if (!entitled) return asOf !== null && now - Date.parse(asOf) <= maxStaleMs ? decision : undefined
  const verdicts = subscriptions.map((verdict) => asOfNow(verdict, maxStaleMs, now))
  if (verdicts.every((verdict, i) => verdict === subscriptions[i])) return decision
  const [best] = byWeight(verdicts)
  return best?.entitled ? decisionOf(business_uid, best.reason, best.asOf, verdicts, now) : undefined
}

/** The identifiers in `value`, as texts; null for a value that is not an identifier. */
export function itemsOf(value: unknown): (string | null)[] {
  return (Array.isArray(value) ? value : [value]).map(identifierOf)
}

export function isOneOfTheApps(item: string | null, purchasableUids: readonly string[]): item is string {
  return item !== null && (purchasableUids.length === 0 || purchasableUids.includes(item))
}

/** Time from `now` until the first entitling subscription is too old or ends, in ms. A cached decision must not outlive it. */
export function firstEndInMs({ subscriptions, entitled }: Decision, maxStaleMs: number, now: number): number {
  if (!entitled) return Number.POSITIVE_INFINITY
  const times = subscriptions
    .filter((each) => each.entitled)
    .flatMap(({ asOf, accessUntil }) => [
      Date.parse(asOf ?? '') + maxStaleMs,
      accessUntil === null ? Number.POSITIVE_INFINITY : Date.parse(accessUntil),
    ])
  return Math.min(...times) - now
}

/**
 * Whether `options` restrict the items. A value that is not an object (a text, the index of a list) does, and names
 * none, and so does a field that no question has: it may be a misspelt `purchasableUid`.
 */
function namesItems(options: ItemOptions | undefined): boolean {
  if (options === undefined) return false
  if (typeof options !== 'object' || options === null || 'purchasableUid' in options) return true
  for (const field in options) if (!Object.hasOwn(OTHER_OPTIONS, field)) return true
  return false
}

/** The options of a question that are not about items. */
const OTHER_OPTIONS = { search: true, timeoutMs: true, signal: true }

/** The words for the first field of `options` that is not a known one; undefined without one. */
export function unknownOption(options: object, known: readonly string[]): string | undefined {
  const field = Object.keys(options).find((each) => !known.includes(each))
  return field === undefined
    ? undefined
    : `unknown option ${JSON.stringify(field)}, known are ${known.join(', ')}`
}

function isAmong(items: readonly string[], item: unknown): boolean {
  return typeof item === 'string' ? items.includes(item) : items.includes(identifierOf(item) as string)
}

/** A verdict that was made earlier: access may have ended, or its evidence have become too old. */
function asOfNow(verdict: SubscriptionVerdict, maxStaleMs: number, now: number): SubscriptionVerdict {
  const { entitled, asOf, accessUntil, purchase_state } = verdict
  if (!entitled) return verdict
  if (accessUntil !== null && Date.parse(accessUntil) <= now)
    return {
      ...verdict,
      entitled: false,
      reason: grants(purchase_state) ? 'denied_by_rule' : 'not_purchased',
    }
  return now - Date.parse(asOf ?? '') > maxStaleMs
    ? { ...verdict, entitled: false, reason: 'stale' }
    : verdict
}
