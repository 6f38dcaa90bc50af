import type { Entry } from './entries.js'
import type { JournalTable } from './schema.js'
import type {} from './sql.js'

/** A row of the journal, and the store's time when it was read. */
export type EntryRow = JournalTable & { now: number }

/** `offset` turns the store's times into those of the caller's wall clock. */
export function asEntry(row: EntryRow, offset: number, lapses: number): Entry {
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
