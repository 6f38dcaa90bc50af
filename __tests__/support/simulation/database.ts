import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Hint, Store } from '../../../lib/store/port/store.js'
import { MIGRATIONS } from '../../../lib/store/sql/migrations.js'
import { type Sql, sql } from '../../../lib/store/sql/sql.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'

/** The database of a run. */
export interface Database {
  /** A store for one process. `announce` sends its notifications to the others, `watch` receives theirs. */
  storeFor(wire: Wire): Store
  /** Empties the database and sets it to the time of a new run. */
  begin(clockOfRun: () => number): Promise<void>
  subscriptions(): Promise<KeptRow[]>
  /** The entries in the order in which they arrived. */
  journal(): Promise<KeptEntry[]>
  /** Writes into the tables behind the back of the package, for sabotage. */
  change(statement: Sql): Promise<void>
  close(): Promise<void>
}

interface KeptRow {
  uid: string
  business: string
  state: string | null
  gone: string | null
  failure: string | null
}

interface KeptEntry {
  id: string
  kind: string
  key: string
  status: string
  payload: string
  error: string | null
}

export interface Wire {
  announce(hint: Hint): void
  watch(onHint: (hint: Hint) => void): void
}

/**
 * One database for all processes of all runs, in memory: the package's own SQL on its own engine. Each process has its
 * own store on it, as it has its own connection to a real database.
 */
export async function createDatabase(): Promise<Database> {
  let now = () => 0
  const clock = { now: () => now(), monotonic: () => now(), setTimeout: () => undefined, clearTimeout() {} }
  const engine = createSqliteEngine({ path: ':memory:', clock })
  await engine.open()
  await engine.migrate(MIGRATIONS)

  return {
    storeFor(wire) {
      return createSqlStore({
        ...engine,
        ...wire,
        isLocal: false,
        open: async () => {},
        close: async () => {},
        migrate: async () => {},
      })
    },

    async begin(clockOfRun) {
      now = clockOfRun
      for (const table of ['subscriptions', 'journal', 'lanes', 'handlers']) {
        await engine.write((trx) => sql`delete from ${sql.ref(table)}`.execute(trx))
      }
    },

    subscriptions: () =>
      engine.read((db) =>
        sql<KeptRow>`
          select subscription_uid as uid, business_uid as business, state, gone, failure from subscriptions`.execute(
          db,
        ),
      ),
    journal: () =>
      engine.read((db) =>
        sql<KeptEntry>`select id, kind, key, status, payload, error from journal order by seq`.execute(db),
      ),
    change: (statement) => engine.write(async (trx) => void (await statement.execute(trx))),
    close: () => engine.close(),
  }
}
