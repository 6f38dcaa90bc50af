import { z } from 'zod'
import type { Clock } from '../clock.js'
import { type Decision, type DecisionRules, decide, decisionWithout } from '../entitlement/decide.js'
import type { Evidence } from '../entitlement/evidence.js'
import { decisionAbout, type ItemOptions } from '../entitlement/items.js'
import { MarketplaceError } from '../errors.js'
import { requireIdentifier } from '../record.js'
import { checked, MAX_LISTED, time } from '../store/entry-filter.js'
import type { Retention, Store, StoredSubscription, Subscription } from '../store/store.js'
import { entryPages, subscriptionPages } from './pages.js'
import { asChange, type Change, subscriptionAt } from './past-subscription.js'
import { isoOf } from './subscriptions.js'

const OPTIONS = z.strictObject({ at: time, purchasableUid: z.unknown().optional() })

/**
 * Returns `explainAt(businessUid, { at })`: the answer at a time of the past, by today's rules, from the changes in the
 * journal (`subscriptionAt` decides about each subscription). If the state of any subscription at that time is not
 * recorded, the answer is `not_recorded`, unless another subscription gave access.
 *
 * The journal does not record how fresh the records were at that time, so the answer is never `stale`.
 */
export function createExplainAt(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions'>
  rules: DecisionRules
  retention: Retention
  clock: Clock
}) {
  const { store, rules, retention, clock } = options

  /** Oldest first. */
  async function changesOf(businessUid: string): Promise<Change[]> {
    const found: Change[] = []
    for await (const page of entryPages(store, { kind: 'change', businessUid }, PAGE))
      found.push(...page.map(asChange))
    return found.reverse()
  }

  /** Every subscription that was read, and some of those that were not: a forger can name any number of them. */
  async function rowsOf(businessUid: string): Promise<StoredSubscription[]> {
    const found: StoredSubscription[] = []
    let unread = 0
    for await (const page of subscriptionPages(store, { businessUid }, MAX_LISTED))
      found.push(...page.filter(({ record }) => record !== null || ++unread <= MAX_UNREAD))
    return found
  }

  return async function explainAt(
    businessUid: string | number,
    given: { at: Date | string } & ItemOptions,
  ): Promise<Decision> {
    const uid = requireIdentifier(businessUid, 'business_uid')
    const { at } = checked(OPTIONS, given, 'explain')
    const now = clock.now()
    if (at > now) throw new MarketplaceError('argument_invalid', 'Cannot explain: at is in the future')
    const changes = await changesOf(uid)
    const known = await rowsOf(uid)
    const recordedSince = now - Math.min(retention.changesMs, retention.deadMs)
    const rulesWithoutAge = { ...rules, maxStaleMs: Number.POSITIVE_INFINITY }

    const rows = new Map(known.map((each) => [each.subscriptionUid, each]))
    const changesByUid = new Map<string, Change[]>(known.map((each) => [each.subscriptionUid, []]))
    for (const change of changes) {
      const own = changesByUid.get(change.subscriptionUid)
      if (own) own.push(change)
      else changesByUid.set(change.subscriptionUid, [change])
    }
    const subscriptions: Subscription[] = []
    const restsOn: Evidence[] = []
    for (const [subscriptionUid, own] of changesByUid) {
      const past = subscriptionAt({
        at,
        businessUid: uid,
        changes: own,
        row: rows.get(subscriptionUid),
        hasAllChanges: at >= recordedSince,
      })
      if (past.subscription) subscriptions.push(past.subscription)
      if (past.evidence) restsOn.push({ ...past.evidence, subscription_uid: subscriptionUid })
    }
    const decision = decisionAbout(
      decide(uid, subscriptions, rulesWithoutAge, at),
      given,
      rulesWithoutAge,
      at,
    )
    const isUnknown = restsOn.length === 0 || restsOn.some(({ kind }) => kind === 'not_recorded')
    const answer = decision.entitled || !isUnknown ? decision : notRecorded(uid, decision, at)
    if (restsOn.length === 0)
      restsOn.push({
        kind: 'not_recorded',
        subscription_uid: null,
        why: 'nothing was recorded before that time',
      })
    const asked = isoOf(at)
    const explanation = `${answer.explanation} As of ${asked}, by today's rules and the changes in the journal. The age of the records at that time is not recorded.`
    return { ...answer, explanation, at: asked, restsOn }
  }
}

const PAGE = 500
const MAX_UNREAD = 1_000

function notRecorded(businessUid: string, { subscriptions }: Decision, at: number): Decision {
  return { ...decisionWithout(businessUid, 'not_recorded', at), subscriptions }
}
