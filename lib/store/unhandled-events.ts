import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { sql } from './sql.js'
import { isTopicAmong, type Topic } from './store.js'
import type { Waiting } from './waiting-entries.js'

/** The entries that one statement reads. */
const WINDOW = 1_000

/** The events of these topics that are unhandled and came within `withinMs`, in order. */
export async function unhandledEvents(
  engine: Pick<Engine, 'now' | 'read'>,
  topics: ReadonlySet<Topic>,
  withinMs: number,
): Promise<Waiting[]> {
  const found: Waiting[] = []
  for (const kind of ['event', 'unrecognised'] as const) {
    for (let before = Number.MAX_SAFE_INTEGER, isRecent = true; isRecent; ) {
      const rows = await engine.read((db) =>
        sql<Waiting & { seq: number; is_recent: number }>`
          select id, key, topic, seq, octet_length(payload) as bytes,
            case when received_at >= ${engine.now()} - ${withinMs} then 1 else 0 end as is_recent from journal
          where status = 'unhandled' and kind = ${kind} and seq < ${before}
          order by seq desc limit ${WINDOW}`.execute(db),
      )
      for (const row of rows)
        if (Number(row.is_recent) === 1 && isTopicAmong(topics, row.topic)) found.push(row)
      before = Number(rows.at(-1)?.seq)
      isRecent = rows.length === WINDOW && Number(rows.at(-1)?.is_recent) === 1
      await nextTurn()
    }
  }
  return found.reverse()
}
