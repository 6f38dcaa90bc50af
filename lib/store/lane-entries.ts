import { asEntry, type EntryRow } from './entry-row.js'
import { type Entry, isTopicAmong, type Topic } from './store.js'

/**
 * The entries of a leased lane to hand out, in order. They are its first pending entries, up to the first that the
 * caller does not handle, or whose next try is not due because an earlier entry was replayed.
 */
export function handedOut(
  rows: readonly EntryRow[],
  { topics, lapses, offset }: { topics: ReadonlySet<Topic>; lapses: number; offset: number },
): Entry[] {
  const end = rows.findIndex(
    ({ topic, due_at: dueAt, now }, i) =>
      !isTopicAmong(topics, topic) || (i > 0 && dueAt !== null && Number(dueAt) > Number(now)),
  )
  const ours = rows.slice(0, end < 0 ? rows.length : end)
  return ours.map((row, i) => asEntry(row, offset, i === 0 ? lapses : 0))
}
