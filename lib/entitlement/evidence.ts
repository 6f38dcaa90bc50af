/** The further fields of a decision about a past time (`explain` with `at`). */
export interface OfThePast {
  /** The requested time: ISO 8601, UTC. */
  at?: string
  /** The evidence of the answer. */
  restsOn?: Evidence[]
}

/** One subscription at a past time. `id` is the journal entry of the change. */
export type Evidence =
  /** It was in the state `to`: the last change before the time, observed at `on`. */
  | { kind: 'change'; subscription_uid: string; id: string; on: string; to: string | null }
  /** Its state was the current one: no change of it was observed since that time. */
  | { kind: 'record'; subscription_uid: string; asOf: string | null }
  /** Its state at that time is not recorded; `why` explains it. */
  | { kind: 'not_recorded'; subscription_uid: string | null; why: string }
