import type { CompiledQuery, Kysely, RawBuilder } from 'kysely'
import type { Engine, Script, Step, Tables } from './schema.js'

/** A statement that is compiled once. `build` gets the rows as a table with these columns and `now`, the store's time. */
export function prepare<Columns extends Record<string, 'text' | 'integer'>>(
  engine: Pick<Engine, 'compile' | 'given'>,
  columns: Columns,
  build: (rows: RawBuilder<unknown>) => RawBuilder<unknown>,
): (rows: readonly RowOf<Columns>[]) => Step {
  let query: CompiledQuery | undefined
  return (rows) => {
    query ??= engine.compile(build(engine.given(columns)))
    return { query, rows, answers: false }
  }
}

export type RowOf<Columns> = {
  [Name in keyof Columns]: (Columns[Name] extends 'text' ? string : number) | null
}

/** Asks, and answers the rows. The question has no parameters. */
export function* ask<Row>(
  engine: Pick<Engine, 'compile'>,
  question: RawBuilder<Row>,
): Script<readonly Row[]> {
  return (yield { query: engine.compile(question), rows: [{}], answers: true }) as readonly Row[]
}

/** Runs a script as a part of a transaction that is under way. */
export async function perform<Result>(
  engine: Pick<Engine, 'queriesOf'>,
  trx: Kysely<Tables>,
  script: Script<Result>,
): Promise<Result> {
  let next = script.next([])
  while (!next.done) {
    const step: Step = next.value
    let rows: readonly unknown[] = []
    for (const query of engine.queriesOf(step)) rows = (await trx.executeQuery(query)).rows
    next = script.next(step.answers ? rows : [])
  }
  return next.value
}
