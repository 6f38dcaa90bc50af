import type { Columns, Given, Script, Step } from './dialect.js'
import type { Engine } from './engine.js'
import type { Connection, Query, Sql } from './sql.js'

type Build<Of extends Columns> = (rows: Given<Extract<keyof Of, string>>) => Sql

/** A statement that is compiled once. `build` receives the rows that it runs for. */
export function prepare<Of extends Columns>(
  engine: Pick<Engine, 'compile' | 'given'>,
  columns: Of,
  build: Build<Of>,
): (rows: readonly RowOf<Of>[]) => Step {
  let query: Query | undefined
  return (rows) => {
    query ??= engine.compile(build(engine.given(columns)))
    return { query, rows, answers: false }
  }
}

/** The same for an `insert` whose only parameters are in `Given.insert`, so that one statement may insert several rows. */
export function prepareInsert<Of extends Columns>(
  engine: Pick<Engine, 'compile' | 'given' | 'insertsAtOnce'>,
  columns: Of,
  build: Build<Of>,
): (rows: readonly RowOf<Of>[]) => Step {
  const one = prepare(engine, columns, build)
  const { insertsAtOnce: count } = engine
  if (count === undefined) return one
  let query: Query | undefined
  return (rows) => {
    query ??= engine.compile(build(engine.given(columns, count)))
    return { ...one(rows), several: { query, count } }
  }
}

type RowOf<Of> = {
  [Name in keyof Of]: (Of[Name] extends 'text' ? string : number) | null
}

/** A script of one step, which returns the rows of the step. */
export function* answered<Row>(step: Step): Script<readonly Row[]> {
  return (yield { ...step, answers: true }) as readonly Row[]
}

/** A query without parameters whose rows rarely change, compiled once. The script returns its rows. */
export function prepareSteadyQuery<Row>(
  engine: Pick<Engine, 'compile'>,
  query: Sql<Row>,
): () => Script<readonly Row[]> {
  let step: Step | undefined
  return () => {
    step ??= { query: engine.compile(query), rows: [{}], answers: true, isSteady: true }
    return answered<Row>(step)
  }
}

/** Runs a script inside a transaction that is under way. */
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
