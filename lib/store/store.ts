import type { ClaimRead, Leased, ReadClaim, ReadFinish, Subscription, SubscriptionCounts } from './reads.js'
import type { StoreOwner } from './store-owner.js'

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
 * `subscriptions` has one row per subscription: the record as last read, and the work of reading it again. `journal`
 * has one row per delivery and change, with what became of it. A lane is the line of pending entries of one key: work
 * is taken by the lane, so that looking for it costs what is due and not what waits.
 *
 * Work is leased: a claim hands out an item with a lease token and makes it due again when the lease runs out. Whoever
 * finishes names the token; when the lease has passed to somebody else the finish changes nothing and answers false.
 * Times are milliseconds since 1970, from one clock: the store's.
 */
export interface Store {
  /** Opens and migrates, for `owner` only. What failed leaves nothing behind and may be tried again. Rejects `store_…`, `closed`. */
  open(owner?: StoreOwner): Promise<void>
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
   * left to that read. Answers false, and has written nothing, when the lease is no longer the caller's.
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
  /** Copies everything into the new file `path` while work goes on. Rejects `backup_failed`. */
  backup(path: string): Promise<void>
  /** What the last write or sync met, in words; null after the next that succeeds. */
  problem?(): string | null

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
/**
 * `pending`: in its lane, to be handled. `waiting`: nobody handles its topic now; pending as soon as somebody does.
 * `unhandled`: an event that nobody handled when it came. `done`: its handlers returned. `dead`: out of tries, or out
 * of time while it waited. Only a replay makes the last three pending again.
 */
export type EntryStatus = 'pending' | 'waiting' | 'unhandled' | 'done' | 'dead'

/** What handlers are registered for: `change`, `unrecognised`, or `event:` and a registration name. */
export type Topic = string
/** The topic of a handler for events of every name. */
export const EVERY_EVENT: Topic = 'event:*'
export const topicOf = ({ kind, name }: { kind: EntryKind; name: string }): Topic =>
  kind === 'event' ? `event:${name}` : kind
/** Whether a handler for one of `topics` gets entries of `topic`. */
export const isTopicAmong = (topics: { has(topic: Topic): boolean }, topic: Topic): boolean =>
  topics.has(topic) || (topic.startsWith('event:') && topics.has(EVERY_EVENT))

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

export interface ClaimLanes {
  /** Lanes at most. */
  limit: number
  /** Entries at most, of all lanes together; each lane hands out one at least. */
  entries: number
  leaseMs: number
  /** What this process handles. */
  topics: readonly Topic[]
  /** Lanes of which this process is handling something, whatever any clock shows. */
  exceptKeys: readonly string[]
}

/** The line of entries of one key. Its `id` is the key. */
export interface LaneClaim extends Leased {
  /** Leases that ran out in a row without a finish, this one not counted. After one, only the head is handed out. */
  lapses: number
  /** Never empty: the head, and what follows it up to the first entry of a topic that was not asked for. */
  entries: Entry[]
}

export interface HandleTopics {
  topics: readonly Topic[]
  /** Also hand over events that were found unhandled within this time: their receiver did not know of the handler yet. */
  rescueMs: number
  retireMs: number
}

export interface Entry {
  id: string
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
}

/** What became of entries of one lane. */
export interface LaneFinish extends Leased {
  results: readonly EntryEnd[]
  /** Whether the lease stays, for the entries that were handed out and are not named here. */
  keep: boolean
}

export interface EntryEnd {
  id: string
  attempt: number
  /** `retry` is due again in `inMs`; `dead` waits for a replay. */
  result: { kind: 'done' } | { kind: 'retry'; inMs: number; error: string } | { kind: 'dead'; error: string }
}

export interface EntryFilter {
  /** `retrying`: pending, and tried before. */
  status?: EntryStatus | 'retrying'
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

/** Counted from when an entry was done, dead, or began to wait for a handler; of a subscription, since it was requested. */
export type Retention = Record<'doneMs' | 'changesMs' | 'deadMs', number>

export interface Pruned {
  /** Rows deleted or ended; 0 when there is nothing more to do. */
  rows: number
  /** What ended because nobody came to handle it. */
  dead: DeadEntry[]
}

/** An entry that ran out of tries, or of time while it waited for a handler. */
export interface DeadEntry {
  id: string
  kind: EntryKind
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  attempts: number
  error: string
}

/** Each number is counted up to `COUNTED_UP_TO`. */
export type StoreCounts = EntryCounts & SubscriptionCounts

export interface EntryCounts {
  /** Entries that wait for a handler's turn. */
  pending: number
  /** Of those, the ones that were tried before. */
  retrying: number
  /** The age of the oldest pending entry, in ms; null when there is none. */
  oldestPendingMs: number | null
  dead: number
  /** Changes and events whose handler is not registered anywhere now. */
  waiting: number
  unrecognised: number
}

/**
 * `requested`: a read is due. `journal`: an entry is due. `decided`: a read of a business was finished; null: of any.
 * `superseded`: its record, or whether it is gone, has changed, so that an answer from before must not be used again.
 */
export type Hint =
  | { kind: 'requested'; businessUid: string | null }
  | { kind: 'journal' }
  | { kind: 'decided'; businessUid: string | null; superseded: boolean }
