import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Engine } from '../store/engine.js'
import { sql } from '../store/sql.js'
import { sleep } from '../waiting.js'
import type { Warn } from '../warnings.js'
import { postgresDialect } from './dialect.js'
import { isDataError, isTransient, postgresCode } from './errors.js'
import { createListener } from './listener.js'
import { createConnections, type PostgresPool } from './pool.js'
import { createPreparedStatements, hasLostStatement } from './prepared.js'
import { createScripts } from './scripts.js'
import { asOpenError, checkServer, migratePostgres, withoutRights } from './setup.js'
import { createTransactions } from './transactions.js'

/** Enough for a deadlock or a lost connection. The caller waits for a database that is down. */
const TRIES = 4

/**
 * PostgreSQL 13 or newer, shared by any number of instances. The clock of the server decides about leases. A commit is
 * on disk when it returns, whatever the default of the role. Every call ends within a limit.
 */
export function createPostgresEngine(options: {
  /** A `postgres://` address, or a pool of the app's own, which the app closes. */
  connection: string | PostgresPool
  schema: string
  /** The most connections, one of which listens. A pool of the app's own has its own limit. */
  maxConnections: number
  clock: Clock
  /** Receives warnings; by default the process does. */
  warn?: Warn | undefined
}): Engine {
  const { connection, schema, maxConnections, clock, warn } = options
  const connections = createConnections(connection, clock, maxConnections)
  const listener = createListener({ connections, channel: schema, clock, warn })
  // Apart, because the driver must prepare by itself what it runs by name.
  const named = createPreparedStatements(clock)
  const executed = createPreparedStatements(clock)
  const transact = createTransactions({ connections, schema, statements: named })
  const runScript = createScripts({ connections, schema, statements: executed })

  let role = ''
  let hasOpened = false

  async function insist<T>(transaction: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await transaction()
      } catch (error) {
        // Every transaction may run again: an event is stored once by its id, and a finish names its lease.
        if (hasOpened && postgresCode(error) === '42501') throw withoutRights(schema, role, error)
        const isLost = hasLostStatement(error)
        if (failures === TRIES - 1 || !(isLost || isTransient(error))) throw error
        if (isLost) {
          named.stop()
          executed.stop()
        }
        await sleep(fullJitter(failures, SECOND / 20, SECOND), clock)
      }
    }
  }

  const write: Engine['write'] = (work) => insist(() => transact(work))

  const engine: Engine = {
    ...postgresDialect,
    isLocal: false,
    clock,

    // A transaction too, because the settings hold only there.
    read: (work) => write(work),
    write,
    transact: (script) => insist(() => runScript(script)),
    // The server works on one while the reply of the other is on its way, and the two share a sync.
    transactsAtOnce: 2,
    async holdNames(trx, names) {
      const keys = names.map((name) => `${schema}/${name}`)
      // Locked row by row, so in the order of the names.
      await sql`select pg_advisory_xact_lock(hashtextextended(name, 0))
        from unnest(${keys}::text[]) as name`.execute(trx)
    },

    async open() {
      hasOpened = false
      role = await checkServer(engine, warn).catch((error) => {
        throw asOpenError(error)
      })
    },

    async migrate(migrations, mayMigrate) {
      await migratePostgres(engine, { schema, role, migrations, mayMigrate, clock }).catch((error) => {
        throw asOpenError(error)
      })
      hasOpened = true
    },

    mark: () => 0,
    async durable() {},
    announce: listener.announce,
    announceIn: listener.announceIn,
    watch: listener.start,

    async backup() {
      throw new MarketplaceError(
        'backup_failed',
        'Cannot back up PostgreSQL: its own tools do that while the app runs, for example `pg_dump --format=custom --file=backup.dump --schema=' +
          `${schema} <database>\``,
      )
    },

    async close() {
      await listener.close()
      await connections.close()
    },

    isDataError,
  }
  return engine
}
