import { type Connection, sql } from '../store/sql.js'

/** The SQL that gives a role all it needs on tables that another role has made, or will make. */
export function grantsFor(schema: string, role: string): string {
  const [on, to] = [quoted(schema), quoted(role)]
  return [
    `grant usage on schema ${on} to ${to};`,
    `grant select, insert, update, delete on all tables in schema ${on} to ${to};`,
    `alter default privileges in schema ${on} grant select, insert, update, delete on tables to ${to};`,
  ].join('\n')
}

/** Whether the role of this connection may use every table of the schema; true while there are none. */
export async function mayUseTables(db: Connection, schema: string): Promise<boolean> {
  // From the catalogs, which every role may read: without USAGE on the schema its tables seem not to exist.
  const rights = sql.join(
    ['select', 'insert', 'update', 'delete'].map((right) => sql`has_table_privilege(c.oid, ${right})`),
    ' and ',
  )
  const rows = await sql<{ may: string }>`
    select coalesce(bool_and(has_schema_privilege(n.oid, 'usage') and ${rights}), true)::text as may
    from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = ${schema} and c.relname in (${sql.join(TABLES)})`.execute(db)
  return rows[0]?.may === 'true'
}

// A schema of the app's own may hold tables of the app's own.
const TABLES = [
  'marketplace_schema',
  'store_owner',
  'subscriptions',
  'journal',
  'lanes',
  'handlers',
  'tallies',
  'instances',
]

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
