import type { ClaimRead, Leased, ReadClaim, ReadFinish, Subscription, SubscriptionCounts } from './reads.js'

export {
  type ClaimRead,
  COUNTED_UP_TO,
  type Leased,
  type NewChange,
  type ReadClaim,
  type ReadFinish,
  type Subscription,
  type SubscriptionCounts,
  type Urgency,
} from './reads.js'

/**
 * The store port: what the rest of the package asks of a database, and what a database promises back.
 *
 * Two tables stand behind it. `subscriptions` has one row per subscription: the record as last read, and the work of
 * reading it again. `journal` has one row per event or change that waits for the app's handlers.
 *
 * Work is leased: a claim hands out an item with a lease token and makes it due again when the lease runs out. Whoever
 * finishes names the token; when the lease has passed to somebody else the finish changes nothing and answers false.
 * Times are milliseconds since 1970, from one clock: the store's.
 */
export interface Store {
  /** Opens and migrates. Rejects `store_driver_missing`, `store_corrupt`, `store_in_use`, `store_unavailable`, `closed`. */
  open(): Promise<void>
  /** Waits for what is under way, then lets go of the database. Safe to call twice, and before `open`. */
  close(): Promise<void>

  /**
   * Keeps events and marks what they speak of as wanted, in one transaction that is on disk when this resolves.
   * Concurrent calls share commits. Rejects `store_unavailable` when the events may not have been kept.
   * An event whose `id` is already kept is kept once. Rejects `argument_invalid` for what no database can keep.
   */
  accept(events: readonly NewEvent[]): Promise<void>
  /** Marks without an event: a subscription to track, or all of a business's to be read again. Durable like `accept`. */
  requestRefresh(request: RefreshRequest): Promise<void>

  /** What is known of a business, as it was learned; of very many that were never read, the newest are enough. */
  subscriptionsOf(businessUid: string): Promise<Subscription[]>

  /**
   * Makes what was remembered of other items due for a read where the item is one of these now; an empty list means
   * every item. Called when a process starts, whose configuration may have changed.
   */
  adoptItems(purchasableUids: readonly string[]): Promise<void>

  /**
   * Leases one subscription that is due for a read, or answers undefined. Takes it from the first of `urgencies` that
   * has one, the longest due first. Never one of `except`'s businesses.
   */
  claimRead(options: ClaimRead): Promise<ReadClaim | undefined>
  renewRead(claim: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes what a read found, together with the changes it made visible, in one transaction.
   * When a read was requested again after the claim, the subscription is due again after `MIN_READ_INTERVAL_MS`
   * whatever `nextInMs` says; what rests on what the claim saw (`candidate`, `clearUninstalled`, a revocation) is then
   * left to that read. Answers false, and has written nothing, when the lease is no longer the caller's; false, too,
   * for a revocation that comes too late, of which only the failed read is written.
   */
  finishRead(claim: ReadClaim, finish: ReadFinish): Promise<boolean>

  /**
   * Leases up to `limit` journal entries that are due, oldest first, at most one per key, and never one behind an
   * older pending entry of the same key (among `kinds`).
   */
  claimEntries(options: ClaimEntries): Promise<Entry[]>
  /** Ends due events that nobody handles, a batch at a time, without leasing them; answers how many. */
  skipEntries(options: SkipEntries): Promise<number>
  renewEntry(entry: Leased, leaseMs: number): Promise<boolean>
  /** Ends leased entries; those whose lease has passed on are left alone and not answered back. */
  finishEntries(finishes: readonly EntryFinish[]): Promise<string[]>

  /** Entries for people, newest first. */
  listEntries(filter: EntryFilter): Promise<JournalEntry[]>
  /** Makes an entry pending with no attempts: due now, or when the lease of who has it is over. False: there is none. */
  replayEntry(id: string): Promise<boolean>
  /** Deletes one small batch of what is past its keeping time; answers how many rows went, 0 when there is no more. */
  prune(keep: Retention): Promise<number>
  counts(): Promise<StoreCounts>

  /** Tells of what this store committed, and where the engine can, of what others did. Answers the way to stop. */
  subscribe(listener: (hint: Hint) => void): () => void
}

/** The pause between two reads of one subscription: a flood of events costs at most 4 reads a second. */
export const MIN_READ_INTERVAL_MS = 250
/** An item whose lease ran out this many times in a row without a finish may be what ends the process. */
export const MAX_LAPSES = 5

/** The keys under which everything about one subscription, or a business as such, stands in line. */
export const subscriptionKey = (subscriptionUid: string): string => `subscription:${subscriptionUid}`
export const businessKey = (businessUid: string): string => `business:${businessUid}`

export type EntryKind = 'event' | 'change' | 'unrecognised'
export type EntryStatus = 'pending' | 'done' | 'dead'

export interface NewEvent {
  /** Made by the caller, unique: the handlers' idempotency key. */
  id: string
  kind: 'event' | 'unrecognised'
  /** The registration name, or '' when unrecognised. */
  name: string
  /** Entries of one key are handled in order and never at once. */
  key: string
  businessUid: string | null
  subscriptionUid: string | null
  /** The envelope as JSON text. */
  payload: string
  /** Why it was not recognised, one sentence each. */
  issues: readonly string[] | null
  wanted: RefreshRequest | null
}

/** What an event asks to be read again. */
export type RefreshRequest =
  /**
   * This subscription, learned of if it is new. The first request decides its business; another business is kept as its
   * candidate. Only a record that the platform shows for the candidate moves the subscription.
   */
  | { kind: 'subscription'; subscriptionUid: string; businessUid: string; purchasableUid: string | null }
  /** This subscription if it is known; an event alone does not make it the app's. */
  | { kind: 'known'; subscriptionUid: string; businessUid: string }
  /** A notice for an item that is not the app's: remembered, so that a person can see why nobody is let in. */
  | { kind: 'other_item'; subscriptionUid: string; businessUid: string; purchasableUid: string }
  /** Every known subscription of the business. Of installs and uninstalls the last to happen counts: `at`; null: now. */
  | { kind: 'business'; businessUid: string; install: { installed: boolean; at: number | null } | null }

export interface ClaimEntries {
  limit: number
  leaseMs: number
  kinds: readonly EntryKind[]
}

export interface SkipEntries {
  limit: number
  kinds: readonly ('event' | 'unrecognised')[]
  /** Names of events that are handled, and stay. */
  exceptNames: readonly string[]
}

export interface Entry extends Leased {
  kind: EntryKind
  name: string
  key: string
  businessUid: string | null
  subscriptionUid: string | null
  payload: string
  issues: string[] | null
  receivedAt: number
  /** Tries so far, this one included: 1 at the first. */
  attempt: number
  lapses: number
}

export interface EntryFinish extends Leased {
  /** `retry` is due again in `inMs`; `dead` waits for a replay. */
  result: { kind: 'done' } | { kind: 'retry'; inMs: number; error: string } | { kind: 'dead'; error: string }
}

export interface EntryFilter {
  status?: EntryStatus
  kind?: EntryKind
  businessUid?: string
  subscriptionUid?: string
  /** At most this many, 100 unless told; bounds 1 to 1,000. */
  limit?: number
  /** Entries older than the one with this id: the last id of the page before. */
  before?: string
}

/** Times are ISO 8601, UTC. */
export interface JournalEntry {
  id: string
  kind: EntryKind
  name: string
  status: EntryStatus
  businessUid: string | null
  subscriptionUid: string | null
  payload: unknown
  issues: string[] | null
  attempts: number
  error: string | null
  receivedAt: string
  dueAt: string | null
}

/** Since it was received or wanted. */
export type Retention = Record<'doneMs' | 'changesMs' | 'deadMs', number>

/** Journal entries pending, dead, and unrecognised; and what there is of subscriptions. */
export type StoreCounts = Record<'pending' | 'dead' | 'unrecognised', number> & SubscriptionCounts

/**
 * `requested`: a read is due. `journal`: an entry is due. `decided`: a read of a business was finished; null: of any.
 * `superseded`: its record, or whether it is gone, has changed, so that an answer from before must not be used again.
 */
export type Hint =
  | { kind: 'requested'; businessUid: string | null }
  | { kind: 'journal' }
  | { kind: 'decided'; businessUid: string | null; superseded: boolean }
