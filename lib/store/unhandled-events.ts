import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { sql } from './sql.js'
import { isTopicAmong, type Topic } from './store.js'
import type { Waiting } from './waiting-entries.js'

/** The entries that one statement reads. */
const WINDOW = 1_000

/**
 * The events of these topics that are unhandled and came within `withinMs`, or before the time `orBefore`, the newest first,
 * a window at a time.
 */
export async function* unhandledEvents(
  engine: Pick<Engine, 'now' | 'read'>,
  topics: ReadonlySet<Topic>,
  { withinMs, orBefore }: { withinMs: number; orBefore: number | null },
): AsyncGenerator<Waiting[]> {
  for (const kind of ['event', 'unrecognised'] as const) {
    for (let before = Number.MAX_SAFE_INTEGER, goesOn = true; goesOn; ) {
      const rows = await engine.read((db) =>
        sql<Waiting & { seq: number; is_wanted: number }>`
          select id, key, topic, seq, octet_length(payload) as bytes,
            case when received_at >= ${engine.now()} - ${Math.ceil(withinMs)}
              or received_at < ${orBefore ?? 0} then 1 else 0 end as is_wanted from journal
          where status = 'unhandled' and kind = ${kind} and seq < ${before}
          order by seq desc limit ${WINDOW}`.execute(db),
      )
      yield rows.filter((row) => Number(row.is_wanted) === 1 && isTopicAmong(topics, row.topic))
      before = Number(rows.at(-1)?.seq)
      goesOn = rows.length === WINDOW && (orBefore !== null || Number(rows.at(-1)?.is_wanted) === 1)
      await nextTurn()
    }
  }
}
