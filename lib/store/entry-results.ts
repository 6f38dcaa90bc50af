import { storable } from '../record.js'
import type { Engine } from './engine.js'
import { type Connection, sql } from './sql.js'
import type { LaneFinish } from './store.js'

/** Writes the results of entries, for lanes whose lease the caller holds and has locked. */
export async function writeResults(engine: Engine, trx: Connection, finishes: readonly LaneFinish[]) {
  const rows = finishes.flatMap(({ id: key, results }) =>
    results.map(({ id, attempt, result }) => ({
      key,
      id,
      attempt,
      status: result.kind === 'retry' ? 'pending' : result.kind,
      in_ms: result.kind === 'retry' ? Math.round(result.inMs) : null,
      error: result.kind === 'done' ? null : storable(result.error),
    })),
  )
  if (rows.length === 0) return
  // The join alone finds the rows. With `id in (…)` beside it SQLite walks the whole batch for each id of the list.
  await sql`
    update journal set
      status = finished.status, attempts = finished.attempt, error = finished.error,
      due_at = ${engine.now()} + finished.in_ms,
      settled_at = ${engine.now()}
    from ${engine.rows(JSON.stringify(rows), COLUMNS)} as finished
    where journal.id = finished.id and journal.key = finished.key`.execute(trx)
}

const COLUMNS = {
  key: 'text',
  id: 'text',
  attempt: 'integer',
  status: 'text',
  in_ms: 'integer',
  error: 'text',
} as const
