import type { Engine } from './engine.js'
import type { HandlersTable } from './schema.js'
import { type Connection, type Sql, sql } from './sql.js'

/** The table `handlers`: its rows with their age, those that a process has ever named, and those that are ready. */
export async function readTopics(engine: Pick<Engine, 'leaseNow'>, trx: Connection, lock: Sql = sql``) {
  const rows = await sql<Pick<HandlersTable, 'topic' | 'ready' | 'seen_at'> & { age: number }>`
    select topic, ready, seen_at, ${engine.leaseNow()} - seen_at as age from handlers order by topic ${lock}`.execute(
    trx,
  )
  return {
    rows,
    all: new Set(rows.map(({ topic }) => topic)),
    named: new Set(rows.filter(({ seen_at: seenAt }) => Number(seenAt) > 0).map(({ topic }) => topic)),
    ready: new Set(rows.filter(({ ready }) => Number(ready) === 1).map(({ topic }) => topic)),
  }
}
