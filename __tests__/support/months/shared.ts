import type { createSqliteEngine as CreateEngine } from '../../../lib/sqlite/engine.js'
import type { MIGRATIONS as Migrations } from '../../../lib/store/migrations.js'
import type { createSqlStore as CreateStore } from '../../../lib/store/sql-store.js'
import type { Hint, Store } from '../../../lib/store/store.js'
import { fromPackage } from './package-under-test.js'
import type { Time } from './time.js'

const createSqliteEngine: typeof CreateEngine = fromPackage('sqlite/engine.js').createSqliteEngine
const MIGRATIONS: typeof Migrations = fromPackage('store/migrations.js').MIGRATIONS
const createSqlStore: typeof CreateStore = fromPackage('store/sql-store.js').createSqlStore

/**
 * A database for several instances: the package's own SQL in memory, with notifications between the instances. Not every
 * version of SQLite lets several processes share a file, and a server of PostgreSQL has its own time.
 */
export async function createSharedDatabase(time: Time) {
  const engine = createSqliteEngine({ path: ':memory:', clock: time.clockOfProcess() })
  await engine.open()
  await engine.migrate(MIGRATIONS)
  const listeners = new Set<(hint: Hint) => void>()

  return {
    /** The store of one more instance. */
    connect(): Store {
      let own: ((hint: Hint) => void) | undefined
      return createSqlStore({
        ...engine,
        isLocal: false,
        open: async () => {},
        migrate: async () => {},
        close: async () => {
          if (own) listeners.delete(own)
        },
        announce(hint) {
          for (const listener of listeners) if (listener !== own) listener(hint)
        },
        watch(onHint) {
          own = onHint
          listeners.add(own)
        },
      })
    },
    close: () => engine.close(),
  }
}
