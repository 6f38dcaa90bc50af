import type { Dialect } from '../store/dialect.js'
import { sql } from '../store/sql.js'
import { givenRow, INSERTS_AT_ONCE, queriesOf } from './scripts.js'

/** SQLite's SQL. Its time is a value of this process: `time.ts`. */
export function sqliteDialect(now: () => number): Dialect {
  return {
    compile: (query) => query.compile(placeholder),
    now: () => sql<number>`${now()}`,
    rows(json, columns) {
      const fields = Object.keys(columns).map((name) => sql`value ->> ${sql.lit(name)} as ${sql.ref(name)}`)
      return sql`(select ${sql.join(fields)} from json_each(${json}))`
    },
    isOneOf: (column, values) =>
      sql<boolean>`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`,

    given: givenRow,
    queriesOf: (step) => queriesOf(step, now()),
    insertsAtOnce: INSERTS_AT_ONCE,
    rewritesIndexes: true,

    // Only one transaction writes at a time, so rows need no locks.
    skipLocked: sql``,
    forUpdate: sql``,
    forShare: sql``,
    forKeyShare: sql``,
    byIndex: (name) => sql`indexed by ${sql.ref(name)}`,
    hidden: (column) => sql.ref(column),

    // Without `autoincrement`, which writes another table for each row. A number above all present ones is new enough.
    rowNumber: sql`integer primary key`,
    sortedText: sql`text`,
    busyTable: sql``,
  }
}

/** SQLite's parameters, in order. */
export const placeholder = (): string => '?'
