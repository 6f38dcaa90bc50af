import type { SubscriptionRecord } from '../record.js'
import type {
  ClaimLanes,
  EntryFilter,
  HandleTopics,
  JournalEntry,
  LaneClaim,
  LaneFinish,
  Leased,
  Pruned,
  Retention,
} from './entries.js'

export * from './entries.js'

/**
 * The store port: what the rest of the package asks of a database, and what a database promises back.
 *
 * `subscriptions` has one row per subscription: the record as last read, and the work of reading it again. `journal`
 * has one row per delivery and change, with what became of it. A lane is the line of pending entries of one key: work
 * is taken by the lane, so that looking for it costs what is due and not what waits.
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

  /** Leases one subscription that is due for a read, or answers undefined. Never one of `except`'s businesses. */
  claimRead(options: ClaimRead): Promise<ReadClaim | undefined>
  renewRead(claim: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes what a read found, together with the change it made visible, in one transaction.
   * When the subscription was wanted again after the claim, it is due again after `MIN_READ_INTERVAL_MS` whatever
   * `nextInMs` says. Answers false, and has written nothing, when the lease is no longer the caller's.
   */
  finishRead(claim: ReadClaim, finish: ReadFinish): Promise<boolean>

  /**
   * Leases up to `limit` lanes whose head is due and handled by the caller, the longest due first, and hands out their
   * first entries, in order. What it hands out is on disk.
   */
  claimLanes(options: ClaimLanes): Promise<LaneClaim[]>
  renewLane(lane: Leased, leaseMs: number): Promise<boolean>
  /** Writes what became of entries of leased lanes; answers the keys of those whose lease was still the caller's. */
  finishLanes(finishes: readonly LaneFinish[]): Promise<string[]>
  /**
   * Keeps the topics of this process known to all, and hands over what waited for them, in order. Also sets aside as
   * `waiting` what stands in lanes for topics that no process has named for `retireMs`. Resolves when all of it is done.
   */
  handleTopics(options: HandleTopics): Promise<void>

  /** Entries for people, newest first. */
  listEntries(filter: EntryFilter): Promise<JournalEntry[]>
  /**
   * Makes an entry pending from its first try, or `waiting` while nobody handles its topic. If a lane that may have
   * handed it out is leased, the holder loses the lease, and the lane is due when that lease would have run out.
   * False: no entry has this id.
   */
  replayEntry(id: string): Promise<boolean>
  /** One small batch: deletes what is past its retention, and ends as dead what waited that long for a handler. */
  prune(keep: Retention): Promise<Pruned>
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
   * This subscription, learned of if it is new. The first word for its business and item stands until a read fails with
   * `platform_record_missing`, `platform_refused`, `platform_record_mismatch` or `token_refused`; then the next counts.
   */
  | { kind: 'subscription'; subscriptionUid: string; businessUid: string; purchasableUid: string | null }
  /** This subscription if it is known; an event alone does not make it the app's. */
  | { kind: 'known'; subscriptionUid: string; businessUid: string }
  /** A notice for an item that is not the app's: remembered, so that a person can see why nobody is let in. */
  | { kind: 'other_item'; subscriptionUid: string; businessUid: string; purchasableUid: string }
  /** Every known subscription of the business. Of installs and uninstalls the last to happen counts: `at`; null: now. */
  | { kind: 'business'; businessUid: string; install: { installed: boolean; at: number | null } | null }

export interface Subscription {
  subscriptionUid: string
  businessUid: string
  /** The record as last applied; null until the first successful read. Kept as evidence when `gone`. */
  record: SubscriptionRecord | null
  /** The effective purchase_state; null until read, and when `gone`. */
  state: string | null
  /** The platform no longer shows it (`missing`), or refuses the token after an uninstall (`revoked`). */
  gone: 'missing' | 'revoked' | null
  /** When a read last confirmed `state`. */
  readAt: number | null
  /** When an event, `track` or `refresh` last asked for a read. */
  requestedAt: number | null
  /** A read was asked for and none begun since has finished well. */
  pending: boolean
  /** Code of the last read's failure, if it failed and no further read has been asked for since. */
  failure: string | null
  /** When the next read is due; null when it was given up (only an event, `track` or `refresh` revives it). */
  refreshAt: number | null
}

export interface ClaimRead {
  leaseMs: number
  /** Businesses that are being read by this process. */
  except: readonly string[]
  /** `known` subscriptions have been read before; `new` ones never. Each has its own lane so neither starves. */
  lane: 'known' | 'new'
}

export interface ReadClaim extends Leased {
  subscription: Subscription
  /** The generation this read will settle. */
  wanted: number
  /** The generation settled last; below `wanted` when an event asked for this read. */
  done: number
  /** Leases that ran out in a row without a finish, this one not counted. */
  lapses: number
  /** When the business was last said to have uninstalled the app, with no install after it. */
  uninstalledAt: number | null
  /** When the subscription was first heard of. */
  createdAt: number
  /** The reader's own memory between tries: JSON, opaque to the store. */
  progress: string | null
}

export interface ReadFinish {
  /** Set when the read changed or confirmed what is known; absent when it failed or showed nothing to go by. */
  found?: {
    record: SubscriptionRecord | null
    state: string | null
    gone: Subscription['gone']
    confirmed: boolean
  }
  /** Whether the claimed generation is settled by this read. */
  settled: boolean
  failure: string | null
  progress: string | null
  /** When to read next, from now; null gives up. */
  nextInMs: number | null
  /** Forget the uninstall: the platform has served the business long after it. */
  clearUninstalled?: boolean
  /** The observed change, if any; `entitled` is asked inside the transaction with the business's rows as written. */
  change?: { id: string; key: string; payload(subscriptions: Subscription[], now: number): string }
}

/** The journal's numbers are counted up to this and no further. */
export const MAX_COUNT = 10_000

/**
 * Subscriptions known, of them wanted and given up; journal entries pending, of them tried before, dead, waiting for a
 * handler, and unrecognised; and since when, in ms, the oldest pending one was received.
 */
export type StoreCounts = Record<
  'subscriptions' | 'wanted' | 'givenUp' | 'pending' | 'retrying' | 'dead' | 'waiting' | 'unrecognised',
  number
> & { oldestPendingMs: number | null }

/** `wanted`: a read is due. `journal`: an entry is due. `decided`: what is known of a business changed; null: of any. */
export type Hint =
  | { kind: 'requested'; businessUid: string | null }
  | { kind: 'journal' }
  | { kind: 'decided'; businessUid: string | null }
