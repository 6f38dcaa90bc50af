import type { Leased } from './subscriptions.js'

/** The pause from a search of a business to the next one that is requested. */
export const MIN_SEARCH_INTERVAL_MS = 1_000

/** The pause after the first failed search, and the longest. One whose lease ran out has failed too. */
export const SEARCH_PAUSE_MS = { first: 1_000, longest: 300_000 } as const
/**
 * An answer that may be too early settles a search only if the platform has repeated it for so long: a token that it refuses,
 * as for seconds after an install, and a subscription that the store still has for another business.
 */
export const SETTLED_AFTER_MS = 60_000

/**
 * Who requests a search: the app, by a question, `refresh` or a wait for a purchase; or an install, which anybody with the
 * delivery secret can send.
 */
export type SearchRequest =
  /** The first one makes a search, and later ones none: its answer is kept. */
  | 'question'
  /** Searches again, at once. */
  | 'refresh'
  /** Searches again, `MIN_SEARCH_INTERVAL_MS` after the last answer; after a failed try when its pause is over. */
  | 'wait'
  /** As `wait`, in the class of installs. */
  | 'install'

/** The search for the subscriptions of a business of which none to the app was read. */
export interface Search {
  /** The platform has answered it. What it has shown is stored, and read as any other subscription. */
  isAnswered: boolean
  /** It was requested, or requested again, and the platform has not answered since. */
  pending: boolean
  /** The app has asked for it; else only installs have. */
  isAsked: boolean
  /** When it was requested; once it is answered, when somebody last wanted the answer. */
  wantedAt: number
  /** When the platform last answered; null: never. */
  answeredAt: number | null
  /** When it is made next; null while it is made. */
  nextAt: number | null
  /** Code of the failure of the last try; null once it is requested again. */
  failure: string | null
}

/** Which searches to lease, for how long. */
export interface ClaimSearches {
  /** The most searches. */
  limit: number
  /** The most of these that are made because of an install. */
  installLimit: number
  leaseMs: number
}

/** A leased search. Its `id` is the uid of the business. */
export interface SearchClaim extends Leased {
  /** It is made because of an install: nobody but a sender with the delivery secret has requested it. */
  isOfInstall: boolean
  /** How often it was requested. */
  generation: number
  /** Failed tries since it was last answered or asked for again. */
  failures: number
}

/** The result of a search. Without `nextInMs` it was not made, and is due again at once. */
export type SearchFinish =
  /**
   * `found`: the subscriptions of the business. `failure`: a refusal, which is an answer too; once it settles a search that only
   * installs have requested, it ends that. If the answer may be too early, the search comes back sooner than after `nextInMs`.
   */
  | { kind: 'answered'; found: readonly string[]; failure: string | null; nextInMs: number }
  | { kind: 'failed'; failure: string; nextInMs: number }
  | { kind: 'untried' }

/**
 * The calls for searches. One whose lease ran out counts as a failed try, with the pause of one. It is no suspect: it has
 * ended nobody else's work, because what ran beside it runs alone then, without any search.
 */
export interface SearchCalls {
  /** The search of a business; undefined: nobody has requested one. */
  searchOf(businessUid: string): Promise<Search | undefined>
  /**
   * Requests the search of a business. Changes nothing if a subscription of it to the app was read. False: it makes
   * none, because the app has asked for as many as there may be, and there is none of this business.
   */
  requestSearch(businessUid: string, by: Exclude<SearchRequest, 'install'>): Promise<boolean>
  /**
   * Leases due searches: those of installs last, of each class the longest due. Deletes an answered one of whose business a
   * subscription to the app was read meanwhile.
   */
  claimSearches(options: ClaimSearches): Promise<SearchClaim[]>
  /** Extends the lease of a search. False when the caller has lost it. */
  renewSearch(claim: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes the result of a search. What was found is requested as by `track`, in the same transaction, with the cause
   * `reconcile`: no event has announced it. What was read for the business before, and has not ended, is not requested. False when the caller has lost the lease, as by an erasure: nothing was written.
   */
  finishSearch(claim: SearchClaim, finish: SearchFinish): Promise<boolean>
}

/** The counts of searches for health. */
export interface SearchCounts {
  /** The searches that the app has asked for, up to `COUNTED_UP_TO`. */
  askedSearches: number
  /** Of these, the ones whose last try failed. */
  failedSearches: number
  /** The requests of the last hour for which this process made no search, because there are as many as there may be. */
  unsearched: number
  /** How long the search that is longest due has been due, without those of installs; null when none is due. */
  oldestSearchMs: number | null
}
