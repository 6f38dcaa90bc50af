import type { Columns, Given, Write } from './dialect.js'
import type { Engine } from './engine.js'
import type { Connection, Query, Sql } from './sql.js'

/** A statement that is compiled once. `build` receives the columns of the rows that it runs for. `keepsPlan`: see `Query`. */
export function prepare<Of extends Columns>(
  engine: Pick<Engine, 'compile' | 'given'>,
  columns: Of,
  build: (given: Given<Extract<keyof Of, string>>) => Sql,
  { keepsPlan = false } = {},
): (rows: readonly RowOf<Of>[]) => Write {
  let query: Query | undefined
  return (rows) => {
    query ??= { ...engine.compile(build(engine.given(columns))), keepsPlan }
    return { query, rows }
  }
}

export type RowOf<Of> = {
  [Name in keyof Of]: (Of[Name] extends 'text' ? string : number) | null
}

/**
 * Runs writes inside a transaction that is under way, none of which waits for the one before. Returns the rows that their
 * statements return. The first statement is sent before this returns.
 */
export async function run<Row = unknown>(
  engine: Pick<Engine, 'queriesOf'>,
  trx: Connection,
  ...writes: readonly Write[]
): Promise<Row[]> {
  const answers = await Promise.all(writes.flatMap(engine.queriesOf).map((query) => trx.query(query)))
  return answers.flat() as Row[]
}
