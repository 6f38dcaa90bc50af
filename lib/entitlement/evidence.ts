/** What a decision has beside where `explain` was asked about a time. */
export interface OfThePast {
  /** The time that was asked about: ISO 8601, UTC. */
  at?: string
  /** What the answer rests on. */
  restsOn?: Evidence[]
}

/** One subscription at a time of the past. `id` is the change's in the journal. */
export type Evidence =
  /** It was in the state `to`: the last change before the time, observed at `on`. */
  | { kind: 'change'; subscription_uid: string; id: string; on: string; to: string | null }
  /** It was as it is now: since the time no change of it was observed. */
  | { kind: 'record'; subscription_uid: string; asOf: string | null }
  /** Its state at the time is not recorded; `why` in words. */
  | { kind: 'not_recorded'; subscription_uid: string | null; why: string }
