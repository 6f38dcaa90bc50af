import { HOUR } from '../base/clock.js'
import { REFUSALS } from '../base/errors.js'
import { deepFreeze } from '../base/freeze.js'
import { type SubscriptionRecord, storable } from '../base/record.js'
import type { Search, Subscription } from '../store/port/store.js'
import { CLOSED, type RuleAnswer } from './own-rule.js'
import { canonicalState, grants } from './purchase-state.js'
import { REASONS, type Reason, type ReasonRow } from './reasons.js'
import { failureInWords, identifierInWords, itemsInWords } from './words.js'

/** The answer for a business, with its reason and evidence. */
export interface Decision {
  /** Identifier of the business; '' with the reason `invalid_business_uid`. */
  business_uid: string
  /** Whether the business may use the app now. False while the answer is uncertain. */
  entitled: boolean
  /**
   * False while the answer is uncertain (`not_read_yet`, `stale`, `entitled_when_failed`, `store_unavailable`); then
   * `entitled` is false.
   */
  known: boolean
  /** The items that entitle the business now, each once. */
  entitledItems: string[]
  /** Why: a key of `REASONS`, whose rows have the meaning and the next step. */
  reason: Reason
  /** Reason, evidence and age, for a support person. */
  explanation: string
  /**
   * When the access ends if the platform shows no change until then, by `entitledWhen`: ISO 8601, UTC. Null without access,
   * and while only a change ends it.
   */
  accessUntil: string | null
  /** When the platform last confirmed the evidence: ISO 8601, UTC; null when it never did. */
  asOf: string | null
  /** True when the evidence is older than `maxStaleMs`, or the store could not be read just now. */
  stale: boolean
  /** Only with the reasons `other_app` and `other_item`: the items that the business has, and those that would give access. */
  otherItems?: {
    /** The items that the business has. */
    bought: string[]
    /** The items of which any would give access. */
    accepted: string[]
  }
  /**
   * Only where `platform.findSubscriptions` searches for a business of which no subscription to the app was read. A look
   * without a search, at a business that nobody has asked about, is neither answered nor pending, with the reason
   * `unknown_business` or `other_app`.
   */
  search?: {
    /** The platform has answered once. Until then the reason is `not_read_yet`, whatever was named. */
    answered: boolean
    /** An answer is awaited. */
    pending: boolean
    /** Error code of the last search, if it failed. */
    failure: string | null
  }
  /** The known subscriptions of the business, and what each means for the decision. */
  subscriptions: SubscriptionVerdict[]
}

/** What one subscription of the business means for the decision. */
export interface SubscriptionVerdict {
  /** Identifier of the subscription. */
  subscription_uid: string
  /** The item that the record names; before the first read, the one that an event named. Null if none did. */
  purchasable_uid: string | null
  /** As last read; null before the first read, and when the platform no longer shows it. */
  purchase_state: string | null
  /** Whether this subscription lets the business in. */
  entitled: boolean
  /** When its access ends by `entitledWhen`, or has ended: ISO 8601, UTC. */
  accessUntil: string | null
  /** Why: a key of `REASONS`. */
  reason: Reason
  /** When the platform last confirmed it: ISO 8601, UTC. */
  asOf: string | null
  /** A read was requested and has not succeeded yet. */
  pending: boolean
  /** Error code of the last read, if it failed. */
  failure: string | null
  /** What `entitledWhen` did instead of answering; only with the reason `entitled_when_failed`. */
  ruleFailure?: string
}

export interface DecisionRules {
  /** The app's own items. When empty, every known subscription counts. */
  purchasableUids: readonly string[]
  entitledWhen(record: SubscriptionRecord, now: number): RuleAnswer
  maxStaleMs: number
}

/**
 * The decision for a business from its subscriptions: a pure function. One subscription that entitles is enough. `search`: the
 * search for subscriptions, of a business without one that was read; undefined where nobody searches.
 */
export function decide(
  business_uid: string,
  subscriptions: readonly Subscription[],
  rules: DecisionRules,
  now: number,
  search?: Pick<Search, 'isAnswered' | 'pending' | 'failure'>,
): Decision {
  const verdicts = subscriptions.map((subscription) => judge(subscription, rules, now))
  const [best] = byWeight(verdicts)
  const isSearching = search?.isAnswered === false
  const decision = decisionOf(
    business_uid,
    isSearching ? 'not_read_yet' : (best?.reason ?? 'unknown_business'),
    best?.asOf ?? null,
    verdicts,
    now,
  )
  const isOther = decision.reason === 'other_app'
  const shown = isOther ? withOtherItems(decision, verdicts, rules.purchasableUids) : decision
  if (!search) return shown
  const { isAnswered: answered, pending, failure } = search
  return withSearch(shown, { answered, pending, failure })
}

/** The decision with the search for subscriptions on which it depends. */
export function withSearch(decision: Decision, search: NonNullable<Decision['search']>): Decision {
  const { failure } = search
  const failed = failure ? ` The last search for subscriptions failed: ${failureInWords(failure)}.` : ''
  return deepFreeze({ ...decision, explanation: `${decision.explanation}${failed}`, search })
}

/** The decision of a look without a search, if a question would make one: nobody has asked about the business so far. */
export function withSearchToMake(decision: Decision): Decision {
  const isUnsearched = decision.reason === 'unknown_business' || decision.reason === 'other_app'
  if (!isUnsearched || decision.search) return decision
  return deepFreeze({ ...decision, search: { answered: false, pending: false, failure: null } })
}

/** The decision with the items that the business has, and those that would give access. */
export function withOtherItems(
  decision: Decision,
  subscriptions: readonly SubscriptionVerdict[],
  accepted: readonly string[],
): Decision {
  const items = [...new Set(subscriptions.flatMap(({ purchasable_uid }) => purchasable_uid ?? []))]
  if (items.length === 0) return decision
  const otherItems = { bought: items.slice(0, MAX_EXPLAINED), accepted: [...accepted] }
  const words = `They have ${itemsInWords(items, 'and')}, and need ${itemsInWords(accepted, 'or')}.`
  return deepFreeze({ ...decision, explanation: `${decision.explanation} ${words}`, otherItems })
}

/**
 * The answer for a handler of a change, which is called once. `known` is false only if the answer may become yes without a
 * further change. The first read of a subscription makes a change of its own, unless it is quiet; and anybody with the
 * delivery secret can announce subscriptions, which must not hold back an end.
 */
export function answerOf(
  subscriptions: readonly Subscription[],
  rules: DecisionRules,
  now: number,
): Readonly<ReasonRow> {
  let best: Reason = 'unknown_business'
  for (const subscription of subscriptions) {
    const { reason } = reasonFor(subscription, rules, now)
    if (reason === 'not_read_yet' && !subscription.quiet) continue
    if (REASONS[reason].rank < REASONS[best].rank) best = reason
  }
  return REASONS[best]
}

/** Whether a subscription with this record gave access at a time; null when the app's own rule fails. */
export function givesAccess(
  record: SubscriptionRecord | null,
  rules: DecisionRules,
  at: number,
): boolean | null {
  if (record === null) return false
  const answer = accessOf(record, rules, at)
  return 'failure' in answer ? null : answer.entitled
}

/** The answer of the app's rule about the record of a subscription that the platform shows. One of another item is closed. */
export function accessOf(record: SubscriptionRecord, rules: DecisionRules, at: number): RuleAnswer {
  return isOfOtherApp(record.purchasable_uid, rules) ? CLOSED : rules.entitledWhen(record, at)
}

/** The verdict that decides first. */
export function byWeight(verdicts: readonly SubscriptionVerdict[]): SubscriptionVerdict[] {
  return [...verdicts].sort(
    (a, b) => REASONS[a.reason].rank - REASONS[b.reason].rank || (b.asOf ?? '').localeCompare(a.asOf ?? ''),
  )
}

/** A decision without a subscription. */
export function decisionWithout(
  business_uid: string,
  reason: 'invalid_business_uid' | 'store_unavailable',
  now: number,
): Decision {
  return decisionOf(business_uid, reason, null, [], now)
}

function judge(subscription: Subscription, rules: DecisionRules, now: number): SubscriptionVerdict {
  const { reason, failure: ruleFailure, until = null } = reasonFor(subscription, rules, now)
  return {
    subscription_uid: subscription.subscriptionUid,
    purchasable_uid: subscription.record?.purchasable_uid ?? subscription.purchasableUid,
    purchase_state: stateShown(subscription),
    entitled: REASONS[reason].entitled,
    accessUntil: until === null ? null : new Date(until).toISOString(),
    reason,
    // `readAt` may be of another machine: after its conversion it may lie ahead by a few milliseconds.
    asOf: subscription.readAt === null ? null : new Date(Math.min(subscription.readAt, now)).toISOString(),
    pending: subscription.pending,
    failure: subscription.failure,
    ...(ruleFailure === undefined ? {} : { ruleFailure }),
  }
}

interface Judgement {
  reason: Reason
  /** What the app's own rule did instead of answering. */
  failure?: string
  /** When the access ends that the rule gives, or has ended. */
  until?: number | null
}

function reasonFor(subscription: Subscription, rules: DecisionRules, now: number): Judgement {
  const { record, gone, readAt } = subscription
  if (gone) return { reason: gone }
  if (record === null) return { reason: reasonForUnread(subscription) }
  if (isOfOtherApp(record.purchasable_uid, rules)) return { reason: 'other_app' }
  const answer = rules.entitledWhen(record, now)
  if ('failure' in answer) return { reason: 'entitled_when_failed', ...answer }
  if (!answer.entitled) {
    const reason = grants(subscription.state) ? 'denied_by_rule' : 'not_purchased'
    return { reason, until: answer.endedAt ?? null }
  }
  if (readAt === null || now - readAt > rules.maxStaleMs) return { reason: 'stale' }
  return { reason: 'purchased', until: answer.until }
}

/** While the platform may lag behind its own event, a missing record does not mean no. */
function reasonForUnread({ failure, pending, verifying, refreshAt }: Subscription): Reason {
  if (verifying) return 'not_read_yet'
  if (failure === 'platform_record_missing') return pending ? 'not_read_yet' : 'missing'
  if (REFUSALS.includes(failure ?? '')) return 'unreadable'
  return refreshAt === null ? 'unreadable' : 'not_read_yet'
}

/** The state of an item that is not the app's is only in its record. */
function stateShown({ state, record, gone }: Subscription): string | null {
  return state ?? (record && gone === null ? canonicalState(storable(record.purchase_state)) : null)
}

type AppItems = Pick<DecisionRules, 'purchasableUids'>

export function isOfOtherApp(purchasableUid: string, { purchasableUids }: AppItems): boolean {
  return purchasableUids.length > 0 && !purchasableUids.includes(purchasableUid)
}

/**
 * Whether a read has shown the subscription, and it is one of the app's by its item and the present settings, also once it has
 * ended. The store decides the same of its rows (`hasSubscription` in `lib/store/subscriptions/searches.ts`).
 */
export function isOfApp({ record }: Pick<Subscription, 'record'>, rules: AppItems): boolean {
  return record !== null && !isOfOtherApp(record.purchasable_uid, rules)
}

export function decisionOf(
  business_uid: string,
  reason: Reason,
  asOf: string | null,
  subscriptions: SubscriptionVerdict[],
  now: number,
): Decision {
  const { entitled, known, meaning } = REASONS[reason]
  const stale = reason === 'stale' || reason === 'store_unavailable'
  const evidence = byWeight(subscriptions)
    .slice(0, MAX_EXPLAINED)
    .map((subscription) => describe(subscription, now))
  const rest = subscriptions.length - evidence.length
  const explanation = [meaning, ...evidence, ...(rest > 0 ? [`And ${rest} more.`] : [])].join(' ')
  const entitling = entitled ? subscriptions.filter((each) => each.entitled) : []
  const entitledItems = [...new Set(entitling.flatMap(({ purchasable_uid: item }) => item ?? []))]
  const accessUntil = endOf(entitling)
  const evident = { entitledItems, accessUntil, reason, explanation, asOf, stale, subscriptions }
  // One from memory is shared by all who ask.
  return deepFreeze({ business_uid, entitled, known, ...evident })
}

/** When the last of these ends; null if one has no end. */
function endOf(entitling: readonly SubscriptionVerdict[]): string | null {
  const ends = entitling.map(({ accessUntil }) => accessUntil)
  // Compared as numbers: the text of the year 10000 comes before others.
  const byTime = (a: string | null, b: string | null) => Date.parse(a ?? '') - Date.parse(b ?? '')
  return ends.includes(null) ? null : (ends.sort(byTime).at(-1) ?? null)
}

/** The most subscriptions in an explanation: a sender with the delivery secret can forge any number of them. */
const MAX_EXPLAINED = 20

function describe(verdict: SubscriptionVerdict, now: number) {
  const { subscription_uid, purchase_state, asOf, failure, pending, ruleFailure } = verdict
  const read =
    asOf === null ? 'never read' : `${purchase_state ?? 'no longer shown'}, confirmed ${age(asOf, now)} ago`
  const trouble = failure
    ? `; the last read failed: ${failureInWords(failure)}`
    : pending
      ? '; a read is requested'
      : ''
  const rule = ruleFailure === undefined ? '' : `; entitledWhen ${ruleFailure}`
  return `Subscription ${identifierInWords(subscription_uid)}: ${read}${accessInWords(verdict)}${trouble}${rule}.`
}

/** What the rule of the app adds to the state of a subscription. */
function accessInWords({ entitled, purchase_state, accessUntil }: SubscriptionVerdict): string {
  if (!entitled) return accessUntil === null ? '' : `; access ended at ${accessUntil}`
  const end = accessUntil === null ? '' : ` until ${accessUntil}`
  if (!grants(purchase_state)) return `; entitledWhen gives access${end}`
  return end && `; access${end}`
}

function age(asOf: string, now: number): string {
  const minutes = Math.max(0, now - Date.parse(asOf)) / 60_000
  if (minutes < 2) return `${Math.round(minutes * 60)} s`
  return minutes * 60_000 < 2 * HOUR ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`
}
