import type { Clock } from '../../base/clock.js'
import type { CleanUp, Hint } from '../port/store.js'
import type { Dialect, Write } from './dialect.js'
import type { Connection } from './sql.js'
import type { Transaction } from './transaction.js'

/**
 * A database: SQLite or PostgreSQL. Everything above it is the same SQL, except for its `Dialect`. Before the first `open`
 * only `clock`, `open` and `close` are used, and `fault` if there is one: `open` may load the code of the others.
 */
export interface Engine extends Dialect {
  /** Whether all processes that use the database run on this machine. */
  isLocal: boolean
  /** The clock of this process. Times of the database are converted to it when they leave the store. */
  clock: Clock

  /**
   * Rejects with a `MarketplaceError`, and then leaves nothing open. May be called again.
   *
   * @param options `alone`: rejects `store_in_use` while another process uses the database, as far as that can be seen. On
   * SQLite no other process opens it until `close`.
   */
  open(options?: { alone?: boolean }): Promise<void>
  /**
   * Runs the migrations that the database has not seen, one process at a time. `mayMigrate` runs in their transaction,
   * before the first one of a database that has tables, and rejects if none may run.
   */
  migrate(migrations: readonly Migration[], mayMigrate?: MayMigrate): Promise<void>
  /** Closes everything, also after a failed `open` or `migrate`. The engine may then be opened again. */
  close(): Promise<void>

  /** Runs queries that only read. May run `work` again when the engine could not finish it. */
  read<T>(work: (db: Connection) => Promise<T>): Promise<T>
  /** Runs one transaction. May run `work` again, as a whole, when the engine could not finish it. */
  write<T>(work: (trx: Transaction) => Promise<T>): Promise<T>
  /** Runs writes as one transaction, in their order. May run them again, as a whole. */
  writeAll(writes: readonly Write[]): Promise<void>
  /**
   * Locks these names until the transaction ends; others that ask for one of them wait. Absent where only one
   * transaction writes at a time.
   */
  holdNames?(trx: Connection, names: readonly string[]): Promise<void>
  /** Waits for the `writeAll` under way, and lets new ones wait until the transaction ends. Absent as `holdNames`. */
  holdWrites?(trx: Connection): Promise<void>
  /**
   * Lets the transaction wait for minutes between two statements, as when its rows come from another database. Absent
   * where no transaction ends by itself.
   */
  mayWait?(trx: Connection): Promise<void>
  /** The place of the next commit of this process, for `durable`. */
  mark(): number
  /**
   * Resolves when every commit of this process since the mark, and every commit before it, is on disk. Costs little when
   * that is so already. Rejects when a sync has failed since the mark: no later sync proves those commits.
   */
  durable(since?: number): Promise<void>
  /** Why no commit can be made durable now, if the engine has found that by itself. */
  fault?(): unknown
  /** Whether an error concerns the data of one row, so that the rest of a batch can be written without it. */
  isDataError(error: unknown): boolean
  /** Whether a statement was given up because it took too long. */
  isTimeout(error: unknown): boolean

  /** How far the database is behind with removing dead rows. Absent where it removes them at once. */
  cleanUp?(db: Connection): Promise<CleanUp>

  /** Sends a hint to the other processes on the same data. A lost hint only costs time. */
  announce(hint: Hint): void
  /**
   * Sends hints to the other processes with the commit of this transaction: no later failure loses them. Absent where
   * other processes notice every commit by themselves.
   */
  announceIn?(trx: Connection, hints: readonly Hint[]): Promise<void>
  /** Calls `onHint` for the commits of other processes. */
  watch(onHint: (hint: Hint) => void): void
  /**
   * Copies all data into a new file while others write. Rejects `backup_failed`, or the reason of `signal`; then there is
   * no file.
   */
  backup(path: string, signal?: AbortSignal): Promise<void>
}

/** The hints that cover every commit of another process. */
export const ANYTHING: readonly Hint[] = [
  { kind: 'decided', businessUid: null, superseded: false },
  { kind: 'requested', businessUid: null },
  { kind: 'journal' },
]

/**
 * One step of the schema, within the transaction of all steps. From version 2 on additive only: code of the release
 * before must go on working with the new schema.
 *
 * @param stored the version of the database before the first of these steps; 0 for a new one
 */
export type Migration = (dialect: Dialect, trx: Connection, stored: number) => Promise<void>

export type MayMigrate = (trx: Connection) => Promise<void>
