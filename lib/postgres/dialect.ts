import type { Columns, Dialect } from '../store/sql/dialect.js'
import { type Sql, sql } from '../store/sql/sql.js'
import { placeholder } from './transactions.js'

/** PostgreSQL's SQL. Its time is the server's. */
export const postgresDialect: Dialect = {
  compile: (query) => query.compile(placeholder),
  now,
  leaseNow: now,
  rows: (json, columns) => sql`(select * from json_to_recordset(${json}::json) as given(${typed(columns)}))`,
  keys: (values) => sql`(select unnest(${values}::text[]) as key)`,
  // An array: for a sub-select the planner prefers a hash join, which reads the whole of a table with outdated statistics.
  isOneOf: (column, values) => sql<boolean>`${sql.ref(column)} = any(${values}::text[])`,

  given(columns) {
    const table = sql`(select given.*, ${now()} as now, ${now()} as lease_now from json_to_recordset(${ROWS}::json) as given(${typed(columns)}))`
    return {
      table,
      insert: (values) => sql`select ${values} from ${table} as given`,
      insertFirst: (key, values, where) =>
        sql`select distinct on (${sorted(key)}) ${values} from ${table} as given where ${where} order by ${sorted(key)}, given.at`,
      each: (select) => sql`select found.* from ${table} as given cross join lateral (${select}) as found`,
      of: (column) => sql.ref(`given.${column}`),
    }
  },
  queriesOf: ({ query, rows }) => [{ ...query, values: query.values.map(() => JSON.stringify(rows)) }],
  hasLateral: true,

  skipLocked: sql`for update skip locked`,
  forUpdate: sql`for update`,
  byIndex: () => sql``,
  // An index with another collation cannot answer it.
  hidden: (column) => sql`${sql.ref(column)} collate "C"`,

  columns: sql`
    select relname as ${sql.ref('table')}, attname as name
    from pg_catalog.pg_attribute
      join pg_catalog.pg_class on pg_class.oid = attrelid
      join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname = current_schema() and relkind = 'r' and attnum > 0 and not attisdropped`,
  indexes: sql`
    select tablename as ${sql.ref('table')}, indexname as name from pg_catalog.pg_indexes
    where schemaname = current_schema() and not exists (
      select from pg_catalog.pg_constraint
        join pg_catalog.pg_namespace on pg_namespace.oid = connamespace
      where nspname = schemaname and conname = indexname
    )`,
  rowNumber: sql`bigint generated always as identity`,
  sortedText: sql`text collate "C"`,
  busyTable: sql`with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
}

/** A text by which a statement locks rows: in the order of `sortedText`, whatever the collation of the database. */
const sorted = (text: Sql) => sql`${text} collate "C"`

/** Stands in a statement for the parameter that has the rows of a write as JSON. */
const ROWS = Symbol('rows')

/** A sub-select, which runs once and may bound an index. A volatile function in a condition runs for every row. */
function now() {
  return sql<number>`(select (extract(epoch from clock_timestamp()) * 1000)::bigint)`
}

function typed(columns: Columns) {
  return sql.join(
    Object.entries(columns).map(
      ([name, type]) => sql`${sql.ref(name)} ${sql.raw(type === 'integer' ? 'bigint' : 'text')}`,
    ),
  )
}
