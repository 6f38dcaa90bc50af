import {
  type CompiledQuery,
  type Dialect,
  type Driver,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Clock } from '../clock.js'
import { retryWhileBusy } from './sqlite-busy.js'
import type { SqliteConnection } from './sqlite-drivers.js'

interface SqliteDialectOptions {
  /** The connection to use now; rejects while there is none to rely on. */
  trusted(): Promise<SqliteConnection>
  /** Turns what the library threw into what callers should see. */
  explain(error: unknown): unknown
  clock: Clock
}

/** Kysely over one connection: callers take turns, and every transaction begins as a writer. */
export function createSqliteDialect(options: SqliteDialectOptions): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createDriver: () => createDriver(options),
  }
}

function createDriver(options: SqliteDialectOptions): Driver {
  const { trusted, explain, clock } = options
  let turn: Promise<void> = Promise.resolve()
  let passTurn = () => {}

  const connection = {
    async executeQuery<Row>(query: CompiledQuery) {
      try {
        const current = await trusted()
        return { rows: current.all(query.sql, query.parameters) as Row[] }
      } catch (error) {
        throw explain(error)
      }
    },
    // biome-ignore lint/correctness/useYield: nothing here streams; Kysely's type asks for the method
    async *streamQuery(): AsyncGenerator<never> {
      throw new Error('Cannot stream from SQLite')
    },
  }

  async function exec(statement: string) {
    try {
      const current = await trusted()
      await retryWhileBusy(() => current.exec(statement), 5_000, clock)
    } catch (error) {
      throw explain(error)
    }
  }

  return {
    async init() {},
    async acquireConnection() {
      const before = turn
      let pass = () => {}
      turn = new Promise((resolve) => {
        pass = resolve
      })
      await before
      passTurn = pass
      return connection
    },
    // Never deferred: a transaction that turns from reader to writer fails at once, whatever the timeout.
    beginTransaction: () => exec('begin immediate'),
    commitTransaction: () => exec('commit'),
    // SQLite may have rolled back by itself (a full disk, an I/O error); then there is nothing left to undo.
    rollbackTransaction: () => exec('rollback').catch(() => {}),
    async releaseConnection() {
      passTurn()
    },
    async destroy() {},
  }
}
