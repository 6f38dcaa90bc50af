import type { Dialect, Given } from '../store/sql/dialect.js'
import { type Query, sql } from '../store/sql/sql.js'
import type { SqliteTime } from './time.js'

/** SQLite's SQL. Its times are values of this process: `time.ts`. */
export function sqliteDialect(time: () => Pick<SqliteTime, 'now' | 'ofLeases'>): Dialect {
  return {
    compile: (query) => query.compile(placeholder),
    now: () => sql<number>`${time().now()}`,
    leaseNow: () => sql<number>`${time().ofLeases()}`,
    rows(json, columns) {
      const fields = Object.keys(columns).map((name) => sql`value ->> ${sql.lit(name)} as ${sql.ref(name)}`)
      return sql`(select ${sql.join(fields)} from json_each(${json}))`
    },
    keys: (values) => sql`(select value as key from json_each(${JSON.stringify(values)}))`,
    isOneOf: (column, values) =>
      sql<boolean>`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`,

    given: givenRow,
    queriesOf({ query, rows }) {
      const times = timesOf(time())
      return rows.map((row) => ({ ...query, values: valuesOf(query, row, times) }))
    },

    // Only one transaction writes at a time, so rows need no locks.
    skipLocked: sql``,
    forUpdate: sql``,
    byIndex: (name) => sql`indexed by ${sql.ref(name)}`,
    hidden: (column) => sql.ref(column),

    columns: sql`
      select made.name as ${sql.ref('table')}, given.name from sqlite_schema as made, pragma_table_info(made.name) as given
      where made.type = 'table'`,
    indexes: sql`
      select tbl_name as ${sql.ref('table')}, name from sqlite_schema where type = 'index' and sql is not null`,
    // Row numbers do without `autoincrement`, which writes another table for each row: a number above all present ones
    // is new enough.
    rowNumber: sql`integer primary key`,
    sortedText: sql`text`,
    busyTable: sql``,
  }
}

/** SQLite's parameters, in order. */
export const placeholder = (): string => '?'

/** A single row: a statement runs once for each row, because bound values are 2 × faster than JSON. */
function givenRow(columns: Record<string, 'text' | 'integer'>): Given {
  const of = (name: string) =>
    sql`${name === 'now' ? NOW : name === 'lease_now' ? LEASE_NOW : new Parameter(name)}`
  return {
    table: sql`(select ${sql.join([...Object.keys(columns), 'now', 'lease_now'].map((name) => sql`${of(name)} as ${sql.ref(name)}`))})`,
    insert: (values) => sql`values (${values})`,
    insertFirst: (_key, values, where) => sql`select ${values} where ${where}`,
    each: (select) => select,
    of,
  }
}

/** The values with which a query runs for one of its rows. */
export function valuesOf({ values }: Query, row: object, times: Times): unknown[] {
  return values.map((each) => parameterOf(each, row, times))
}

type Times = ReturnType<typeof timesOf>

/** The times of a statement, or of a whole transaction. */
export const timesOf = (time: Pick<SqliteTime, 'now' | 'ofLeases'>) => ({
  now: time.now(),
  leaseNow: time.ofLeases(),
})

/** A parameter: a column of the row that the statement runs for, or a time. */
class Parameter {
  constructor(readonly name: string) {}
}
const NOW = new Parameter('now')
const LEASE_NOW = new Parameter('lease_now')

function parameterOf(parameter: unknown, row: object, { now, leaseNow }: Times): unknown {
  if (parameter === NOW) return now
  if (parameter === LEASE_NOW) return leaseNow
  return parameter instanceof Parameter ? (row as Record<string, unknown>)[parameter.name] : parameter
}
