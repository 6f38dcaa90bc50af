import type { Engine, MayMigrate, Migration } from './engine.js'
import { type Connection, sql } from './sql.js'

/** The number of migrations that the database has seen. The table `marketplace_schema` exists. */
export async function schemaVersion(db: Connection): Promise<number> {
  const rows = await sql<{ version: number }>`select version from marketplace_schema`.execute(db)
  return Number(rows[0]?.version ?? 0)
}

/** Runs the missing migrations in one transaction, while no other process migrates. */
export async function runMigrations(
  engine: Engine,
  trx: Connection,
  migrations: readonly Migration[],
  mayMigrate?: MayMigrate,
) {
  const version = await schemaVersion(trx)
  if (version >= migrations.length) return
  if (version > 0) await mayMigrate?.(trx)
  for (const migration of migrations.slice(version)) await migration(engine, trx, version)
  await sql`delete from marketplace_schema`.execute(trx)
  await sql`insert into marketplace_schema values (${migrations.length})`.execute(trx)
}
