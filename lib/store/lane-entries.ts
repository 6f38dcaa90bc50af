import type { Selectable } from 'kysely'
import type { JournalTable } from './schema.js'
import { type Entry, isTopicAmong, type Topic } from './store.js'

/** A row with the store's time. */
export type JournalRow = Selectable<JournalTable> & { now: number }

/**
 * Of the first pending entries of a leased lane, in order, those that are handed out: up to the first that the caller
 * does not handle or whose next try is not due (its head was replayed), and after a lapse the head alone.
 */
export function handedOut(
  rows: readonly JournalRow[],
  { topics, lapses, offset }: { topics: ReadonlySet<Topic>; lapses: number; offset: number },
): Entry[] {
  const end = rows.findIndex(
    ({ topic, due_at: dueAt, now }, i) =>
      !isTopicAmong(topics, topic) || (i > 0 && dueAt !== null && Number(dueAt) > Number(now)),
  )
  const ours = rows.slice(0, end < 0 ? rows.length : end)
  return (lapses > 0 ? ours.slice(0, 1) : ours).map((row, i) => asEntry(row, offset, i === 0 ? lapses : 0))
}

/** Times in the caller's wall clock: `offset` is what it is ahead of the store's. */
function asEntry(row: JournalRow, offset: number, lapses: number): Entry {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    key: row.key,
    businessUid: row.business_uid,
    subscriptionUid: row.subscription_uid,
    payload: row.payload,
    issues: row.issues === null ? null : JSON.parse(row.issues),
    receivedAt: row.received_at + offset,
    // Those that ended, those that were cut off, and this one.
    attempt: row.attempts + lapses + 1,
  }
}
