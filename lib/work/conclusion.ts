import type { ReadResult } from '../platform/client.js'
import type { SubscriptionRecord } from '../record.js'
import type { ReadClaim, ReadFinish } from '../store/store.js'

/** A move of the effective purchase_state, for one business. */
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
  /** How long callers wait for a read: what is not shown at first is read again within it. */
  waitMs: number
  /** The purchase_state a record stands for. */
  stateOf(record: SubscriptionRecord): string
  /** Whether this process has seen the platform serve others since then, and it does now. */
  hasServedSince(time: number): boolean
  /** What was read for the candidate in the same claim, where it was not found either. */
  ofCandidate?: ReadResult | undefined
}

/** For a read that was not made: all as it was before the claim; what was not known yet is not known now. */
export function untouched({ subscription: { failure, verifying }, progress }: ReadClaim): ReadFinish {
  return { settled: false, failure, verifying, progress, nextInMs: 0 }
}
