import { type Clock, SECOND } from '../../base/clock.js'
import { newId } from '../../base/ids.js'
import type { SubscriptionRecord } from '../../base/record.js'
import { type NewEntitlement, type ReadClaim, URGENCY } from '../../store/port/store.js'
import type { Conclusion } from './facts.js'

/** The answer of the app's rule about a record at a time, or why it gave none. `until`: when it ends, in ms. */
export type AccessOf = (
  record: SubscriptionRecord,
  now: number,
) => { entitled: boolean; until: number | null } | { failure: string }

/** The pause before a read at the end of an answer, at least: a rule may give an end that moves. */
const LEAST_MS = 2 * SECOND

/**
 * A conclusion with whether the subscription gives access now, also after a failed read. If the rule gives no answer, the
 * former one stays. The next read comes no later than the end of the answer, because no event announces it.
 */
export function withAccess(
  claim: ReadClaim,
  conclusion: Conclusion,
  { accessOf, now }: { accessOf: AccessOf; now: number },
): Conclusion {
  const { record, gone } = conclusion.found ?? claim.subscription
  if (record === null || gone !== null) return { ...conclusion, entitles: false }
  const answer = accessOf(record, now)
  if ('failure' in answer) return { ...conclusion, entitles: claim.subscription.entitles }
  const { entitled: entitles, until } = answer
  const { nextInMs, urgency } = conclusion
  const endInMs = until === null ? Number.POSITIVE_INFINITY : Math.max(LEAST_MS, until - now)
  if (nextInMs === null || nextInMs <= endInMs) return { ...conclusion, entitles }
  // A retry or a verification keeps its class and its cause.
  const isByClock = urgency === URGENCY.reconcile
  return {
    ...conclusion,
    entitles,
    nextInMs: endInMs,
    ...(isByClock ? { urgency: URGENCY.verification, cause: 'clock' as const } : {}),
  }
}

/** What changes for the businesses to which the subscription gives another item than before, or none any more. */
export function entitlementsOf(
  { subscription, cause }: ReadClaim,
  { found, entitles = subscription.entitles }: Pick<Conclusion, 'found' | 'entitles'>,
  clock: Clock,
): NewEntitlement[] {
  const former = subscription.entitles ? subscription.record : null
  const present = entitles ? (found ?? subscription).record : null
  const businesses = new Set([former, present].flatMap((record) => record?.business_uid ?? []))
  return [...businesses].flatMap((businessUid) => {
    const itemIn = (record: SubscriptionRecord | null) =>
      record?.business_uid === businessUid ? record.purchasable_uid : null
    const [before, after] = [itemIn(former), itemIn(present)]
    return before === after ? [] : { id: newId(clock.now()), businessUid, cause, before, after }
  })
}
