import type { Clock } from '../clock.js'
import type { Connection, Query, Sql } from './sql.js'
import type { EntryKind, EntryStatus, Hint, TallyKind, Urgency } from './store.js'

/** The tables, as both engines keep them. Times are ms since 1970; texts named json hold JSON. */
export interface Tables {
  subscriptions: SubscriptionsTable
  journal: JournalTable
  lanes: LanesTable
  handlers: HandlersTable
  tallies: TalliesTable
  instances: InstancesTable
  store_owner: StoreOwnerTable
}

/** One row, with the id 1: which app the store belongs to. */
export interface StoreOwnerTable {
  id: number
  fingerprint: string | null
  /** 1 once a subscription of this app was read: from then on another app is refused. */
  settled: number
  /** Written only to find out whether writing works. */
  probed_at: number | null
}

export interface SubscriptionsTable {
  subscription_uid: string
  business_uid: string
  /** Another business that was named for it. */
  candidate_business_uid: string | null
  purchasable_uid: string | null
  /** The record as last applied (json). */
  record: string | null
  /** 0: read before. 1: not yet. 2: not to be read, only remembered, of another item (`generation` is 0). */
  unread: 0 | 1 | 2
  state: string | null
  gone: 'missing' | 'revoked' | null
  read_at: number | null
  /** +1 by every request; 0 for what is only remembered of another item. Above `settled_generation`: a read is owed. */
  generation: number
  settled_generation: number
  requested_at: number | null
  /** When the oldest request came that the platform has not answered. */
  owed_since: number | null
  /** When it is due; while leased, when the lease runs out. Null: given up, or of another item. */
  refresh_at: number | null
  /** The pause after the last read: a request makes the row due no earlier. */
  not_before: number | null
  urgency: Urgency
  /** 1 while early re-reads of what the platform does not show yet are to come. */
  verifying: 0 | 1
  lease_token: string | null
  lapses: number
  failure: string | null
  /** The refresher's memory between tries (json). */
  progress: string | null
  /** When what was last told of installs happened, by the platform. */
  install_at: number | null
  /** When it was told, if it was an uninstall. */
  uninstalled_at: number | null
  /** 1: never read, and all who asked for its read want no change of what that finds. */
  quiet_until_read: 0 | 1
  created_at: number
}

export interface JournalTable {
  seq: number
  id: string
  kind: EntryKind
  name: string
  topic: string
  key: string
  business_uid: string | null
  subscription_uid: string | null
  /** json */
  payload: string
  /** json, null when recognised */
  issues: string | null
  status: EntryStatus
  /** Tries that have ended. */
  attempts: number
  error: string | null
  received_at: number
  /** Of a pending entry that was tried: when the next try is due. */
  due_at: number | null
  /** When its last try ended, or it began to wait; null before its first try, and for what was never handled. */
  settled_at: number | null
}

/** One row per key that has pending entries; the head is the one with the lowest `seq`. */
export interface LanesTable {
  key: string
  /** Of the head. */
  topic: string
  /** When the head is due; while leased, when the lease runs out. */
  due_at: number
  lease_token: string | null
  /** Leases that ran out in a row without a finish. */
  lapses: number
}

/** How often what came in, and since when. */
export interface TalliesTable {
  kind: TallyKind
  name: string
  /** A fingerprint of the delivery secret. */
  secret: string
  count: number
  first_at: number
  last_at: number
}

/** The processes that use the database. */
export interface InstancesTable {
  id: string
  version: string
  has_worker: 0 | 1
  started_at: number
  seen_at: number
}

/** The topics that any process has handlers for. */
export interface HandlersTable {
  topic: string
  /** When a process last named it. */
  seen_at: number
  /** 1: new entries are pending. 0: they wait, behind those that wait already. */
  ready: number
}

/**
 * A transaction that needs no promise of its own: a generator that yields its statements one by one. SQLite runs it
 * without leaving the call; PostgreSQL sends the statements in one message up to the first whose answer is needed, and
 * the last of them together with the commit. The SQL is the same.
 */
export type Script<Result = void> = Generator<Step, Result, readonly unknown[]>

/** One statement, for all of `rows`. */
export interface Step {
  /** Its parameters stand for what is only known when it runs: see `Engine.given`. */
  query: Query
  /** The same for `count` rows at once, where the engine runs `query` once for each row. */
  several?: { query: Query; count: number }
  rows: readonly object[]
  /** Whether the script needs the answer before it goes on; else it is given no rows. */
  answers: boolean
}

/** The rows of a step, in the text of its statement. */
export interface Given<Name extends string = string> {
  /** A table with their columns and `now`, the store's time. */
  table: Sql
  /** The end of `insert into … (…)`: one row of these values for each. SQLite takes half as long as for a select. */
  insert(values: Sql): Sql
  /** A column, among the values of `insert`. */
  of(column: Name | 'now'): Sql
}

/** What differs between engines. Everything else is one SQL. */
export interface Engine {
  /** Runs queries that only read. May run `work` again where the engine could not finish it. */
  read<T>(work: (db: Connection) => Promise<T>): Promise<T>
  /** Runs one transaction. May run `work` again, as a whole, where the engine could not finish it. */
  write<T>(work: (trx: Connection) => Promise<T>): Promise<T>
  /** Runs a script as one transaction, in as few trips to the database as it needs. May run it again, as a whole. */
  transact<T>(script: () => Script<T>): Promise<T>
  compile(query: Sql): Query
  /** The rows of a step that has these columns; `count` of them at once, where the step only inserts. */
  given<Name extends string>(columns: Record<Name, 'text' | 'integer'>, count?: number): Given<Name>
  /** Whether an update writes index entries anew that it does not change. */
  rewritesIndexes?: boolean
  /** Rows that one statement inserts, where a step runs once for each row. */
  insertsAtOnce?: number
  /** A step as queries with their values. */
  queriesOf(step: Step): Query[]
  /** Whether all that use it run on this machine. */
  isLocal: boolean
  /** The process's clock, for which times of the database are converted when they leave the store. */
  clock: Clock
  /** The engine's own time as an SQL expression: a lease must be judged by one clock. */
  now(): Sql<number>
  /** `json`, an array of objects, as a table with these columns: one statement for a batch of any size. */
  rows(json: string, columns: Record<string, 'text' | 'integer'>): Sql
  /** Whether a column has one of these values, as a condition that goes by the column's index. */
  isOneOf(column: string, values: readonly string[]): Sql<boolean>
  /** Ends a select that picks rows to lease, so that claimers pass each other by. */
  skipLocked: Sql
  /** Ends a select whose rows must not change until the transaction ends. */
  forUpdate: Sql
  /** Holds these names until the transaction ends, so that others that ask for one of them wait. Absent: one writes at a time. */
  holdNames?(trx: Connection, names: readonly string[]): Promise<void>
  /** Ends a select whose rows must not change, and may be read, until the transaction ends. */
  forShare: Sql
  /** Ends a select whose rows nobody may take with `forUpdate` until the transaction ends; any number may hold them so. */
  forKeyShare: Sql
  /** After a table in `from`: the index to use, where the engine cannot be trusted to find it. */
  byIndex(name: string): Sql
  /** The column type of a row number that counts up by itself. */
  rowNumber: Sql
  /** The column type of an identifier whose rows are locked in its order: by bytes, as JavaScript sorts, in no language. */
  sortedText: Sql
  /** Ends a `create table`: what the engine should know of a table whose rows change all the time. */
  busyTable: Sql
  /** Rejects with a `MarketplaceError`, and then leaves nothing behind. Called again, it begins anew. */
  open(): Promise<void>
  /** Runs `migrations` from the schema's version on, one process at a time. */
  migrate(migrations: readonly Migration[]): Promise<void>
  /** Resolves when all that this process has committed is on disk, and what others committed before that; costs little when it already is. */
  durable(): Promise<void>
  /** Tells other processes on the same data; a hint that is lost only costs time. */
  announce(hint: Hint): void
  /** Tells of commits made by others. */
  watch(onHint: (hint: Hint) => void): void
  /** Copies all data into a new file while others write. Rejects `backup_failed`. */
  backup(path: string): Promise<void>
  /** Lets go of everything, also after an `open` or `migrate` that failed; after that it may be opened again. */
  close(): Promise<void>
  /** Whether an error speaks of one row's data, so that the rest of a batch can be kept without it. */
  isDataError(error: unknown): boolean
}

/** What an engine tells when anything may have been committed by others. */
export const ANYTHING: readonly Hint[] = [
  { kind: 'decided', businessUid: null, superseded: false },
  { kind: 'requested', businessUid: null },
  { kind: 'journal' },
]

/** Additive only: code of the version before must go on working on the new schema. */
export type Migration = (engine: Engine) => Sql[]
