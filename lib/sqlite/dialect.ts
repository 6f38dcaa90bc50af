import {
  type CompiledQuery,
  type Dialect,
  type Driver,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Clock } from '../clock.js'
import type { SqliteConnection } from './drivers.js'
import { retryWhileBusy } from './errors.js'
import type { Turns } from './turns.js'

interface SqliteDialectOptions {
  turns: Turns
  /** The connection to read with; throws when there is none. */
  readable(): SqliteConnection
  /** The connection to write with; rejects while what was committed is not known to be safe. */
  writable(): Promise<SqliteConnection>
  beforeCommit(connection: SqliteConnection): void
  afterCommit(): void
  /** Turns what the library threw into what callers should see. */
  explain(error: unknown): unknown
  clock: Clock
}

/** Kysely over one connection: callers take turns, and every transaction begins as a writer. */
export function createSqliteDialect(options: SqliteDialectOptions) {
  const driver = createDriver(options)
  const dialect: Dialect = {
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createDriver: () => driver,
  }

  /** One transaction, in its turn, of what is done in one go: without Kysely, whose promises take longer than a row. */
  async function transact<T>(work: () => T): Promise<T> {
    await driver.acquireConnection()
    try {
      await driver.beginTransaction()
      try {
        const result = work()
        await driver.commitTransaction()
        return result
      } catch (error) {
        await driver.rollbackTransaction()
        throw error
      }
    } finally {
      await driver.releaseConnection()
    }
  }

  return { dialect, transact }
}

function createDriver(options: SqliteDialectOptions) {
  const { turns, readable, writable, beforeCommit, afterCommit, explain, clock } = options
  let passTurn = () => {}

  const connection = {
    async executeQuery<Row>(query: CompiledQuery) {
      try {
        return { rows: readable().all(query.sql, query.parameters) as Row[] }
      } catch (error) {
        throw explain(error)
      }
    },
    // biome-ignore lint/correctness/useYield: nothing here streams; Kysely's type asks for the method
    async *streamQuery(): AsyncGenerator<never> {
      throw new Error('Cannot stream from SQLite')
    },
  }

  async function run(statement: string, on: SqliteConnection) {
    try {
      await retryWhileBusy(() => on.all(statement, []), 5_000, clock)
    } catch (error) {
      throw explain(error)
    }
  }

  return {
    async init() {},
    async acquireConnection() {
      passTurn = await turns.take()
      return connection
    },
    // Never deferred: a transaction that turns from reader to writer fails at once, whatever the timeout.
    beginTransaction: async () => run('begin immediate', await writable()),
    async commitTransaction() {
      const current = readable()
      try {
        beforeCommit(current)
      } catch (error) {
        throw explain(error)
      }
      await run('commit', current)
      afterCommit()
    },
    // SQLite may have rolled back by itself (a full disk, an I/O error); then there is nothing left to undo.
    rollbackTransaction: async () => {
      try {
        readable().exec('rollback')
      } catch {}
    },
    async releaseConnection() {
      passTurn()
    },
    async destroy() {},
  } satisfies Driver
}
