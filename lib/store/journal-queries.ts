import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import { nextTurn } from '../waiting.js'
import type { Engine, JournalTable, Tables } from './schema.js'
import {
  COUNTED_UP_TO,
  type EntryFilter,
  type EntryKind,
  type EntryStatus,
  type JournalEntry,
} from './store.js'
import type { StoreTime } from './store-time.js'

const STATUSES: readonly EntryStatus[] = ['pending', 'waiting', 'unhandled', 'done', 'dead']
const KINDS: readonly EntryKind[] = ['event', 'change', 'unrecognised']
/** Entries of one business or subscription that one statement looks at: 2,000 take 3 ms on SQLite. */
const WINDOW = 2_000

/** The table `journal` as people see it. No statement looks at more rows than it is told to, whatever the table holds. */
export function createJournalQueries(engine: Engine, offsetOf: StoreTime) {
  return {
    async list({ before, ...filter }: EntryFilter): Promise<JournalEntry[]> {
      const limit = Math.min(1_000, Math.max(1, Math.trunc(filter.limit ?? 100)))
      const from = before === undefined ? Number.MAX_SAFE_INTEGER : await seqOf(before)
      const byOwner = filter.subscriptionUid !== undefined || filter.businessUid !== undefined
      const ids = byOwner ? await ofOwner(filter, limit, from) : await ofStatus(filter, limit, from)
      return entriesOf(ids)
    },

    async counts(db: Kysely<Tables>) {
      const { rows } = await sql<
        Record<'pending' | 'retrying' | 'dead' | 'waiting' | 'unrecognised', number>
      >`
        select
          ${counted(sql`status = 'pending'`)} as pending,
          ${counted(sql`status = 'pending' and attempts > 0`)} as retrying,
          ${counted(sql`status = 'dead'`)} as dead,
          ${counted(sql`status = 'waiting'`)} as waiting,
          ${counted(sql`status in (${sql.join(STATUSES.map((each) => sql.lit(each)))}) and kind = 'unrecognised'`)}
            as unrecognised`.execute(db)
      const [row] = rows
      if (!row) throw new Error('the server returned no row')
      const { pending, retrying, dead, waiting, unrecognised } = row
      return {
        pending: Number(pending),
        retrying: Number(retrying),
        dead: Number(dead),
        waiting: Number(waiting),
        unrecognised: Number(unrecognised),
        oldestPendingMs: await oldestPendingMs(db),
      }
    },
  }

  async function oldestPendingMs(db: Kysely<Tables>): Promise<number | null> {
    const oldest = KINDS.map(
      (kind) => sql`select * from (
        select received_at from journal where status = 'pending' and kind = ${sql.lit(kind)} order by seq limit 1
      ) as ${sql.ref(kind)}`,
    )
    const { rows } = await sql<{ age: number | null }>`
      select ${engine.now()} - min(received_at) as age from (${sql.join(oldest, sql` union all `)}) as oldest`.execute(
      db,
    )
    const age = rows[0]?.age
    return age === null || age === undefined ? null : Math.max(0, Number(age))
  }

  async function seqOf(id: string): Promise<number> {
    const { rows } = await engine.read((db) =>
      sql<{ seq: number }>`select seq from journal where id = ${id}`.execute(db),
    )
    return Number(rows[0]?.seq ?? 0)
  }

  /**
   * Newest first, merged from one range of an index for each status and kind. The ranges are read from the index alone;
   * of the table only what is handed out is looked at, up to 15 times fewer rows.
   */
  async function ofStatus({ status, kind }: EntryFilter, limit: number, before: number): Promise<string[]> {
    const ranges: RawBuilder<unknown>[] = []
    const range = (condition: RawBuilder<unknown>) =>
      sql`select * from (
        select status, kind, seq from journal where ${condition} and seq < ${before} order by seq desc limit ${limit}
      ) as ${sql.ref(`range_${ranges.length}`)}`
    if (status === 'retrying') {
      const ofKind = kind === undefined ? sql`` : sql`and kind = ${kind}`
      ranges.push(range(sql`status = 'pending' and attempts > 0 ${ofKind}`))
    } else {
      for (const eachStatus of status === undefined ? STATUSES : [status]) {
        for (const eachKind of kind === undefined ? KINDS : [kind])
          ranges.push(range(sql`status = ${sql.lit(eachStatus)} and kind = ${sql.lit(eachKind)}`))
      }
    }
    const { rows } = await engine.read((db) =>
      sql<{ id: string }>`
        select journal.id from (
          select * from (${sql.join(ranges, sql` union all `)}) as ranges order by seq desc limit ${limit}
        ) as newest join journal
          on journal.status = newest.status and journal.kind = newest.kind and journal.seq = newest.seq`.execute(
        db,
      ),
    )
    return rows.map(({ id }) => id)
  }

  /** Through the entries of one subscription or business, newest first, a window at a time. */
  async function ofOwner(filter: EntryFilter, limit: number, before: number): Promise<string[]> {
    const owner =
      filter.subscriptionUid === undefined
        ? sql`business_uid = ${filter.businessUid}`
        : sql`subscription_uid = ${filter.subscriptionUid}`
    const found: string[] = []
    for (let from = before; ; ) {
      const { rows } = await engine.read((db) =>
        sql<Pick<Selectable<JournalTable>, 'id' | 'seq' | 'kind' | 'status' | 'attempts' | 'business_uid'>>`
          select id, seq, kind, status, attempts, business_uid from journal
          where ${owner} and seq < ${from} order by seq desc limit ${WINDOW}`.execute(db),
      )
      for (const row of rows) {
        const { status } = filter
        const hasStatus =
          status === 'retrying' ? row.status === 'pending' && row.attempts > 0 : row.status === status
        if (status !== undefined && !hasStatus) continue
        if (filter.kind !== undefined && row.kind !== filter.kind) continue
        if (filter.businessUid !== undefined && row.business_uid !== filter.businessUid) continue
        if (found.push(row.id) === limit) return found
      }
      if (rows.length < WINDOW) return found
      from = Number(rows.at(-1)?.seq)
      await nextTurn()
    }
  }

  async function entriesOf(ids: readonly string[]): Promise<JournalEntry[]> {
    if (ids.length === 0) return []
    const { rows } = await engine.read((db) =>
      sql<Selectable<JournalTable> & { now: number }>`
        select journal.*, ${engine.now()} as now from journal where ${engine.isOneOf('id', ids)}`.execute(db),
    )
    const offset = offsetOf(rows[0]?.now)
    return rows.sort((a, b) => b.seq - a.seq).map((row) => asJournalEntry(row, offset))
  }
}

function counted(condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(select count(*) from (select 1 from journal where ${condition} limit ${COUNTED_UP_TO}) as counted)`
}

/** Times in the caller's wall clock: `offset` is what it is ahead of the store's. */
function asJournalEntry(row: Selectable<JournalTable>, offset: number): JournalEntry {
  const iso = (time: number) => new Date(time + offset).toISOString()
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
    receivedAt: iso(row.received_at),
    dueAt: row.status === 'pending' ? iso(row.due_at ?? row.received_at) : null,
  }
}
