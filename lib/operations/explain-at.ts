import { z } from 'zod'
import type { Clock } from '../clock.js'
import { type Decision, type DecisionRules, decide, decisionWithout } from '../entitlement/decide.js'
import type { Evidence } from '../entitlement/evidence.js'
import { decisionAbout, type ItemOptions } from '../entitlement/items.js'
import { MarketplaceError } from '../errors.js'
import { requireIdentifier, type SubscriptionRecord } from '../record.js'
import { checked, MOST_LISTED, time } from '../store/entry-filter.js'
import type { JournalEntry, KeptSubscription, Retention, Store, Subscription } from '../store/store.js'
import { nextTurn } from '../waiting.js'
import { isoOf } from './subscriptions.js'

const OPTIONS = z.strictObject({ at: time, purchasableUid: z.unknown().optional() })

/**
 * The answer as it was at a time, by the rules of today, from the changes in the journal. Of each subscription the last
 * change before the time counts; where the next one, or what is known today, does not begin where it ended, a change
 * between them is no longer kept. A subscription without a change before the time is as it is today if no change since
 * can have been deleted. For all else the answer is `not_recorded`: unless another subscription entitled.
 * How fresh the platform's word was at the time is not recorded, so nothing is judged `stale`.
 */
export function createExplainAt(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions'>
  rules: DecisionRules
  retention: Retention
  clock: Clock
}) {
  const { store, rules, retention, clock } = options

  async function changesOf(businessUid: string): Promise<Change[]> {
    const found: Change[] = []
    for (let before: string | undefined; ; ) {
      const page = await store.listEntries({
        kind: 'change',
        businessUid,
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
      })
      found.push(...page.map(asChange))
      before = page.at(-1)?.id
      if (page.length < PAGE) return found.reverse()
      await nextTurn()
    }
  }

  async function knownOf(businessUid: string): Promise<KeptSubscription[]> {
    const found: KeptSubscription[] = []
    // Made up ones may be without end; those beyond these have never been read, or there are too many to judge.
    for (let after: string | undefined; found.length < MOST_JUDGED; ) {
      const page = await store.listSubscriptions({
        businessUid,
        limit: MOST_LISTED,
        ...(after === undefined ? {} : { after }),
      })
      found.push(...page)
      after = page.at(-1)?.subscriptionUid
      if (page.length < MOST_LISTED) break
      await nextTurn()
    }
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
    const known = await knownOf(uid)
    const keptSince = now - Math.min(retention.changesMs, retention.deadMs)
    const ownRules = { ...rules, maxStaleMs: Number.POSITIVE_INFINITY }

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
      const past = asItWas({
        at,
        businessUid: uid,
        changes: own,
        row: rows.get(subscriptionUid),
        isKept: at >= keptSince,
      })
      if (past.subscription) subscriptions.push(past.subscription)
      if (past.evidence) restsOn.push({ ...past.evidence, subscription_uid: subscriptionUid })
    }
    const decision = decisionAbout(decide(uid, subscriptions, ownRules, at), given, ownRules, at)
    const isUnknown = restsOn.length === 0 || restsOn.some(({ kind }) => kind === 'not_recorded')
    const answer = decision.entitled || !isUnknown ? decision : unknown(uid, decision, at)
    if (restsOn.length === 0)
      restsOn.push({
        kind: 'not_recorded',
        subscription_uid: null,
        why: 'nothing was recorded before that time',
      })
    const asked = isoOf(at)
    const explanation = `${answer.explanation} As of ${asked}, by today's rules and the changes in the journal; how fresh they were then is not recorded.`
    return { ...answer, explanation, at: asked, restsOn }
  }
}

const PAGE = 500
const MOST_JUDGED = 10_000

interface Change {
  id: string
  subscriptionUid: string
  at: number
  from: string | null
  to: string | null
  gone: 'missing' | 'revoked' | 'moved' | null
  record: SubscriptionRecord | null
}

function asChange({ id, subscriptionUid, receivedAt, payload }: JournalEntry): Change {
  const { from, to, gone, record } = payload as Pick<Change, 'from' | 'to' | 'gone' | 'record'>
  return { id, subscriptionUid: subscriptionUid ?? '', at: Date.parse(receivedAt), from, to, gone, record }
}

type Past = {
  subscription?: Subscription
  evidence?: Evidence extends infer E ? (E extends Evidence ? Omit<E, 'subscription_uid'> : never) : never
}

/** One subscription at `at`: nothing, where it was not heard of yet. `changes` are its own, oldest first. */
function asItWas(options: {
  at: number
  businessUid: string
  changes: readonly Change[]
  row: KeptSubscription | undefined
  /** Whether no change since `at` can have been deleted. */
  isKept: boolean
}): Past {
  const { at, businessUid, changes, row, isKept } = options
  const last = changes.findLast((change) => change.at <= at)
  const next = changes.find((change) => change.at > at)
  const notRecorded = (why: string): Past => ({ evidence: { kind: 'not_recorded', why } })
  if (last) {
    const then = next ? next.from : (row?.state ?? null)
    if (then !== last.to)
      return notRecorded('a change after the last one before that time is not kept any more')
    const evidence = { kind: 'change', id: last.id, on: isoOf(last.at), to: last.to } as const
    if (last.gone === 'moved') return { evidence }
    return { subscription: subscriptionOf(last, businessUid), evidence }
  }
  if (row && row.createdAt > at) return {}
  if (!isKept) return notRecorded('the changes of that time are not kept any more')
  if (next && next.from !== null) return notRecorded('its first recorded change is of a later time')
  if (!row) return {}
  if (next || row.record === null)
    return { subscription: unread(row, at), evidence: { kind: 'record', asOf: null } }
  const evidence = { kind: 'record', asOf: isoOf(row.readAt) } as const
  return { subscription: { ...row, readAt: Math.min(row.readAt ?? at, at), ...SETTLED }, evidence }
}

const SETTLED = {
  requestedAt: null,
  pending: false,
  verifying: false,
  failure: null,
  refreshAt: null,
  quiet: false,
}

function subscriptionOf(
  { subscriptionUid, at, to, gone, record }: Change,
  businessUid: string,
): Subscription {
  const isGone = to === null ? (gone === 'revoked' ? 'revoked' : 'missing') : null
  const purchasableUid = record?.purchasable_uid ?? null
  return {
    subscriptionUid,
    businessUid,
    purchasableUid,
    record,
    state: to,
    gone: isGone,
    readAt: at,
    ...SETTLED,
  }
}

/** Heard of, and not read yet; or not to be read, of another item. */
function unread(row: KeptSubscription, at: number): Subscription {
  const { subscriptionUid, businessUid, purchasableUid } = row
  const nothing = { record: null, state: null, gone: null, readAt: null }
  const isRead = row.pending || row.refreshAt !== null
  const reading = isRead ? { pending: true, refreshAt: at } : {}
  return { subscriptionUid, businessUid, purchasableUid, ...nothing, ...SETTLED, ...reading }
}

function unknown(businessUid: string, { subscriptions }: Decision, at: number): Decision {
  return { ...decisionWithout(businessUid, 'not_recorded', at), subscriptions }
}
