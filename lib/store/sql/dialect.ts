import type { Query, Sql } from './sql.js'

/** The SQL in which the engines differ. */
export interface Dialect {
  compile(query: Sql): Query
  /** The engine's time of dates, ages and due times, as an SQL expression. */
  now(): Sql<number>
  /** The engine's time of leases. On PostgreSQL it is the same time. */
  leaseNow(): Sql<number>
  /** `json`, an array of objects, as a table with these columns, in brackets: one statement for a large batch. */
  rows(json: string, columns: Columns): Sql
  /** A table with one column `key`, in brackets: one statement for a batch of any size. */
  keys(values: readonly string[]): Sql
  /** Whether a column has one of these values, as a condition that uses the column's index. */
  isOneOf(column: string, values: readonly string[]): Sql<boolean>

  /** The rows of a write that has these columns. */
  given<Name extends string>(columns: Record<Name, ColumnType>): Given<Name>
  /** A write as queries with their values. */
  queriesOf(write: Write): Query[]
  /** Whether a sub-select in `from` may name the tables before it. */
  hasLateral?: boolean

  /** Ends a select that picks rows to lease, so that concurrent claims pick different rows. */
  skipLocked: Sql
  /** Ends a select whose rows nobody else may change or lock until the transaction ends. */
  forUpdate: Sql
  /** Follows a table in `from`: the index to use, where the planner would choose another. */
  byIndex(name: string): Sql
  /**
   * Hides a text column from every index except those whose condition contains this expression. PostgreSQL has no
   * `byIndex`: it chooses an index by its statistics, which may be older than the rows.
   */
  hidden(column: string): Sql

  /** Selects the columns of all tables. */
  columns: Sql<{ table: string; name: string }>
  /** Selects the indexes of all tables, apart from those of their constraints. */
  indexes: Sql<{ table: string; name: string }>
  /** The column type of a row number that the engine assigns. */
  rowNumber: Sql
  /** The column type of an identifier in whose order rows are locked: sorted by bytes, see `lock-order.ts`. */
  sortedText: Sql
  /** Ends a `create table`: settings for a table whose rows change often. */
  busyTable: Sql
}

type ColumnType = 'text' | 'integer'
export type Columns = Record<string, ColumnType>

/** One statement of a transaction, for all of `rows`. */
export interface Write {
  /** Its parameters stand for values that are known only when it runs: see `Dialect.given`. */
  query: Query
  rows: readonly object[]
}

/** The rows of a write, in the text of its statement. */
export interface Given<Name extends string = string> {
  /** A table with their columns, `now` and `lease_now`: the two times of the store. */
  table: Sql
  /** The end of `insert into … (…)`: one row of these values for each. On SQLite 2 × faster than a select. */
  insert(values: Sql): Sql
  /**
   * Like `insert`, but at most one row for each `key`: the first by `at` among those that fulfil `where`. The rows are sorted
   * by `key`, by bytes, and `at`.
   */
  insertFirst(key: Sql, values: Sql, where: Sql): Sql
  /** A whole statement: the rows of `select` for each of the rows. */
  each(select: Sql): Sql
  /** The SQL of one column of a given row, for use inside `insert`, `insertFirst` and `each`. */
  of(column: Name | 'now' | 'lease_now'): Sql
}
