import { storable } from '../record.js'
import type { Engine } from './engine.js'
import { type Connection, sql } from './sql.js'
import type { LaneFinish } from './store.js'

/** Writes what became of entries, for lanes whose lease the caller holds and has locked. */
export async function settle(engine: Engine, trx: Connection, finishes: readonly LaneFinish[]) {
  const ends = finishes.flatMap(({ id: key, results }) =>
    results.map(({ id, attempt, result }) => ({
      key,
      id,
      attempt,
      status: result.kind === 'retry' ? 'pending' : result.kind,
      in_ms: result.kind === 'retry' ? Math.round(result.inMs) : null,
      error: result.kind === 'done' ? null : storable(result.error),
    })),
  )
  if (ends.length === 0) return
  // Without a list of the ids beside the join: SQLite would walk the list, and all of the batch for each of its ids.
  await sql`
    update journal set
      status = ends.status, attempts = ends.attempt, error = ends.error,
      due_at = ${engine.now()} + ends.in_ms,
      settled_at = ${engine.now()}
    from ${engine.rows(JSON.stringify(ends), END_COLUMNS)} as ends
    where journal.id = ends.id and journal.key = ends.key`.execute(trx)
}

const END_COLUMNS = {
  key: 'text',
  id: 'text',
  attempt: 'integer',
  status: 'text',
  in_ms: 'integer',
  error: 'text',
} as const
