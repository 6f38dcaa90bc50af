import { storable } from '../../base/record.js'
import type { LaneFinish } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { JournalTable, LanesTable } from '../sql/schema.js'
import { type Connection, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import type { Lanes } from './lanes.js'

/**
 * Writes the results of the lanes whose lease is held, and ends these leases, unless they are to be kept. Returns
 * the keys of these lanes, and of those whose results an earlier run of the same finish has written: PostgreSQL's answer to
 * its commit was lost. Each entry remembers the lease of its last result, so the repeated run writes none over what happened
 * to the entry since, such as a replay.
 */
export function createLaneFinishes(engine: Engine, lanes: Pick<Lanes, 'advance'>) {
  /** Writes the results of all entries in one statement, because a backlog ends many at once. */
  async function writeResults(trx: Connection, finishes: readonly LaneFinish[]) {
    const rows = finishes.flatMap(resultsOf)
    if (rows.length === 0) return
    // The join alone finds the rows. With `id in (…)` beside it SQLite walks the whole batch for each id of the list.
    await sql`
      update journal set
        status = finished.status, attempts = finished.attempt, error = finished.error, stack = finished.stack,
        due_at = ${engine.now()} + finished.in_ms, tried_under = finished.lease,
        settled_at = ${engine.now()}
      from ${engine.rows(JSON.stringify(rows), COLUMNS)} as finished
      where journal.id = finished.id and journal.key = finished.key
        and (tried_under is null or tried_under <> finished.lease)`.execute(trx)
  }

  /** The keys of the finishes whose results are all written. */
  async function writtenBefore(trx: Connection, finishes: readonly LaneFinish[]): Promise<string[]> {
    const ids = finishes.flatMap(({ results }) => results.map(({ id }) => id))
    if (ids.length === 0) return []
    const rows = await sql<Pick<JournalTable, 'id' | 'tried_under'>>`
      select id, tried_under from journal where ${engine.isOneOf('id', ids)}`.execute(trx)
    const triedUnder = new Map(rows.map((row) => [row.id, row.tried_under]))
    return finishes.flatMap(({ id: key, leaseToken, results }) =>
      results.length > 0 && results.every(({ id }) => triedUnder.get(id) === leaseToken) ? key : [],
    )
  }

  return async function finishLanes(trx: Transaction, finishes: readonly LaneFinish[]): Promise<string[]> {
    if (finishes.length === 0) return []
    const tokens = new Map(finishes.map(({ id, leaseToken }) => [id, leaseToken]))
    const locked = await sql<Pick<LanesTable, 'key' | 'lease_token' | 'lapses'>>`
    select key, lease_token, lapses from lanes
    where ${engine.isOneOf('key', [...tokens.keys()])} order by key ${engine.forUpdate}`.execute(trx)
    const held = locked.filter(({ key, lease_token: token }) => token !== null && token === tokens.get(key))
    const keys = new Set(held.map(({ key }) => key))
    const ours = finishes.filter(({ id, leaseToken }) => keys.has(id) && tokens.get(id) === leaseToken)
    const ended = new Set(ours.filter(({ keepLease }) => !keepLease).map(({ id }) => id))
    const tried = new Set(ours.filter(({ results }) => results.length > 0).map(({ id }) => id))
    const triedKeys = [...ended].filter((id) => tried.has(id))
    const untriedKeys = [...ended].filter((id) => !tried.has(id))
    const stillLeased = held.filter(({ key, lapses }) => !ended.has(key) && lapses > 0)
    const lapsed = stillLeased.map(({ key }) => key)
    // In this order. A new statement sees the entries that were accepted while the one before waited for its locks.
    trx.leave(writeResults(trx, ours))
    trx.leave(lanes.advance(trx, triedKeys, 'all'))
    trx.leave(lanes.advance(trx, untriedKeys, 'untried'))
    if (lapsed.length > 0)
      trx.leave(
        sql`update lanes set lapses = 0, suspect = 0 where ${engine.isOneOf('key', lapsed)}`.execute(trx),
      )
    const lost = finishes.filter((finish) => !ours.includes(finish))
    return [...keys, ...(await writtenBefore(trx, lost))]
  }
}

/** The results of a lane as rows. */
function resultsOf({ id: key, leaseToken: lease, results }: LaneFinish) {
  return results.map(({ id, attempt, result }) => ({
    key,
    id,
    lease,
    attempt,
    status: result.kind === 'retry' ? 'pending' : result.kind,
    in_ms: result.kind === 'retry' ? Math.round(result.inMs) : null,
    error: result.kind === 'done' ? null : storable(result.error),
    stack: result.kind === 'done' || !result.stack ? null : storable(result.stack),
  }))
}

const COLUMNS = {
  key: 'text',
  id: 'text',
  lease: 'text',
  attempt: 'integer',
  status: 'text',
  in_ms: 'integer',
  error: 'text',
  stack: 'text',
} as const
