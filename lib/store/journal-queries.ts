import { type Kysely, type Selectable, sql } from 'kysely'
import type { JournalTable, Tables } from './schema.js'
import type { EntryFilter, JournalEntry } from './store.js'

/** The table `journal` as people see it. */
export const journalQueries = {
  async list(
    db: Kysely<Tables>,
    { status, kind, businessUid, subscriptionUid, limit = 100, before }: EntryFilter,
  ) {
    let query = db.selectFrom('journal').selectAll().orderBy('seq', 'desc')
    if (status) query = query.where('status', '=', status)
    if (kind) query = query.where('kind', '=', kind)
    if (businessUid) query = query.where('business_uid', '=', businessUid)
    if (subscriptionUid) query = query.where('subscription_uid', '=', subscriptionUid)
    if (before) {
      query = query.where('seq', '<', (eb) => eb.selectFrom('journal').select('seq').where('id', '=', before))
    }
    const rows = await query.limit(Math.min(1_000, Math.max(1, Math.trunc(limit)))).execute()
    return rows.map(asJournalEntry)
  },

  async counts(db: Kysely<Tables>) {
    // Each count by its own index: what is over, by far the most, is not looked through.
    const { rows } = await sql<{ pending: number; dead: number; unrecognised: number }>`
      select
        (select count(*) from journal where status = 'pending') as pending,
        (select count(*) from journal where status <> 'pending' and status = 'dead') as dead,
        (select count(*) from journal where status <> 'pending' and status = 'done' and kind = 'unrecognised')
          + (select count(*) from journal where status <> 'pending' and status = 'dead' and kind = 'unrecognised')
          + (select count(*) from journal where status = 'pending' and kind = 'unrecognised') as unrecognised`.execute(
      db,
    )
    const row = rows[0]
    return {
      pending: Number(row?.pending),
      dead: Number(row?.dead),
      unrecognised: Number(row?.unrecognised),
    }
  },
}

function asJournalEntry(row: Selectable<JournalTable>): JournalEntry {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    status: row.status,
    businessUid: row.business_uid,
    subscriptionUid: row.subscription_uid,
    payload: JSON.parse(row.payload),
    issues: row.issues === null ? null : JSON.parse(row.issues),
    attempts: row.attempts,
    error: row.error,
    receivedAt: new Date(row.received_at).toISOString(),
    dueAt: row.status === 'pending' ? new Date(row.due_at).toISOString() : null,
  }
}
