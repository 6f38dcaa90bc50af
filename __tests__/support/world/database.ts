import type { Clock } from '../../../lib/base/clock.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import type { Hint, Store } from '../../../lib/store/port/store.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import { MIGRATIONS } from '../../../lib/store/sql/migrations.js'
import { type Sql, sql } from '../../../lib/store/sql/sql.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { EntryRow, SubscriptionRow } from './rows.js'

/** The notifications of one process: `announce` sends them to the others, `watch` receives theirs. */
export interface Wire {
  announce(hint: Hint): void
  watch(onHint: (hint: Hint) => void): void
}

/** The database of a world, seen from outside too. */
export interface Database {
  /** A store for one more process. */
  storeFor(wire: Wire, clock?: Clock, most?: Allowance): Store
  /** Empties the database and sets it to the time of a new world. */
  begin(now: () => number): Promise<void>
  subscriptions(): Promise<SubscriptionRow[]>
  /** The entries in the order in which they arrived. */
  journal(): Promise<EntryRow[]>
  /** Every row of every table as text. */
  dump(): Promise<string[]>
  /** Writes into the tables behind the back of the package, for sabotage. */
  change(statement: Sql): Promise<void>
  close(): Promise<void>
}

/**
 * One database for all processes of a world, in memory: the package's own SQL on its own engine. Each process has its
 * own store on it, as it has its own connection to a real database.
 */
export async function createDatabase(): Promise<Database> {
  let now = () => 0
  const clock = { now: () => now(), monotonic: () => now(), setTimeout: () => undefined, clearTimeout() {} }
  const engine = createSqliteEngine({ path: ':memory:', clock })
  await engine.open()
  await engine.migrate(MIGRATIONS)

  return {
    storeFor: (wire, ofProcess, most) =>
      createSqlStore(
        { ...engine, ...wire, ...KEPT_OPEN, isLocal: false, clock: ofProcess ?? clock },
        ofProcess,
        most && { most },
      ),

    async begin(ofWorld) {
      now = ofWorld
      for (const table of ['subscriptions', 'journal', 'lanes', 'handlers', 'searches']) {
        await engine.write((trx) => sql`delete from ${sql.ref(table)}`.execute(trx))
      }
    },

    subscriptions: () =>
      engine.read((db) =>
        sql<SubscriptionRow>`
          select subscription_uid, business_uid, state, gone, failure, record ->> 'updated_at' as updated_at
          from subscriptions`.execute(db),
      ),
    journal: () => engine.read((db) => sql<EntryRow>`select * from journal order by seq`.execute(db)),
    async dump() {
      const tables = await engine.read((db) =>
        sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(db),
      )
      const rows = await Promise.all(
        tables.map(({ name }) =>
          engine.read((db) => sql<object>`select * from ${sql.ref(name)}`.execute(db)),
        ),
      )
      return rows.flat().map((row) => JSON.stringify(row))
    },
    change: (statement) => engine.write(async (trx) => void (await statement.execute(trx))),
    close: () => engine.close(),
  }
}

/** A process opens and closes only its own connection. */
const KEPT_OPEN = {
  open: async () => {},
  close: async () => {},
  migrate: async () => {},
} satisfies Partial<Engine>

/** A database for several instances whose notifications take no simulated time. */
export interface SharedDatabase {
  /** The store of one more instance. */
  connect(): Store
  close(): Promise<void>
}

/**
 * The database in memory for the instances of one world. Not every version of SQLite lets several processes share a
 * file, and a server of PostgreSQL takes several times longer.
 */
export async function createSharedDatabase(time: VirtualClock, most?: Allowance): Promise<SharedDatabase> {
  const database = await createDatabase()
  await database.begin(time.now)
  return {
    connect: createConnector(time, (wire, clock) => database.storeFor(wire, clock, most)),
    close: database.close,
  }
}

/** Returns `connect`. The instances notify each other without a network, because no simulated time may pass meanwhile. */
export function createConnector(
  time: VirtualClock,
  storeFor: (wire: Wire, clock: Clock) => Store,
): () => Store {
  const listeners = new Set<(hint: Hint) => void>()

  return function connect() {
    let own: ((hint: Hint) => void) | undefined
    const wire: Wire = {
      announce(hint) {
        for (const listener of listeners) if (listener !== own) listener(hint)
      },
      watch(onHint) {
        own = onHint
        listeners.add(own)
      },
    }
    const store = storeFor(wire, time.forProcess())
    return {
      ...store,
      async close() {
        if (own) listeners.delete(own)
        await store.close()
      },
    }
  }
}
