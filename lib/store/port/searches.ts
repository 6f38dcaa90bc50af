import type { Leased } from './subscriptions.js'

/** The pause from a search of a business to the next one that is requested. */
export const MIN_SEARCH_INTERVAL_MS = 1_000

/** Who requests a search: the app, by a question or by `refresh`, or an install, which anybody with the delivery secret can send. */
export type SearchRequest =
  /** The first one makes a search, and later ones none: its answer is kept. */
  | 'question'
  /** Searches again, at once. */
  | 'refresh'
  /** Searches again, after a pause. */
  | 'install'

/** The search for the subscriptions of a business that has none in the store. */
export interface Search {
  /** The platform has answered it, and has shown no subscription. */
  isAnswered: boolean
  /** It was requested, or requested again, and the platform has not answered since. */
  pending: boolean
  /** The app has asked for it, so it goes before those that only installs have made. */
  isAsked: boolean
  /** When it was requested; once it is answered, when somebody last wanted the answer. */
  wantedAt: number
  /** Code of the failure of the last try; null once it is requested again. */
  failure: string | null
}

/** Which searches to lease, for how long. */
export interface ClaimSearches {
  /** The most searches. */
  limit: number
  /** The most of these that only installs have made. */
  installLimit: number
  leaseMs: number
}

/** A leased search. Its `id` is the uid of the business. */
export interface SearchClaim extends Leased {
  isAsked: boolean
  /** How often it was requested. */
  generation: number
  /** Failed tries since it was last answered or asked for again. */
  failures: number
}

/** The result of a search. Without `nextInMs` it was not made, and is due again at once. */
export type SearchFinish =
  /**
   * `found`: the subscriptions of the business. `failure`: a refusal, which is an answer too; it ends a search that only
   * installs have requested.
   */
  | { kind: 'answered'; found: readonly string[]; failure: string | null; nextInMs: number }
  | { kind: 'failed'; failure: string; nextInMs: number }
  | { kind: 'untried' }

/** The calls for searches. One whose lease ran out is due again: it calls the platform and nothing else. */
export interface SearchCalls {
  /** The search of a business; undefined: nobody has requested one. */
  searchOf(businessUid: string): Promise<Search | undefined>
  /** Requests the search of a business. Changes nothing if the store has a subscription of it. */
  requestSearch(businessUid: string, by: Exclude<SearchRequest, 'install'>): Promise<void>
  /**
   * Leases due searches: those that the app has asked for first, of each kind the longest due. Deletes an answered one whose
   * business has a subscription meanwhile.
   */
  claimSearches(options: ClaimSearches): Promise<SearchClaim[]>
  /** Extends the lease of a search. False when the caller has lost it. */
  renewSearch(claim: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes the result of a search. What was found is requested as by `track`, in the same transaction, which ends the search.
   * False when the caller has lost the lease, as by an erasure: nothing was written.
   */
  finishSearch(claim: SearchClaim, finish: SearchFinish): Promise<boolean>
}

/** The counts of searches for health. */
export interface SearchCounts {
  /** The searches that the app has asked for and whose last try failed, up to `COUNTED_UP_TO`. */
  failedSearches: number
  /** How long the search that is longest due has been due, of those that the app has asked for; null when none is due. */
  oldestSearchMs: number | null
}
