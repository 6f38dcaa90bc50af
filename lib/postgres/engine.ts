import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Engine } from '../store/engine.js'
import { sql } from '../store/sql.js'
import { sleep } from '../waiting.js'
import type { Warn } from '../warnings.js'
import { isDataError, isTransient } from './errors.js'
import { createListener } from './listener.js'
import { createConnections, type PostgresPool } from './pool.js'
import { asOpenError, checkServer, migratePostgres } from './setup.js'
import { createScripts, createTransactions, placeholder, ROWS } from './transactions.js'

/** Enough for a deadlock or a connection that ended; a database that is down is the caller's to wait for. */
const TRIES = 4

/**
 * PostgreSQL 13 or newer, shared by any number of instances. Leases go by the database's clock; a commit is on disk
 * when it returns, whatever the role's default; every call ends in bounded time.
 */
export function createPostgresEngine(options: {
  /** A `postgres://` address, or a pool of the app's own, which stays the app's to close. */
  connection: string | PostgresPool
  schema: string
  /** Connections at most, one of which listens. A pool of the app's own has its own limit. */
  maxConnections: number
  clock: Clock
  /** Gets its warnings; the process does where it is left out. */
  warn?: Warn | undefined
}): Engine {
  const { connection, schema, maxConnections, clock, warn } = options
  const connections = createConnections(connection, clock, maxConnections)
  const listener = createListener({ connections, channel: schema, clock, warn })
  const transact = createTransactions(connections, schema)
  const runScript = createScripts(connections, schema)

  async function insist<T>(transaction: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await transaction()
      } catch (error) {
        // Every transaction may run again: events are kept once by their id, and a finish is fenced by its lease.
        if (failures === TRIES - 1 || !isTransient(error)) throw error
        await sleep(fullJitter(failures, SECOND / 20, SECOND), clock)
      }
    }
  }

  const write: Engine['write'] = (work) => insist(() => transact(work))
  // A sub-select is asked once and may bound an index; a volatile function in a condition is asked for every row.
  const now = () => sql<number>`(select (extract(epoch from clock_timestamp()) * 1000)::bigint)`
  const typed = (columns: Record<string, 'text' | 'integer'>) =>
    sql.join(
      Object.entries(columns).map(
        ([name, type]) => sql`${sql.ref(name)} ${sql.raw(type === 'integer' ? 'bigint' : 'text')}`,
      ),
    )
  let role = ''

  const engine: Engine = {
    // Also in a transaction: only there the settings hold.
    read: (work) => write(work),
    write,
    isLocal: false,
    clock,
    now,
    rows: (json, columns) =>
      sql`(select * from json_to_recordset(${json}::json) as given(${typed(columns)}))`,
    transact: (script) => insist(() => runScript(script())),
    compile: (query) => query.compile(placeholder),
    given(columns) {
      const table = sql`(select given.*, ${now()} as now from json_to_recordset(${ROWS}::json) as given(${typed(columns)}))`
      return {
        table,
        insert: (values) => sql`select ${values} from ${table} as given`,
        of: (column) => sql.ref(`given.${column}`),
      }
    },
    queriesOf: ({ query, rows }) => [{ ...query, values: query.values.map(() => JSON.stringify(rows)) }],
    // Against a sub-select the planner would rather hash, and read all of a table that has grown since its statistics.
    isOneOf: (column, values) => sql<boolean>`${sql.ref(column)} = any(${values}::text[])`,
    skipLocked: sql`for update skip locked`,
    forUpdate: sql`for update`,
    async holdNames(trx, names) {
      const keys = names.map((name) => `${schema}/${name}`)
      // Row by row, so in the order of the names.
      await sql`select pg_advisory_xact_lock(hashtextextended(name, 0))
        from unnest(${keys}::text[]) as name`.execute(trx)
    },
    forShare: sql`for share`,
    forKeyShare: sql`for key share`,
    byIndex: () => sql``,
    rowNumber: sql`bigint generated always as identity`,
    sortedText: sql`text collate "C"`,
    busyTable: sql`with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,

    async open() {
      role = await checkServer(engine, warn).catch((error) => {
        throw asOpenError(error)
      })
    },

    async migrate(migrations) {
      await migratePostgres(engine, { schema, role, migrations, clock }).catch((error) => {
        throw asOpenError(error)
      })
    },

    async durable() {},
    announce: listener.announce,
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
