import type { Dialect } from '../store/sql/dialect.js'
import { sql } from '../store/sql/sql.js'
import type { StoreTime } from './time.js'
import { givenRow, queriesOf, timesOf } from './writes.js'

/** SQLite's SQL. Its times are values of this process: `time.ts`. */
export function sqliteDialect(time: () => Pick<StoreTime, 'now' | 'ofLeases'>): Dialect {
  return {
    compile: (query) => query.compile(placeholder),
    now: () => sql<number>`${time().now()}`,
    leaseNow: () => sql<number>`${time().ofLeases()}`,
    keys: (values) => sql`(select value as key from json_each(${JSON.stringify(values)}))`,
    isOneOf: (column, values) =>
      sql<boolean>`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`,

    given: givenRow,
    queriesOf: (write) => queriesOf(write, timesOf(time())),

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
