import type { ReadResult } from '../platform/read-result.js'
import type { SubscriptionRecord } from '../record.js'
import type { ReadClaim, ReadFinish, Subscription } from '../store/store.js'

/**
 * Whether the evidence for an end counts. `many`: most businesses fail with this one, which is an outage. `unproven`:
 * no other business was read since, so it may be one.
 */
export type Belief = 'believed' | 'many' | 'unproven'

/** A change of the effective purchase_state, for one business. */
export interface Move {
  businessUid: string
  from: string | null
  to: string | null
  record: SubscriptionRecord | null
}

export interface Conclusion extends Omit<ReadFinish, 'changes'> {
  /** None, or one; two when the subscription went from one business to another. */
  moves: Move[]
}

export interface ConcludeEnvironment {
  now: number
  random: () => number
  reconcileEveryMs: number
  /** How long callers wait for a read. A subscription that is not shown at first is read again within this time. */
  waitMs: number
  /** The canonical purchase_state of a record. */
  stateOf(record: SubscriptionRecord): string
  /** A subscription whose reads are refused for this long, while those of others are not, has ended. */
  maxStaleMs: number
  /** Whether the evidence for an end, or the no of a subscription that was never shown, is believed; undefined: not asked. */
  belief?: Belief | undefined
  /** The result of the read for the candidate business in the same claim, if it found no record either. */
  ofCandidate?: ReadResult | undefined
}

/** The finish of a read that was not made: everything stays as before the claim. */
export function untouched({ subscription: { failure, verifying }, progress }: ReadClaim): ReadFinish {
  return { settled: false, failure, verifying, progress, nextInMs: 0 }
}

/** The loss of the business that had the subscription; none if it had no state. */
export function lossOf({ businessUid, state: from, record }: Subscription): Move[] {
  return from === null ? [] : [{ businessUid, from, to: null, record }]
}

/** No move, one move, or for a record of another business two: the loss of one and the gain of the other. */
export function movesTo(before: Subscription, state: string, record: SubscriptionRecord): Move[] {
  const businessUid = record.business_uid
  if (businessUid !== before.businessUid)
    return [...lossOf(before), { businessUid, from: null, to: state, record }]
  return state === before.state ? [] : [{ businessUid, from: before.state, to: state, record }]
}
