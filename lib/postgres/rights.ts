import { MarketplaceError } from '../base/errors.js'
import { type Connection, quoted, sql } from '../store/sql/sql.js'

/** The SQL that grants a role what it needs on the tables that another role made or will make. */
export function grantsFor(schema: string, role: string): string {
  const [on, to] = [quoted(schema), quoted(role)]
  return [
    `grant usage on schema ${on} to ${to};`,
    `grant select, insert, update, delete on all tables in schema ${on} to ${to};`,
    `alter default privileges in schema ${on} grant select, insert, update, delete on tables to ${to};`,
  ].join('\n')
}

/** The error of a role without rights on the tables, with the SQL that grants them. */
export function withoutRights(schema: string, role: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError(
    'store_unavailable',
    `Cannot use the PostgreSQL database: the role ${role} has no rights on its tables. Run this SQL as their owner:\n${grantsFor(schema, role)}`,
    { cause },
  )
}

/** Whether the role of this connection may use all our tables in the schema; true while there are none. */
export async function mayUseTables(db: Connection, schema: string): Promise<boolean> {
  // The catalogs are readable for every role. By name, tables are invisible without USAGE on their schema.
  const rights = sql.join(
    ['select', 'insert', 'update', 'delete'].map((right) => sql`has_table_privilege(c.oid, ${right})`),
    ' and ',
  )
  const { may } = await sql<{ may: string }>`
    select coalesce(bool_and(has_schema_privilege(n.oid, 'usage') and ${rights}), true)::text as may
    from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = ${schema} and c.relname in (${sql.join(TABLES)})`.one(db)
  return may === 'true'
}

// The tables are named, because the schema may also contain tables of the app.
export const TABLES = [
  'marketplace_schema',
  'store_owner',
  'subscriptions',
  'journal',
  'lanes',
  'handlers',
  'searches',
  'platform_facts',
]
