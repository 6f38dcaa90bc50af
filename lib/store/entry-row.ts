import type { Entry } from './entries.js'
import type { JournalTable } from './schema.js'

/** A row of the journal, and the store's time when the row was read. */
export type EntryRow = JournalTable & { now: number }

/** @param offset how far the caller's wall clock is ahead of the store's time */
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
    // The tries that ended, those that lapsed, and this one.
    attempt: row.attempts + lapses + 1,
  }
}
