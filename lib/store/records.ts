import type { EntryKind, EntryStatus } from './entries.js'
import type { Subscription } from './reads.js'

/** Subscriptions for people. */
export interface SubscriptionFilter {
  subscriptionUid?: string
  businessUid?: string
  /** Those that this business was named for beside their own. */
  candidateBusinessUid?: string
  /** Those behind this uid, in the order of the bytes. */
  after?: string
  /** At most this many: 1 to 1,000. */
  limit: number
}

/** All that is kept of a subscription but its lease. */
export interface StoredSubscription extends Subscription {
  candidateBusinessUid: string | null
  /** When what was last learned of installs happened, by the platform. */
  installAt: number | null
  uninstalledAt: number | null
  createdAt: number
}

/** What a person did, for the journal: kept like an entry that is done, and never handled. */
export interface NewAction {
  /** Made by the caller, unique. */
  id: string
  name: string
  businessUid: string | null
  /** JSON text. */
  payload: string
}

/**
 * A place in the timeline of a business, in the store's time. Items are ordered by `at`, then by `seq`, then by `rank`:
 * 0 an entry when it came, 1 what became of it.
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
  /** Whether this is the entry as it came, or what became of it. */
  of: 'entry' | 'outcome'
  entryId: string
  kind: EntryKind
  name: string
  subscriptionUid: string | null
  status: EntryStatus
  attempts: number
  error: string | null
  /** Of an entry that is tried again: when. */
  dueAt: number | null
  /** JSON text, of changes and actions only. */
  payload: string | null
}

/** A page of a business's timeline. */
export interface Timeline {
  /** Items before this place; or before this time, by the caller's wall clock. */
  before?: TimelinePlace | number
  limit: number
}

/** An erasure that has ended. */
export interface Erased {
  /** Rows that were deleted or changed. */
  rows: number
  /** When it was recorded, by the caller's wall clock. */
  at: number
}
