import type { Engine } from './engine.js'
import type { HandlersTable } from './schema.js'
import { type Connection, type Sql, sql } from './sql.js'

/** The table `handlers`: its rows with their age, the topics, and those that are ready. */
export async function readTopics(engine: Pick<Engine, 'now'>, trx: Connection, lock: Sql = sql``) {
  const rows = await sql<Pick<HandlersTable, 'topic' | 'ready'> & { age: number }>`
    select topic, ready, ${engine.now()} - seen_at as age from handlers order by topic ${lock}`.execute(trx)
  return {
    rows,
    all: new Set(rows.map(({ topic }) => topic)),
    ready: new Set(rows.filter(({ ready }) => Number(ready) === 1).map(({ topic }) => topic)),
  }
}
