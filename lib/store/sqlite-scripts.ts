import { type CompiledQuery, type RawBuilder, sql } from 'kysely'
import type { Script, Step } from './schema.js'
import type { SqliteConnection } from './sqlite-drivers.js'
import type { StoreTime } from './sqlite-time.js'

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
    let found: unknown[] = []
    try {
      for (const row of rows) found = connection.all(query.sql, valuesOf(query, row, now))
    } catch (error) {
      throw explain(error)
    }
    next = script.next(answers ? found : [])
  }
  return next.value
}

/** One row as a table. A statement runs once for each row: to bind values takes half as long as to pass them as JSON. */
export function givenRow(columns: Record<string, 'text' | 'integer'>): RawBuilder<unknown> {
  const fields = Object.keys(columns).map((name) => sql`${new Given(name)} as ${sql.ref(name)}`)
  return sql`(select ${sql.join([...fields, sql`${NOW} as now`])})`
}

export function queriesOf({ query, rows }: Step, now: number): CompiledQuery[] {
  return rows.map((row) => ({ ...query, parameters: valuesOf(query, row, now) }))
}

/** In place of a parameter: a column of the row that the statement runs for, or the time. */
class Given {
  constructor(readonly name: string) {}
}
const NOW = new Given('now')

function valuesOf({ parameters }: CompiledQuery, row: object, now: number): unknown[] {
  return parameters.map((each) => {
    if (each === NOW) return now
    return each instanceof Given ? (row as Record<string, unknown>)[each.name] : each
  })
}
