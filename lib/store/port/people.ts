import type { EntryKind, EntryStatus } from './journal.js'
import type { Subscription } from './subscriptions.js'

/** Which subscriptions to list. */
export interface SubscriptionFilter {
  subscriptionUid?: string
  businessUid?: string
  /** Subscriptions that have this business as their candidate. */
  candidateBusinessUid?: string
  /** Subscriptions after this uid, sorted by bytes. */
  after?: string
  /** The most subscriptions: 1 to 1,000. */
  limit: number
}

/** A subscription with everything that the store has of it, except for its lease. */
export interface StoredSubscription extends Subscription {
  candidateBusinessUid: string | null
  /** The latest date that the platform gave an install or uninstall. */
  installAt: number | null
  /** When the store learned of the newest of them, if it is an uninstall. */
  uninstalledAt: number | null
  createdAt: number
}

/** An action of a person, for the journal. It is stored as an entry that is done, and never handled. */
export interface NewAction {
  /** Unique, made by the caller. */
  id: string
  name: string
  businessUid: string | null
  subscriptionUid?: string | null
  /** JSON text. */
  payload: string
}

/**
 * A place in the timeline of a business, in the store's time. Items are sorted by `at`, then by `seq`, then by `rank`:
 * 0 for an entry, 1 for its outcome.
 */
export interface TimelinePlace {
  at: number
  seq: number
  rank: 0 | 1
}

/** An item of a business's timeline. */
export interface TimelineItem {
  place: TimelinePlace
  /** `place.at` as the caller's wall clock shows it. */
  at: number
  /** Whether this is the entry or its outcome. */
  of: 'entry' | 'outcome'
  entryId: string
  kind: EntryKind
  name: string
  subscriptionUid: string | null
  status: EntryStatus
  attempts: number
  error: string | null
  /** When the entry is tried again, if it is. */
  dueAt: number | null
  /** No handler has answered the entry so far, and some process has one. */
  isWaiting: boolean
  /** JSON text; null but for changes and actions. */
  payload: string | null
}

/** Which page of a timeline to return. */
export interface Timeline {
  /** Items before this place or this time. */
  before?: TimelinePlace | number
  /** The most items. */
  limit: number
}

/** A finished erasure. */
export interface Erased {
  /** Rows that were deleted or changed. */
  rows: number
  /** When its record was written. */
  at: number
}
