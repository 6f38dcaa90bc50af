import type { Given, Script, Step } from '../store/schema.js'
import { type Query, sql } from '../store/sql.js'
import type { SqliteConnection } from './drivers.js'
import type { StoreTime } from './time.js'

/** Runs a script in one go: nothing else runs on the connection, or in this process, until it ends. */
export function runScript<Result>(
  script: Script<Result>,
  { connection, time }: { connection: SqliteConnection; time: StoreTime },
  explain: (error: unknown) => unknown,
): Result {
  const now = time.now()
  let next = script.next([])
  while (!next.done) {
    const { query, rows, answers } = next.value
    const found: unknown[] = []
    try {
      for (const row of rows) found.push(...connection.all(query.text, valuesOf(query, row, now)))
    } catch (error) {
      throw explain(error)
    }
    next = script.next(answers ? found : [])
  }
  return next.value
}

/** One row: a statement runs once for each, for to bind values takes half as long as to pass them as JSON. */
export function givenRow(columns: Record<string, 'text' | 'integer'>): Given {
  const of = (name: string) => sql`${name === 'now' ? NOW : new Bound(name)}`
  return {
    table: sql`(select ${sql.join([...Object.keys(columns), 'now'].map((name) => sql`${of(name)} as ${sql.ref(name)}`))})`,
    insert: (values) => sql`values (${values})`,
    of,
  }
}

export function queriesOf({ query, rows }: Step, now: number): Query[] {
  return rows.map((row) => ({ ...query, values: valuesOf(query, row, now) }))
}

/** In place of a parameter: a column of the row that the statement runs for, or the time. */
class Bound {
  constructor(readonly name: string) {}
}
const NOW = new Bound('now')

function valuesOf({ values: parameters }: Query, row: object, now: number): unknown[] {
  const values: unknown[] = []
  for (const each of parameters) {
    if (each === NOW) values.push(now)
    else values.push(each instanceof Bound ? (row as Record<string, unknown>)[each.name] : each)
  }
  return values
}
