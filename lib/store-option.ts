import { existsSync } from 'node:fs'
import { z } from 'zod'
import { type Clock, systemClock } from './base/clock.js'
import { MarketplaceError } from './base/errors.js'
import type { Warn } from './base/warnings.js'
import { createKeepAlive } from './lifecycle.js'
import { count, isObject, sentences } from './option-checks.js'
import type { PostgresPool } from './postgres/pool.js'
import { grantsFor } from './postgres/rights.js'
import type { Store } from './store/port/store.js'
import type { Engine } from './store/sql/engine.js'
import { hasTables } from './store/sql/migrations.js'
import { createSqlStore } from './store/sql-store.js'

const SQLITE = /^sqlite:(?<path>.+)$/s
const POSTGRES = /^postgres(?:ql)?:\/\//
/** The schema is also the name of the notification channel, so it must fit into 63 bytes. Always quoted. */
const SCHEMA = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const DEFAULT_SCHEMA = 'marketplace_webhooks'

/** PostgreSQL for the option `store`: what `postgresStore` returns. Each marketplace opens a store of its own with it. */
export interface PostgresStore {
  /** The SQL that gives `role` all the rights this store needs. The owner of the tables runs it. */
  grants(role: string): string
}

/**
 * What `postgresStore` takes instead of a pool alone.
 *
 * @example
 * const settings: PostgresStoreOptions = { connectionString: process.env.DATABASE_URL, schema: 'billing' }
 */
export interface PostgresStoreOptions {
  /** A `postgres://` address. */
  connectionString?: string | undefined
  /** A pool of `pg` of 2 connections or more in place of an address. The app closes it itself. */
  pool?: PostgresPool | undefined
  /** The schema of the tables, created at the first start. Default `marketplace_webhooks`. */
  schema?: string | undefined
  /**
   * The most connections, 2 or more, including one for notifications. Only with an address. Default 10. With one, nobody could
   * ask the server about a commit whose answer does not come.
   */
  maxConnections?: number | undefined
  /**
   * `false`: statements are not prepared, for a pooler in transaction mode that loses them (PgBouncer before 1.21, or
   * without `max_prepared_statements`). Default true.
   */
  preparedStatements?: boolean | undefined
}

/**
 * PostgreSQL with a pool of your own or with settings, for the option `store`.
 *
 * @param given a pool of `pg`, which the app closes itself, or settings with a pool or an address
 * @throws MarketplaceError `config_invalid`: without a pool or an address, for an unknown setting, and for a schema that is not a
 * plain name
 *
 * @example
 * const onOwnPool = postgresStore(new pg.Pool({ connectionString }))
 * const inSchema = postgresStore({ connectionString, schema: 'billing', maxConnections: 5 })
 */
export function postgresStore(given: PostgresPool | PostgresStoreOptions): PostgresStore {
  const settings = settingsOf(given)
  return Object.freeze({
    grants: (role: string) => grantsFor(settings.schema, role),
    [CREATE_STORE]: ((onPostgres) => onPostgres(settings)) as CreateStore,
  })
}

/**
 * The member of a value of the option `store` that creates the store. An app with both builds of the package in one
 * process may pass a value of the other build, so the symbol is the same in both, and the caller brings PostgreSQL.
 */
export const CREATE_STORE = Symbol.for('marketplace-webhooks: create the store')

type CreateStore = <Made>(onPostgres: (settings: PostgresSettings) => Made) => Made
type PostgresSettings = ReturnType<typeof settingsOf>

/** The faults of the option `store`. They never repeat an address, which may contain a password. */
export function storeFaults(option: unknown): string[] {
  const isAddress = typeof option === 'string' && (SQLITE.test(option) || isPostgres(option))
  if (isAddress || (isObject(option) && CREATE_STORE in option)) return []
  return isObject(option) && isPool(option)
    ? ['expected postgresStore(pool) in place of the pool alone']
    : ['expected sqlite:<path>, sqlite::memory:, postgres://…, or postgresStore(…)']
}

/** The path in the address of a SQLite file. */
export function sqlitePath(address: string): string | undefined {
  return SQLITE.exec(address)?.groups?.path
}

/** The store for a valid option. It is not opened yet. */
export function storeFor(option: string | PostgresStore, clock: Clock, warn?: Warn): Store {
  return madeFor(option, clock, warn, (load) => storeOn(clock, load))
}

/** The engine of the store for a valid option. It is not opened yet. */
export function engineFor(option: string | PostgresStore, clock: Clock): Promise<Engine> {
  return madeFor(option, clock, undefined, (load) => load())
}

/**
 * Whether the database of a valid option has the tables of this package. It makes none. A SQLite file must exist.
 * Rejects the errors of an opening.
 */
export async function hasStore(option: string | PostgresStore): Promise<boolean> {
  const engine = await engineFor(option, systemClock)
  async function look(): Promise<boolean> {
    try {
      await engine.open()
      // Without steps it only checks the rights: a role that may not use the schema does not see its tables.
      await engine.migrate([])
      return await hasTables(engine)
    } finally {
      await engine.close()
    }
  }
  // Its timers do not keep the process alive.
  return createKeepAlive().during(look())
}

/** Whether another process holds the file in the address of a SQLite database alone, or this process may not share it. */
export async function isInUse(address: string): Promise<boolean> {
  const path = sqlitePath(address)
  if (path === undefined || !existsSync(path)) return false
  const { isHeld } = await import('./sqlite/file/lock.js')
  return isHeld(path)
}

/** What `make` makes of the engine for the option, whose code `load` loads. */
function madeFor<Made>(
  option: string | PostgresStore,
  clock: Clock,
  warn: Warn | undefined,
  make: (load: () => Promise<Engine>) => Made,
): Made {
  const path = typeof option === 'string' ? sqlitePath(option) : undefined
  if (path !== undefined)
    return make(async () => {
      const { createSqliteEngine } = await import('./sqlite/engine.js')
      return createSqliteEngine({ path, clock, warn })
    })
  const store = typeof option === 'string' ? postgresStore({ connectionString: option }) : option
  return (store as PostgresStore & { [CREATE_STORE]: CreateStore })[CREATE_STORE]((settings) =>
    make(async () => {
      const { createPostgresEngine } = await import('./postgres/engine.js')
      return createPostgresEngine({ ...settings, clock, warn })
    }),
  )
}

/** A store whose engine is loaded when it is opened: an app on PostgreSQL never loads the code for SQLite. */
function storeOn(clock: Clock, load: () => Promise<Engine>): Store {
  const engine: Pick<Engine, 'clock' | 'open' | 'close'> = {
    clock,
    async open() {
      Object.assign(engine, await load())
      await engine.open()
    },
    async close() {},
  }
  // The store uses nothing else of an engine that was never opened.
  return createSqlStore(engine as Engine, clock)
}

function settingsOf(given: unknown) {
  const result = SETTINGS.safeParse(isObject(given) && isPool(given) ? { pool: given } : given)
  if (!result.success)
    throw new MarketplaceError(
      'config_invalid',
      `Cannot use PostgreSQL: ${sentences(result.error.issues).join('; ')}`,
    )
  const { pool, connectionString, ...others } = result.data
  return { connection: pool ?? (connectionString as string), ...others }
}

const SETTINGS = z
  .strictObject(
    {
      connectionString: z.string().refine(isPostgres, 'expected a postgres:// address').optional(),
      pool: z
        .custom<PostgresPool>((value) => isObject(value) && isPool(value), 'expected a pool of pg')
        .refine(({ options }) => Number(options?.max ?? 2) >= 2, 'expected a pool of 2 connections or more')
        .optional(),
      schema: z
        .string()
        .regex(SCHEMA, 'expected a plain name of letters, digits and _')
        .default(DEFAULT_SCHEMA),
      maxConnections: count(10, 2, 1_000),
      preparedStatements: z.boolean().default(true),
    },
    {
      error: ({ code }) =>
        code === 'invalid_type'
          ? 'expected a pool of pg, or an object with connectionString or pool'
          : undefined,
    },
  )
  .refine(
    ({ pool, connectionString }) => (pool === undefined) !== (connectionString === undefined),
    'expected either connectionString or pool',
  )

function isPool(value: object): value is PostgresPool {
  return ['connect', 'on', 'off'].every((name) => name in value)
}

function isPostgres(address: string): boolean {
  return POSTGRES.test(address) && URL.canParse(address)
}
