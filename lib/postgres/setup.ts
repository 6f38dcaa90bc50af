import { type Clock, MINUTE, SECOND } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { sleep } from '../base/waiting.js'
import { type Warn, warn as warnProcess } from '../base/warnings.js'
import type { Engine, MayMigrate, Migration } from '../store/sql/engine.js'
import { runMigrations, schemaVersion } from '../store/sql/migrations.js'
import { type Connection, quoted, sql } from '../store/sql/sql.js'
import { postgresCode } from './errors.js'
import { grantsFor, mayUseTables, withoutRights } from './rights.js'

/** Rejects for a server that cannot keep the promises of the store. Returns the role of the connection. */
export async function checkServer({ read }: Pick<Engine, 'read'>, warn: Warn = warnProcess): Promise<string> {
  const server = await read((db) =>
    sql<Record<'version' | 'encoding' | 'recovering' | 'fsync' | 'pages' | 'role', string>>`select
      current_setting('server_version_num') as version, current_setting('server_encoding') as encoding,
      pg_is_in_recovery()::text as recovering, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as pages, current_user::text as role`.one(db),
  )
  if (Number(server.version) < 130_000) throw refused('it is older than version 13')
  if (server.encoding !== 'UTF8')
    throw refused(`the database's encoding is ${server.encoding}, and must be UTF8`)
  if (server.recovering === 'true') throw refused('it is a read-only standby')
  if (server.fsync !== 'on' || server.pages !== 'on') warn('postgres_not_durable')
  return server.role
}

/** Runs the missing migrations, one process at a time. A role without the right to create needs them all to have run. */
export async function migratePostgres(
  engine: Engine,
  options: {
    schema: string
    role: string
    migrations: readonly Migration[]
    mayMigrate: MayMigrate | undefined
    clock: Clock
  },
): Promise<void> {
  const { schema, role, migrations, mayMigrate, clock } = options
  const deadline = clock.monotonic() + MINUTE
  try {
    if (!(await engine.read((db) => mayUseTables(db, schema)))) {
      throw withoutRights(schema, role)
    }
    while ((await engine.read((db) => versionOf(db, schema))) < migrations.length) {
      if (await engine.write((trx) => migrateIfAlone(trx))) return
      if (clock.monotonic() > deadline)
        throw refused('another process has been migrating it for over a minute')
      await sleep(SECOND / 10, clock)
    }
  } catch (error) {
    if (postgresCode(error) !== '42501') throw error
    throw refused(
      `the role ${role} may not create the missing tables (42501). Either give it a schema of its own:\n` +
        `create schema ${quoted(schema)} authorization ${quoted(role)};\n` +
        `or start the app once with a role that may create tables, which then runs:\n${grantsFor(schema, role)}`,
      error,
    )
  }

  async function migrateIfAlone(trx: Connection): Promise<boolean> {
    const { alone } = await sql<{ alone: string }>`
      select pg_try_advisory_xact_lock(hashtextextended(${`marketplace-webhooks ${schema}`}, 0))::text as alone`.one(
      trx,
    )
    if (alone !== 'true') return false
    if ((await versionOf(trx, schema)) === 0) {
      // `create schema if not exists` needs the right to create schemas even if the schema exists.
      const schemas = await sql`
        select from pg_catalog.pg_namespace where nspname = ${schema}`.execute(trx)
      if (schemas.length === 0) await sql`create schema ${sql.ref(schema)}`.execute(trx)
      await sql`create table marketplace_schema (version integer not null)`.execute(trx)
      await sql`insert into marketplace_schema values (0)`.execute(trx)
    }
    await runMigrations(engine, trx, migrations, mayMigrate)
    return true
  }
}

/** 0 before the first migration. */
async function versionOf(db: Connection, schema: string): Promise<number> {
  // `to_regclass` is not used, because it may miss a table that another process made just before this one got the lock.
  const tables = await sql`
    select from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname = ${schema} and relname = 'marketplace_schema'`.execute(db)
  if (tables.length === 0) return 0
  return schemaVersion(db)
}

/** The error of a failed opening, with what to do where that is known. */
export function asOpenError(error: unknown): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  const text = messageOf(error)
  return refused(WHY[postgresCode(error)] ?? (NO_PASSWORD.test(text) ? PASSWORD_MISSING : text), error)
}

/** `pg` itself says so, and its error has no code. */
const NO_PASSWORD = /client password must be a/
const PASSWORD_MISSING =
  'the server asks for a password, and the address has none: write postgres://user:password@host/database, or set PGPASSWORD'

const WHY: Record<string, string> = {
  '28P01': 'the user name or the password is wrong, or the address has no password (28P01)',
  '28000': 'this user may not connect from here (28000)',
  '3D000': 'the database does not exist (3D000); create it first',
}

function refused(why: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError('store_unavailable', `Cannot use the PostgreSQL database: ${why}`, { cause })
}
