import type {
  ClaimLanes,
  EntryCounts,
  EntryFilter,
  HandleTopics,
  JournalEntry,
  LaneClaim,
  LaneFinish,
  NewEvent,
  Pruned,
  Retention,
} from './entries.js'
import type { StoreObservation } from './observed.js'
import type {
  ClaimReads,
  Leased,
  ReadClaim,
  ReadFinish,
  RefreshRequest,
  Subscription,
  SubscriptionCounts,
} from './reads.js'
import type {
  Erased,
  KeptSubscription,
  NewAction,
  SubscriptionFilter,
  Timeline,
  TimelineItem,
} from './records.js'
import type { StoreOwner } from './store-owner.js'

export {
  type ClaimLanes,
  type DeadEntry,
  type Entry,
  type EntryCounts,
  type EntryEnd,
  type EntryFilter,
  type EntryKind,
  type EntryStatus,
  EVERY_EVENT,
  type HandleTopics,
  isTopicAmong,
  type JournalEntry,
  type LaneClaim,
  type LaneFinish,
  type NewEvent,
  type Pruned,
  type Retention,
  type Topic,
  topicOf,
} from './entries.js'
export type {
  DueWork,
  Instance,
  InstanceReport,
  NewTally,
  StoreObservation,
  Tally,
  TallyKind,
} from './observed.js'
export {
  type ClaimReads,
  COUNTED_UP_TO,
  type Leased,
  type NewChange,
  type ReadClaim,
  type ReadFinish,
  type RefreshRequest,
  type Subscription,
  type SubscriptionCounts,
  type Urgency,
} from './reads.js'
export type {
  Erased,
  KeptSubscription,
  NewAction,
  SubscriptionFilter,
  Timeline,
  TimelineItem,
  TimelinePlace,
} from './records.js'
export type { StoreOwner } from './store-owner.js'

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
export interface Store extends StoreObservation {
  /** Opens and migrates, for `owner` only. What failed leaves nothing behind and may be tried again. Rejects `store_…`, `closed`. */
  open(owner?: StoreOwner): Promise<void>
  /** Waits for what is under way, then lets go of the database. Safe to call twice, and before `open`. */
  close(): Promise<void>

  /**
   * Keeps events and marks what they speak of as requested, in one transaction that is on disk when this resolves.
   * Concurrent calls share commits. Rejects `store_unavailable` when the events may not have been kept.
   * An event whose `id` is already kept is kept once. Rejects `argument_invalid` for what no database can keep.
   */
  accept(events: readonly NewEvent[]): Promise<void>
  /** Marks without an event: a subscription to track, or all of a business's to be read again. Durable like `accept`. */
  requestRefresh(request: RefreshRequest): Promise<void>

  /** What is known of a business, as it was learned; of very many that were never read, the newest are enough. */
  subscriptionsOf(businessUid: string): Promise<Subscription[]>
  /** What is known of these subscriptions, in no order; at most 1,000 at once. */
  subscriptionsNamed(subscriptionUids: readonly string[]): Promise<Subscription[]>

  /**
   * Makes what was remembered of other items due for a read where the item is one of these now; an empty list means
   * every item. Called when a process starts, whose configuration may have changed.
   */
  adoptItems(purchasableUids: readonly string[]): Promise<void>

  /**
   * Leases up to `limit` subscriptions that are due for a read, of the classes that `choose` names, the longest due
   * first; of class 1, which anybody can fill, by turns the longest due and the newest. Never one of `except`'s
   * businesses, nor two of one business. Fewer than `limit`: nothing else may be read now.
   */
  claimReads(options: ClaimReads): Promise<ReadClaim[]>
  /** Prolongs the lease of a read; false when it is no longer held. */
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
   * Leases up to `limit` lanes whose head is due and handled by the caller, the longest due first, and hands out their
   * first entries, in order. What it hands out is on disk.
   */
  claimLanes(options: ClaimLanes): Promise<LaneClaim[]>
  /** Prolongs the lease of a lane; false when it is no longer held. */
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
  /** The entry of this id, or undefined. */
  getEntry(id: string): Promise<JournalEntry | undefined>
  /** Subscriptions for people, by their uids in the order of the bytes. */
  listSubscriptions(filter: SubscriptionFilter): Promise<KeptSubscription[]>
  /** What came in for a business and what became of it, newest first: page by page each item once. */
  timelineOf(businessUid: string, timeline: Timeline): Promise<TimelineItem[]>
  /** Keeps what a person did as an entry that is done. On disk when this resolves. */
  recordAction(action: NewAction): Promise<void>
  /**
   * Deletes what is kept of a business: its subscriptions, the entries that name it or one of them, and where it is a
   * candidate; in small batches, so that it may be called again when it has failed. `record` is kept, as an action, and
   * so are those of erasures before. What a read or a handler that had begun before finishes later changes nothing; it
   * loses its lease. What is accepted meanwhile may stay.
   */
  erase(businessUid: string, record: NewAction): Promise<Erased>
  /**
   * Makes an entry pending from its first try, or `waiting` while nobody handles its topic. If a lane that may have
   * handed it out is leased, the holder loses the lease, and the lane is due when that lease would have run out.
   * False: no entry has this id, or it is an action.
   */
  replayEntry(id: string): Promise<boolean>
  /** One small batch: deletes what is past its retention, and ends as dead what waited that long for a handler. */
  prune(keep: Retention): Promise<Pruned>
  /** How much it has, for health and metrics. */
  counts(): Promise<StoreCounts>
  /** Copies everything into the new file `path` while work goes on. Rejects `backup_failed`. */
  backup(path: string): Promise<void>
  /** What the last write or sync met, in words; null after the next that succeeds. */
  problem?(): string | null

  /** Tells of what this store committed, and where the engine can, of what others did. Answers the way to stop. */
  subscribe(listener: (hint: Hint) => void): () => void
}

/** The pause between two reads of one subscription. */
export const MIN_READ_INTERVAL_MS = 250
/**
 * While requests follow each other within the pause, the next read waits until they cease, so that it sees what all of
 * them announce; but no longer than this after the read before. So 10,000 events within two seconds cost two reads, and a flood
 * costs one every two seconds.
 */
export const MAX_READ_INTERVAL_MS = 2_000
/** An item whose lease ran out this many times in a row without a finish may be what ends the process. */
export const MAX_LAPSES = 5

/**
 * The key of a subscription's entries: those of one key are handled in order.
 *
 * @example subscriptionKey('subscription-1') // subscription:subscription-1
 */
export const subscriptionKey = (subscriptionUid: string): string => `subscription:${subscriptionUid}`
/**
 * The key of a business's entries that name no subscription.
 *
 * @example businessKey('business-1') // business:business-1
 */
export const businessKey = (businessUid: string): string => `business:${businessUid}`

/** Each number is counted up to `COUNTED_UP_TO`. */
export type StoreCounts = EntryCounts & SubscriptionCounts

/**
 * `requested`: a read is due. `journal`: an entry is due. `decided`: a read of a business was finished; null: of any.
 * `superseded`: its record, or whether it is gone, has changed, or it was erased, so that an answer from before must not
 * be used again.
 */
export type Hint =
  | { kind: 'requested'; businessUid: string | null }
  | { kind: 'journal' }
  | { kind: 'decided'; businessUid: string | null; superseded: boolean }
