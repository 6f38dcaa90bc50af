import { spread } from '../../base/backoff.js'
import { HOUR } from '../../base/clock.js'
import {
  RECORD_FIELDS,
  type SubscriptionRecord,
  UPDATED_EVENT_FIELDS,
  updatedAtMs,
} from '../../base/record.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { ReadClaim, ReadFinish, Subscription } from '../../store/port/store.js'
import { halfSince, type Progress, progressText, recallProgress, VERIFY_DELAYS_MS } from './schedule.js'

/**
 * Whether the evidence for an end counts. `many`: most businesses fail with this one, which is an outage. `unproven`: too
 * few other businesses were read since, though more could be, or none was served, or the database could not compare them.
 * An outage of `maxStaleMs` is `believed` if another business was served all the time, and so is an end where no other
 * business exists.
 */
export type Belief = 'believed' | 'many' | 'unproven'

/** A change of the effective purchase_state, for one business. */
export interface Move {
  businessUid: string
  from: string | null
  to: string | null
  record: SubscriptionRecord | null
}

export interface Conclusion extends Omit<ReadFinish, 'changes' | 'entitlements'> {
  /** None, or one; two when the subscription went from one business to another. */
  moves: Move[]
}

export interface ConcludeEnvironment {
  now: number
  random: () => number
  reconcileEveryMs: number
  /** How long callers wait for a read. A subscription that is not shown at first is read again within this time. */
  waitMs: number
  /** The canonical purchase_state of a record; null for an item that is not the app's. */
  stateOf(record: SubscriptionRecord): string | null
  /** A subscription whose reads are refused for this long, while those of others are not, has ended. */
  maxStaleMs: number
  /** Whether the evidence for an end, or the no of a subscription that was never shown, is believed; undefined: not asked. */
  belief?: Belief | undefined
  /** The result of the read for the candidate business in the same claim, if it found no record either. */
  ofCandidate?: ReadResult | undefined
}

/** Everything that the conclusion of one read follows from. */
export interface ReadFacts {
  claim: ReadClaim
  /** The subscription before the read. */
  before: ReadClaim['subscription']
  result: ReadResult
  env: ConcludeEnvironment
  progress: Progress
  /** The delay before the next reconcile. */
  reconcileInMs: number
}

export function readFacts(claim: ReadClaim, result: ReadResult, env: ConcludeEnvironment): ReadFacts {
  return {
    claim,
    before: claim.subscription,
    result,
    env,
    progress: recallProgress(claim, env.now),
    reconcileInMs: spread(env.reconcileEveryMs, 0.2, env.random),
  }
}

/** The read concludes nothing, and is tried again. The other counters stay. */
export function tryAgain(
  read: ReadFacts,
  failure: string,
  nextInMs: number,
  changes: Partial<Progress> = {},
): Conclusion {
  return {
    settled: false,
    failure,
    progress: counters(read, { ...read.progress, ...changes }),
    nextInMs,
    verifying: read.before.verifying,
    moves: [],
  }
}

/** Only the counters in `changes`; every other one starts anew. */
export function counters({ claim }: ReadFacts, changes: Partial<Progress>): string {
  return progressText(claim, changes)
}

/** The delay before the next verification; undefined if no event waits for one, or all are done. */
export function nextVerification({ progress }: ReadFacts): number | undefined {
  return progress.owed > 0 ? VERIFY_DELAYS_MS[progress.verified] : undefined
}

/**
 * The delay of the next read, which grows with the time that has passed since `time`, up to the interval of the
 * reconcile.
 */
export function slowingSince({ env, reconcileInMs }: ReadFacts, time: number): number {
  return Math.min(reconcileInMs, spread(halfSince(env.now - time), 0.2, env.random))
}

/**
 * A candidate that the platform has neither shown nor denied is kept for this long after the last request. Not stated by
 * the document; we chose it far above any lag, so a reconcile after the last verification still tries it.
 */
const CANDIDATE_FOR_MS = 72 * HOUR

/**
 * The candidate business for the next read. A read that lags may still show the former business, or nothing for either,
 * and a token may be refused for a while. So a candidate is dropped only if the platform does not show it the subscription
 * once the verifications are over (`isTheEnd`), or after three days.
 */
export function candidateAfter(
  { before, claim, env: { ofCandidate, now } }: ReadFacts,
  isTheEnd: boolean,
): Pick<ReadFinish, 'candidate'> {
  const isDenied = isTheEnd && ofCandidate?.kind === 'missing'
  const isOld = now - (before.requestedAt ?? claim.createdAt) >= CANDIDATE_FOR_MS
  return isDenied || isOld ? { candidate: null } : {}
}

/** The finish of a read that was not made: it is due again now, behind what has been due longer, without a lapse. */
export function untouched({ subscription: { failure, verifying }, progress }: ReadClaim): ReadFinish {
  return { settled: false, failure, verifying, progress, nextInMs: 0, isUntried: true }
}

/** The loss of the business that had the subscription; none if it had no state. */
export function lossOf({ businessUid, state: from, record }: Subscription): Move[] {
  return from === null ? [] : [{ businessUid, from, to: null, record }]
}

/**
 * No move, one move, or for a record of another business two: the loss of one and the gain of the other. An item that is
 * not the app's has no state, so handlers hear of it once `app.purchasableUid` names it.
 */
export function movesTo(before: Subscription, state: string | null, record: SubscriptionRecord): Move[] {
  const businessUid = record.business_uid
  if (businessUid !== before.businessUid)
    return [...lossOf(before), ...(state === null ? [] : [{ businessUid, from: null, to: state, record }])]
  return state === before.state ? [] : [{ businessUid, from: before.state, to: state, record }]
}

const DOCUMENTED = Object.keys({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS })

/**
 * Compares `updated_at` if both have one, else the documented fields, because other fields may appear and move without a
 * change.
 */
export function isUpdated(record: SubscriptionRecord, before: SubscriptionRecord | null): boolean {
  if (before === null) return true
  const [now, then] = [updatedAtMs(record), updatedAtMs(before)]
  return Number.isNaN(now) || Number.isNaN(then)
    ? DOCUMENTED.some((field) => JSON.stringify(record[field]) !== JSON.stringify(before[field]))
    : now !== then
}

/** Compares `updated_at`; without a readable one no record is older. */
export function isOlder(record: SubscriptionRecord, than: SubscriptionRecord | null): boolean {
  return than !== null && updatedAtMs(record) < updatedAtMs(than)
}

/**
 * The business that the platform names for a subscription which the store has under another business. Each such read tries
 * it at once, in place of the candidate. For a subscription that was never read such a record is somebody else's.
 */
export function businessIn(
  result: ReadResult,
  { record }: { record: SubscriptionRecord | null },
): string | undefined {
  return record !== null && 'recordBusinessUid' in result ? result.recordBusinessUid : undefined
}
