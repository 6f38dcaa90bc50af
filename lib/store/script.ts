import type { Engine, Given, Script, Step } from './schema.js'
import type { Connection, Query, Sql } from './sql.js'

/** A statement that is compiled once. `build` gets the rows that it will run for. */
export function prepare<Columns extends Record<string, 'text' | 'integer'>>(
  engine: Pick<Engine, 'compile' | 'given'>,
  columns: Columns,
  build: (rows: Given<Extract<keyof Columns, string>>) => Sql,
): (rows: readonly RowOf<Columns>[]) => Step {
  let query: Query | undefined
  return (rows) => {
    query ??= engine.compile(build(engine.given(columns)))
    return { query, rows, answers: false }
  }
}

export type RowOf<Columns> = {
  [Name in keyof Columns]: (Columns[Name] extends 'text' ? string : number) | null
}

/** A question without parameters, compiled once. Asking answers the rows. */
export function prepareQuestion<Row>(
  engine: Pick<Engine, 'compile'>,
  question: Sql<Row>,
): () => Script<readonly Row[]> {
  let step: Step | undefined
  return function* ask() {
    step ??= { query: engine.compile(question), rows: [{}], answers: true }
    return (yield step) as readonly Row[]
  }
}

/** Runs a script as a part of a transaction that is under way. */
export async function perform<Result>(
  engine: Pick<Engine, 'queriesOf'>,
  trx: Connection,
  script: Script<Result>,
): Promise<Result> {
  let next = script.next([])
  while (!next.done) {
    const step: Step = next.value
    const rows: unknown[] = []
    for (const query of engine.queriesOf(step)) rows.push(...(await trx.query(query)))
    next = script.next(step.answers ? rows : [])
  }
  return next.value
}
