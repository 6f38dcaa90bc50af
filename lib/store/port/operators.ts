/** The part of the port for operators and metrics: what came in, what is due, and the version of the schema. */
export interface StoreObservation {
  /** The newest entries of the journal, at most `limit`: the deliveries among them, counted by name and delivery secret. */
  arrivals(limit: number): Promise<{
    arrivals: Arrival[]
    /** The time of the oldest entry that was counted, by the clock of the process that asks; null: all were. */
    completeSince: number | null
  }>
  /**
   * Whether a read, or an entry of a topic that a process handles, among `topics` if given, is leased now or due within
   * `withinMs`, as of one moment. With `searches` a search counts as a read.
   */
  dueWork(options: {
    withinMs: number
    topics?: readonly string[] | undefined
    searches?: boolean
  }): Promise<DueWork>
  /** How far the database is behind with removing dead rows; null where it removes them at once. */
  cleanUp(): Promise<CleanUp | null>
  /** The number of migrations that the database has seen. */
  schemaVersion(): Promise<number>
  /** What the processes on the database have seen of the platform, as `addPlatformFacts` left it; null if nothing. */
  platformFacts(): Promise<string | null>
  /** Replaces it by what `add` returns. May call `add` again, with what another process has stored meanwhile. */
  addPlatformFacts(add: (stored: string | null) => string): Promise<void>
}

/** How many deliveries of one kind and name came with one delivery secret, and when the first and the last of them. */
export interface Arrival {
  kind: 'event' | 'unrecognised'
  /** The registration name of an event; '' when unrecognised. */
  name: string
  /** The fingerprint of the delivery secret; null for an entry that has none. */
  secret: string | null
  count: number
  firstAt: number
  lastAt: number
}

/**
 * The dead rows of the database, and for whom it keeps them: a row that was changed or deleted is removed only when no older
 * transaction may see it.
 */
export interface CleanUp {
  /** The dead rows of our tables, as the database estimates them. */
  deadRows: number
  /** The age of the transaction for which most of them are kept; null when there is none. */
  oldestTransactionMs: number | null
  /** That transaction in words, with the name of its application and its process. */
  oldestTransaction: string | null
}

/** Which work is due or under way. */
export interface DueWork {
  reads: boolean
  entries: boolean
}

/** The most that is counted: no count reads more rows of an index. SQLite counts as many in a quarter of a millisecond. */
export const COUNTED_UP_TO = 10_000

/** Each number is counted up to `COUNTED_UP_TO`. */
export interface SubscriptionCounts {
  /** All subscriptions, up to 1,000. */
  subscriptions: number
  /** Subscriptions whose requested read the platform has not answered yet. */
  requested: number
  /** The age of the oldest unanswered request; null when there is none. */
  oldestRequestMs: number | null
  /** How long the longest due read has been due, regular ones included; null when none is due. */
  oldestOverdueMs: number | null
  /** Subscriptions that are not read any more. */
  givenUp: number
  /** Of those given up, the ones that were read before. */
  knownGivenUp: number
  /** Subscriptions that are put off because their reads have ended the process `MAX_LAPSES` times or more. */
  lapsed: number
  /**
   * Businesses with a subscription that was read before, is not gone, and is not canceled or still gives access: the
   * refused ones, and as many of the others as there are, up to 1,000 or to `refused`. While there are none: businesses of
   * the newest subscriptions that were never read and that the platform has answered.
   */
  active: number
  /** Of the active ones, those whose reads the platform refuses or answers without their record. */
  refused: number
  /** Of the refused ones, those whose last read was answered without their record. */
  hidden: number
  /** Of the refused ones, those to which the platform last refused a token. */
  withoutToken: number
  /** Of the refused ones, those whose end was announced not long ago, and whose end is awaited. */
  leaving: number
  /** Of the refused ones, those that do not leave and whose reads began to fail within the last ten minutes. */
  refusedLately: number
  /** Businesses that the platform has shown since the first of those began to fail. */
  servedMeanwhile: number
  /** Of the active ones, those with a subscription that no read has confirmed for `maxStaleMs`. */
  stale: number
  /**
   * Businesses with a subscription that a read has confirmed within `maxStaleMs`. The count ends soon after 1,000, and is 0
   * while none is stale.
   */
  confirmed: number
}

/** The subscriptions of other businesses that are read at once. */
export type ReadOthers =
  /**
   * Active subscriptions without a failed read or an announced end that were not read for this long, the longest first.
   * Their reads show whether the platform works. They would be read next anyway, so they are not a selection of those
   * that are well.
   */
  | { which: 'served'; untestedForMs: number; limit: number }
  /**
   * `failing`: subscriptions whose reads fail, or that ended within the last days without an event, because the
   * platform shows the subscription of the claim again: due at once, or `pauseMs` after their last read. If an event
   * has named one meanwhile, it is due a minute later, because whether it has ended shows when the others are served
   * again. So are those that were never read, are not shown and are `verifying`. They come last, the newest request
   * first, because anybody who knows the delivery secret can add such rows; of very many only the newest may be
   * considered.
   */
  | { which: 'failing'; pauseMs: number; limit: number }

/** The businesses of a store, compared with one whose reads fail. Each number is counted up to 1,000. */
export interface OtherBusinesses {
  /** Businesses whose reads began to fail with this one's or later, itself included. */
  failing: number
  /** Other businesses whose record was found since this one began to fail, and whose reads do not fail. */
  served: number
  /**
   * Served businesses that came back lately: their reads failed before, and have succeeded for less than half of `failingMs`
   * or ten minutes.
   */
  recovered: number
  /** Whether at least one served business has had no failed read since before this business began to fail. */
  isSteady: boolean
  /**
   * Active businesses whose end is not announced, and that were not read since then, though their reads are not put
   * off: up to 20.
   */
  untested: number
  /**
   * Failures and successes of the last day: businesses that began to fail without any event, itself included, and those
   * served since the first of them. Regular reads find an outage one business after the other, so shorter windows miss it.
   * Both are 0 if an event announced the end.
   */
  lately: { failing: number; served: number }
  /**
   * Whether any other business has a subscription that counts as active (`SubscriptionCounts`), and whose end is not
   * announced.
   */
  exist: boolean
}
