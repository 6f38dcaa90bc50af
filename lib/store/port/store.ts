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
  SuspectCalls,
  TurnedAway,
} from './journal.js'
import type { OtherBusinesses, ReadOthers, StoreObservation, SubscriptionCounts } from './operators.js'
import type {
  Erased,
  NewAction,
  StoredSubscription,
  SubscriptionFilter,
  Timeline,
  TimelineItem,
} from './people.js'
import type { SearchCalls, SearchCounts } from './searches.js'
import type {
  Cause,
  ClaimReads,
  Leased,
  ReadClaim,
  ReadFinish,
  RefreshRequest,
  StoredEntitlement,
  Subscription,
} from './subscriptions.js'

export * from './journal.js'
export * from './operators.js'
export * from './people.js'
export * from './searches.js'
export * from './subscriptions.js'

/**
 * The store port: what the other parts ask of the database, and what both engines promise.
 *
 * A store holds subscriptions and a journal. A subscription is the record as last read, and the work of reading it
 * again. The journal has one entry for each delivery, change and action, with its outcome. A lane is the line of
 * pending entries of one key. Entries are claimed by the lane, so a look for work costs what is due, not what waits.
 *
 * Work is leased. A claim returns an item with a lease token, and the item is due again when the lease runs out. Every
 * finish names the token. A finish whose lease is no longer the caller's changes nothing, and its result shows that.
 * A read or an entry whose lease ran out is suspect, and only the calls of `SuspectCalls` lease it.
 *
 * A time is a number of milliseconds since 1970, as the caller's wall clock shows it, unless the field states another unit.
 * The store judges leases and due times by time of its own, so the clocks of its processes may differ.
 *
 * Every call rejects with a `MarketplaceError`, most often `store_unavailable`, and `argument_invalid` for data that the
 * database refuses.
 */
export interface Store extends StoreObservation, SuspectCalls, SearchCalls {
  /**
   * Opens the database and migrates it, for the app `owner` only. A failed opening leaves nothing open and may be tried
   * again. Rejects `store_unavailable`, `store_in_use`, `store_corrupt`, `store_driver_missing`, `store_of_another_app`
   * and `closed`.
   */
  open(owner?: StoreOwner): Promise<void>
  /** Waits for the calls under way, then closes the database. May be called twice, and before `open`. */
  close(): Promise<void>

  /**
   * Writes events and their refresh requests in one transaction, which is on disk when this resolves. Concurrent calls
   * share commits. An event whose `id` is stored already is not stored again.
   *
   * A store keeps a bounded amount of what names something that was read before, and of all else. Beyond that it rejects
   * events with `delivery_turned_away`, and only counts unrecognised deliveries: it resolves with the ids of these. Of a
   * call that it rejects so, it stores the events for which there is room, and the requests of what was read before.
   *
   * Rejects `store_unavailable` when the events may be missing, and `argument_invalid` for a text that no database can
   * store.
   *
   * @param waitedMs how long the delivery has waited before, so that its sender hears in time that it was turned away
   */
  accept(events: readonly NewEvent[], waitedMs?: number): Promise<readonly string[]>
  /**
   * Writes a refresh request without an event. On disk when this resolves. `cause`: `request` for `track` and `refresh`,
   * which is the default, or `import`.
   */
  requestRefresh(request: RefreshRequest, cause?: Extract<Cause, 'request' | 'import'>): Promise<void>

  /**
   * The subscriptions of a business, oldest first. When there are very many, those that were never read may be cut down
   * to the newest.
   */
  subscriptionsOf(businessUid: string): Promise<Subscription[]>
  /** The subscriptions with these uids, at most 1,000, in no order. */
  subscriptionsNamed(subscriptionUids: readonly string[]): Promise<Subscription[]>

  /**
   * Leases up to `limit` subscriptions whose read is due, from the classes that `choose` names. The longest due comes
   * first; in class 1, which anybody can fill, the longest due and the newest take turns. It leases no subscription of a
   * business in `except`, and no two of one business, except one that was never read (class 1) beside one of another class.
   * Fewer than `limit` without a call of `onPutOff` means that this look
   * found no other: others may be locked, or found by a later look.
   */
  claimReads(options: ClaimReads): Promise<ReadClaim[]>
  /**
   * Makes the requested due reads of a business, for which a visitor waits, the longest due ones of their classes that are
   * seen, by a millisecond.
   */
  readFirst(businessUid: string): Promise<void>
  /** Extends the lease of a read. False when the caller has lost it. */
  renewRead(claim: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes the result of a read, together with the changes it shows, in one transaction.
   *
   * When another read was requested after the claim, the subscription is due again after `MIN_READ_INTERVAL_MS`,
   * whatever `nextInMs` is (unless `isUntried`), and `candidate`, `clearUninstalled`, `clearUpdate` and `clearEnd` are
   * not applied: that read decides them.
   *
   * False in three cases. The caller has lost the lease: nothing was written. The read finds that the subscription is
   * `revoked` or `ended`, and another read was requested after the claim: once in a row, and whenever an event has taken back the
   * uninstall or the end that the claim has seen. Or the record names another business, which was
   * erased after the claim. In these two only a failed read was written, and the subscription is due again: after
   * `MIN_READ_INTERVAL_MS` if another read was requested, else at once. A call that is repeated resolves as the one that wrote,
   * as long as no other read of the subscription was finished since.
   */
  finishRead(claim: ReadClaim, finish: ReadFinish): Promise<boolean>
  /** Compares the other businesses with the one of a claim, whose reads have failed for `failingMs`. */
  otherBusinesses(claim: ReadClaim, failingMs: number): Promise<OtherBusinesses>
  /** Makes up to `limit` subscriptions of other businesses due, and returns how many. */
  readOthers(claim: ReadClaim, options: ReadOthers): Promise<number>

  /**
   * Leases up to `limit` lanes whose head is due and has a topic of the caller, the longest due first, and returns their
   * first entries in order. The lease is on disk when this resolves.
   */
  claimLanes(options: ClaimLanes): Promise<LaneClaim[]>
  /** Extends the lease of a lane. False when the caller has lost it. */
  renewLane(lane: Leased, leaseMs: number): Promise<boolean>
  /**
   * Writes the results of entries of leased lanes. Returns the keys of the lanes whose results stand: whose lease is still
   * the caller's, or was it when an earlier call with the same finish wrote them.
   */
  finishLanes(finishes: readonly LaneFinish[]): Promise<string[]>
  /**
   * Stores the topics of this process for all processes: from now on their events are pending. Makes those pending that
   * came before, within `rescueMs` or while a process that had such a handler was missing, and sets events aside whose
   * topic no process has named for `retireMs`. Resolves when all of that is done, and the caller may claim these topics.
   */
  handleTopics(options: HandleTopics): Promise<void>

  /** Entries of the journal, newest first. */
  listEntries(filter: EntryFilter): Promise<JournalEntry[]>
  /** The entry with this id, or undefined. */
  getEntry(id: string): Promise<JournalEntry | undefined>
  /** The payloads of this entry about an entitlement, and of all later ones of its business, in the order of their writing. */
  entitlementsFrom(id: string): Promise<StoredEntitlement[]>
  /** Subscriptions, sorted by the bytes of their uids. */
  listSubscriptions(filter: SubscriptionFilter): Promise<StoredSubscription[]>
  /** Businesses with a subscription, each once, after this one in the order of the database. */
  listBusinesses(page: { after?: string; limit: number }): Promise<string[]>
  /** The entries of a business and their outcomes, newest first. Consecutive pages contain each item once. */
  timelineOf(businessUid: string, timeline: Timeline): Promise<TimelineItem[]>
  /** Writes the action of a person as an entry that is done. On disk when this resolves. */
  recordAction(action: NewAction): Promise<void>
  /**
   * Deletes the data of a business: its subscriptions, the entries that name it or one of them, and its candidacies. It
   * first writes `record` as an action. The actions of people stay as the audit, until their own retention ends: they have
   * `auditUid(businessUid)` in place of the business, also in the reason, and none of its subscriptions. Actor and name stay.
   * `listEntries` and `timelineOf` find them by the uid itself. Reads and handlers under way lose their leases, so their
   * finishes change nothing. Events accepted meanwhile may stay.
   * It works in small batches. After a failure it may be called again.
   */
  erase(businessUid: string, record: NewAction): Promise<Erased>
  /**
   * Makes an entry pending again, from its first try. If the entry may have been handed out, the holder of its lane loses
   * the lease, and the lane is due when that lease would have run out. False: no entry has this id, it is an
   * action, or it does not have the given status.
   */
  replayEntry(id: string, status?: EntryFilter['status']): Promise<boolean>
  /**
   * One small batch: deletes rows that are past their retention, and ends the entries that nobody handled in that time:
   * as dead if a process once had it, else as unhandled. Call it until `rows` is 0.
   */
  prune(retention: Retention): Promise<Pruned>
  /**
   * Copies all data into the new file `path` while work continues. Rejects `backup_failed`, and `closed` when it is closed
   * meanwhile.
   */
  backup(path: string): Promise<void>
  /**
   * Makes a regular read of every subscription due within this time, at random times, for a database that was restored. Few
   * subscriptions may be due sooner, at four a second.
   * Reads that are due earlier, under way or suspect stay as they are. Subscriptions that were never read keep their class,
   * and are left out once they were given up. Returns how many are read within the time, with those that stay as they are.
   */
  refreshAll(withinMs: number): Promise<number>
  /** The size of the store, for health and metrics. A read older than `maxStaleMs` confirms no answer. */
  counts(maxStaleMs?: number): Promise<StoreCounts>
  /**
   * Why the last write or sync failed, or that writes take longer than `inTimeMs`, in a sentence. Null once a write of
   * all that a delivery writes took less; the caller asks again until then.
   */
  problem(inTimeMs?: number): Promise<string | null>
  /**
   * The deliveries that this process did not store within the last hour, because the store keeps enough of their kind;
   * null: none.
   */
  turnedAway(): Promise<TurnedAway | null>

  /** Calls `listener` after the commits of this process and, where the engine can, of others, until the result is called. */
  subscribe(listener: (hint: Hint) => void): () => void
}

/** The app whose subscriptions a store holds. */
export interface StoreOwner {
  /** Identifies the app on its platform; contains no secret. */
  fingerprint: string
  /** The app for people, as configured. */
  label: string
  /** Its own items. When empty, every subscription is the app's. */
  purchasableUids: readonly string[]
  /** Whether to take the store over from another app. */
  adopt: boolean
}

/** Each number is counted up to `COUNTED_UP_TO`. */
export interface StoreCounts extends EntryCounts, SubscriptionCounts, SearchCounts {}

/**
 * `requested`: a read is due. `journal`: an entry is due. `decided`: a read of this business was finished; null: of any
 * business. `superseded`: its record, or whether it is gone, has changed, or its data was erased, so an answer from
 * before must not be used again.
 */
export type Hint =
  | { kind: 'requested'; businessUid: string | null }
  | { kind: 'journal' }
  | { kind: 'decided'; businessUid: string | null; superseded: boolean }
