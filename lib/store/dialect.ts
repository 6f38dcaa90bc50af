import type { Query, Sql } from './sql.js'

/** The SQL in which the engines differ. */
export interface Dialect {
  compile(query: Sql): Query
  /** The engine's time of dates, ages and due times, as an SQL expression. */
  now(): Sql<number>
  /** The engine's time of leases. On PostgreSQL it is the same time. */
  leaseNow(): Sql<number>
  /** `json`, an array of objects, as a table with these columns: one statement for a batch of any size. */
  rows(json: string, columns: Columns): Sql
  /** Whether a column has one of these values, as a condition that uses the column's index. */
  isOneOf(column: string, values: readonly string[]): Sql<boolean>

  /** The rows of a step that has these columns; `count` rows at once, where the step only inserts. */
  given<Name extends string>(columns: Record<Name, ColumnType>, count?: number): Given<Name>
  /** A step as queries with their values. */
  queriesOf(step: Step): Query[]
  /** How many rows one statement inserts, where a step otherwise runs once for each row. */
  insertsAtOnce?: number
  /** Whether a sub-select in `from` may name the tables before it. */
  hasLateral?: boolean
  /** Whether an update also rewrites the index entries that it leaves as they are. */
  rewritesIndexes?: boolean

  /** Ends a select that picks rows to lease, so that concurrent claims pick different rows. */
  skipLocked: Sql
  /** Ends a select whose rows nobody else may change or lock until the transaction ends. */
  forUpdate: Sql
  /** Ends a select whose rows others may read, and not change, until the transaction ends. */
  forShare: Sql
  /** Ends a select whose rows nobody may take with `forUpdate` until the transaction ends; several may hold them so. */
  forKeyShare: Sql
  /** Follows a table in `from`: the index to use, where the planner would choose another. */
  byIndex(name: string): Sql
  /**
   * A text column as no index has it, apart from those whose condition has the same words. PostgreSQL has no `byIndex`,
   * and chooses by statistics, which may be of a time with other rows.
   */
  hidden(column: string): Sql

  /** Selects the columns of all tables. */
  columns: Sql<{ table: string; name: string }>
  /** Selects the indexes of all tables, apart from those of their constraints. */
  indexes: Sql<{ table: string; name: string }>
  /** The column type of a row number that the engine assigns. */
  rowNumber: Sql
  /** The column type of an identifier in whose order rows are locked: sorted by bytes, as JavaScript sorts. */
  sortedText: Sql
  /** Ends a `create table`: settings for a table whose rows change often. */
  busyTable: Sql
}

export type ColumnType = 'text' | 'integer'
export type Columns = Record<string, ColumnType>

/**
 * A transaction as a generator that yields its statements, so that it needs no promise of its own. SQLite runs it in
 * one call. PostgreSQL collects statements into one message up to the first that `answers`, unless its answer is steady,
 * and sends the last of them together with the commit. The SQL is the same.
 */
export type Script<Result = void> = Generator<Step, Result, readonly unknown[]>

/** One statement, for all of `rows`. */
export interface Step {
  /** Its parameters stand for values that are known only when it runs: see `Dialect.given`. */
  query: Query
  /** The same for `count` rows at once, where the engine runs `query` once for each row. */
  several?: { query: Query; count: number }
  rows: readonly object[]
  /** Whether the script needs the rows that the statement returns. Otherwise it receives none. */
  answers: boolean
  /** Whether its answer rarely changes: PostgreSQL assumes the last one, and repeats the script if that was wrong. */
  isSteady?: boolean
}

/** The rows of a step, in the text of its statement. */
export interface Given<Name extends string = string> {
  /** A table with their columns, `now` and `lease_now`: the two times of the store. */
  table: Sql
  /** The end of `insert into … (…)`: one row of these values for each. On SQLite 2 × faster than a select. */
  insert(values: Sql): Sql
  /** A whole statement: the rows of `select` for each of the rows. */
  each(select: Sql): Sql
  /** A column, among the values of `insert` and in the select of `each`. */
  of(column: Name | 'now' | 'lease_now'): Sql
}
