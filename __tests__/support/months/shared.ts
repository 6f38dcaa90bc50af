import type { Clock } from '../../../lib/base/clock.js'
import type { createSqliteEngine as CreateEngine } from '../../../lib/sqlite/engine.js'
import type { Hint, Store } from '../../../lib/store/port/store.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import type { MIGRATIONS as Migrations } from '../../../lib/store/sql/migrations.js'
import type { createSqlStore as CreateStore } from '../../../lib/store/sql-store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { fromPackage } from './package-under-test.js'

const createSqliteEngine: typeof CreateEngine = fromPackage('sqlite/engine.js').createSqliteEngine
const MIGRATIONS: typeof Migrations = fromPackage('store/sql/migrations.js').MIGRATIONS
const createSqlStore: typeof CreateStore = fromPackage('store/sql-store.js').createSqlStore

/** A database for several instances. */
export interface SharedDatabase {
  /** The store of one more instance. */
  connect(): Store
  close(): Promise<void>
}

/**
 * The package's own SQL in memory. Not every version of SQLite lets several processes share a file, and a server of
 * PostgreSQL takes several times longer.
 */
export async function createSharedDatabase(time: VirtualClock): Promise<SharedDatabase> {
  const engine = createSqliteEngine({ path: ':memory:', clock: time.forProcess() })
  await engine.open()
  await engine.migrate(MIGRATIONS)
  return {
    connect: createConnector(time, () => ({
      ...engine,
      isLocal: false,
      open: async () => {},
      migrate: async () => {},
      close: async () => {},
    })),
    close: () => engine.close(),
  }
}

/** Returns `connect`. The instances notify each other without a network, because no simulated time may pass meanwhile. */
export function createConnector(time: VirtualClock, createEngine: (clock: Clock) => Engine): () => Store {
  const listeners = new Set<(hint: Hint) => void>()

  return function connect() {
    const clock = time.forProcess()
    const { announceIn: _network, ...engine } = createEngine(clock)
    let own: ((hint: Hint) => void) | undefined
    return createSqlStore(
      {
        ...engine,
        announce(hint) {
          for (const listener of listeners) if (listener !== own) listener(hint)
        },
        watch(onHint) {
          own = onHint
          listeners.add(own)
        },
        async close() {
          if (own) listeners.delete(own)
          await engine.close()
        },
      },
      clock,
    )
  }
}
