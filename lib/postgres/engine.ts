import { fullJitter } from '../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { sleep } from '../base/waiting.js'
import type { Warn } from '../base/warnings.js'
import type { Engine } from '../store/sql/engine.js'
import { sql } from '../store/sql/sql.js'
import { createCleanUp } from './clean-up.js'
import { postgresDialect } from './dialect.js'
import { hasLostStatement, isDataError, isTimeout, isTransient, postgresCode } from './errors.js'
import { createNotifications } from './notifications.js'
import { createConnections, type PostgresPool } from './pool.js'
import { withoutRights } from './rights.js'
import { asOpenError, checkServer, migratePostgres } from './setup.js'
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
  /** `false`: no statement is prepared, for poolers that lose them. Default true. */
  preparedStatements?: boolean
  clock: Clock
  /** Receives warnings; by default the process does. */
  warn?: Warn | undefined
}): Engine {
  const { connection, schema, maxConnections, preparedStatements: isNamed = true, clock, warn } = options
  const connections = createConnections(connection, clock, maxConnections)
  const listener = createNotifications({ connections, channel: schema, clock, warn })
  const { transact, read, writeAll, holdWrites } = createTransactions({ connections, schema, isNamed })

  let role = ''
  let hasOpened = false

  async function insist<T>(transaction: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await transaction()
      } catch (error) {
        // Every transaction may run again, also if it was committed and only the answer was lost. An event is stored once
        // by its id. A refresh request then counts twice, which costs verifications. A finish names its lease, which the rows
        // remember, so the second one changes nothing and has the same result. What a claim leased is returned.
        if (hasOpened && postgresCode(error) === '42501') throw withoutRights(schema, role, error)
        if (failures === TRIES - 1 && hasLostStatement(error)) throw withoutStatements(error)
        if (failures === TRIES - 1 || !isTransient(error)) throw error
        await sleep(fullJitter(failures, SECOND / 20, SECOND), clock)
      }
    }
  }

  const write: Engine['write'] = (work) => insist(() => transact(work))

  const engine: Engine = {
    ...postgresDialect,
    isLocal: false,
    clock,

    // A read is a transaction too, because the settings hold only in one.
    read: (work) => insist(() => read(work)),
    write,
    writeAll: (writes) => {
      const queries = writes.flatMap(engine.queriesOf)
      return insist(() => writeAll(queries))
    },
    holdWrites,
    async holdNames(trx, names) {
      const keys = names.map((name) => `${schema}/${name}`)
      // The locks are taken row by row, so in the order of the names.
      await sql`select pg_advisory_xact_lock(hashtextextended(name, 0))
        from unnest(${keys}::text[]) as name`.execute(trx)
    },

    async mayWait(trx) {
      await sql`select set_config('idle_in_transaction_session_timeout', ${String(10 * MINUTE)}, true)`.execute(
        trx,
      )
    },

    async open({ alone = false } = {}) {
      hasOpened = false
      const opened = async () => {
        role = await checkServer(engine, warn)
        if (alone && (await engine.read(listener.isHeardByOthers))) throw inUse(schema)
      }
      await opened().catch((error) => {
        throw asOpenError(error)
      })
    },

    async migrate(migrations, mayMigrate) {
      await migratePostgres(engine, { schema, role, migrations, mayMigrate, clock }).catch((error) => {
        throw asOpenError(error)
      })
      hasOpened = true
    },

    cleanUp: createCleanUp({ schema, clock }),
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
    isTimeout,
  }
  return engine
}

function inUse(schema: string): MarketplaceError {
  return new MarketplaceError(
    'store_in_use',
    `Cannot use the schema ${schema} of the PostgreSQL database: a process of an app uses it. Stop every process of the app first`,
  )
}

function withoutStatements(cause: unknown): MarketplaceError {
  return new MarketplaceError(
    'store_unavailable',
    'Cannot use the PostgreSQL database: its connections lose prepared statements, as behind some poolers in transaction ' +
      'mode. Let the pooler keep them (PgBouncer: max_prepared_statements), or use postgresStore() with the option ' +
      'preparedStatements: false',
    { cause },
  )
}
