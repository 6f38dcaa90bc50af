import { type Clock, systemClock } from './clock.js'
import { MarketplaceError } from './errors.js'
import { createPostgresEngine } from './postgres/engine.js'
import { grantsFor } from './postgres/grants.js'
import { isPool, type PostgresPool } from './postgres/pool.js'
import { createSqliteEngine } from './sqlite/engine.js'
import { guardedStore } from './store/guarded-store.js'
import { createSqlStore } from './store/sql-store.js'
import type { Store } from './store/store.js'
import type { Warn } from './warnings.js'

const SQLITE = /^sqlite:(?<path>.+)$/s
const POSTGRES = /^postgres(?:ql)?:\/\//
/** The schema is also the name of the notification channel, so it must fit into 63 bytes. Always quoted. */
const SCHEMA = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const DEFAULT_SCHEMA = 'marketplace_webhooks'

/** The faults of a store address. They never repeat the address, which may contain a password. */
export function storeFaults(address: string): string[] {
  const isAddress = SQLITE.test(address) || (POSTGRES.test(address) && URL.canParse(address))
  return isAddress ? [] : ['expected sqlite:<path>, sqlite::memory:, postgres://…, a pool of pg, or a Store']
}

/** The path in the address of a SQLite file. */
export function sqlitePath(address: string): string | undefined {
  return SQLITE.exec(address)?.groups?.path
}

/** Whether `value` can be a `Store` or a pool of `pg`. */
export function isStoreOrPool(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    (('accept' in value && 'claimReads' in value) || isPool(value))
  )
}

/** The store for a valid option. It is not opened yet. */
export function storeFor(option: string | PostgresPool | Store, clock: Clock, warn?: Warn): Store {
  if (typeof option === 'string') {
    const path = sqlitePath(option)
    return path
      ? createSqlStore(createSqliteEngine({ path, clock, warn }), clock)
      : postgresStore(option, { clock, warn })
  }
  return isPool(option) ? postgresStore(option, { clock, warn }) : guardedStore(option)
}

/** A store on PostgreSQL, which can also print the grants of a role that does not own its tables. */
export interface PostgresStore extends Store {
  /** The SQL that gives `role` all the rights this store needs. The owner of the tables runs it. */
  grants(role: string): string
}

/**
 * A store on PostgreSQL with settings of its own, for the option `store`.
 *
 * @param connection a `postgres://` address, or a pool of `pg`, which the app closes itself
 * @throws MarketplaceError `config_invalid`, for a schema that is not a plain name
 *
 * @example
 * const store = postgresStore(process.env.DATABASE_URL, { schema: 'billing', maxConnections: 5 })
 */
export function postgresStore(
  connection: string | PostgresPool,
  options: {
    /** The schema of the tables, created at the first start. Default `marketplace_webhooks`. */
    schema?: string
    /** The most connections, including one for notifications. Only with an address. Default 10. */
    maxConnections?: number
    /**
     * `false`: statements are not prepared, for a pooler in transaction mode that loses them (PgBouncer before 1.21, or
     * without `max_prepared_statements`). Default true.
     */
    preparedStatements?: boolean
    clock?: Clock
    /** Gets the code of each warning. Without it they become process warnings. */
    warn?: Warn | undefined
  } = {},
): PostgresStore {
  const {
    schema = DEFAULT_SCHEMA,
    maxConnections = 10,
    preparedStatements = true,
    clock = systemClock,
    warn,
  } = options
  if (!SCHEMA.test(schema)) {
    throw new MarketplaceError(
      'config_invalid',
      'Cannot use the schema: expected a plain name of letters, digits and _',
    )
  }
  const engine = createPostgresEngine({
    connection,
    schema,
    maxConnections,
    preparedStatements,
    clock,
    warn,
  })
  return Object.assign(createSqlStore(engine, clock), { grants: (role: string) => grantsFor(schema, role) })
}
