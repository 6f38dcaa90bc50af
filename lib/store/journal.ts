import { type Selectable, sql, type Transaction } from 'kysely'
import { storable } from '../record.js'
import { newLeaseToken } from './lease-token.js'
import type { Engine, JournalTable, Tables } from './schema.js'
import type {
  ClaimEntries,
  Entry,
  EntryFinish,
  Leased,
  NewChange,
  NewEvent,
  Retention,
  SkipEntries,
  Subscription,
} from './store.js'

/**
 * The table `journal`. An entry is pending (due when `due_at` has come; while `lease_token` is set that is the lease's
 * end), done, or dead (waiting for a replay).
 */
export function createJournal(engine: Engine) {
  return {
    async insert(trx: Transaction<Tables>, events: readonly NewEvent[]) {
      if (events.length === 0) return
      const json = JSON.stringify(
        events.map(
          ({
            id,
            kind,
            name,
            key,
            businessUid: business,
            subscriptionUid: subscription,
            payload,
            issues,
          }) => ({
            id,
            kind,
            name,
            key,
            business,
            subscription,
            payload,
            issues: issues && JSON.stringify(issues),
          }),
        ),
      )
      await sql`
        insert into journal
          (id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, received_at)
        select id, kind, name, key, business, subscription, payload, issues, 'pending', ${engine.now()}, 0, 0, ${engine.now()}
        from ${engine.rows(json, EVENT_COLUMNS)} as events where true
        on conflict (id) do nothing`.execute(trx)
    },

    async insertChange(
      trx: Transaction<Tables>,
      { subscriptionUid, businessUid }: Subscription,
      change: NewChange,
      siblings: Subscription[],
    ) {
      const { rows } = await sql<{ now: number }>`select ${engine.now()} as now`.execute(trx)
      const payload = change.payload(siblings, Number(rows[0]?.now))
      await sql`
        insert into journal
          (id, kind, name, key, business_uid, subscription_uid, payload, status, due_at, attempts, lapses, received_at)
        values (${change.id}, 'change', '', ${change.key}, ${businessUid}, ${subscriptionUid}, ${payload},
          'pending', ${engine.now()}, 0, 0, ${engine.now()})`.execute(trx)
    },

    async claim(trx: Transaction<Tables>, { limit, leaseMs, kinds }: ClaimEntries): Promise<Entry[]> {
      const token = newLeaseToken()
      const among = sql.join(kinds)
      // A leased entry is pending with a due_at ahead: it is not due itself, and holds back the others of its key.
      const { rows } = await sql<Selectable<JournalTable>>`
        with due as materialized (
          select seq from journal
          where status = 'pending' and due_at <= ${engine.now()} and kind in (${among})
            and (lease_token is not null or not exists (
              select 1 from journal as leased
              where leased.key = journal.key and leased.status = 'pending' and leased.lease_token is not null
            ) and not exists (
              select 1 from journal as earlier
              where earlier.key = journal.key and earlier.status = 'pending' and earlier.seq < journal.seq
                and earlier.kind in (${among})
            ))
          order by due_at limit ${limit} ${engine.skipLocked}
        )
        update journal set
          lapses = lapses + case when lease_token is null then 0 else 1 end,
          attempts = attempts + 1,
          lease_token = ${token},
          due_at = ${engine.now()} + ${leaseMs}
        where seq in (select seq from due)
        returning *`.execute(trx)
      return rows
        .sort((a, b) => a.seq - b.seq)
        .map((row) => ({
          id: row.id,
          leaseToken: token,
          kind: row.kind,
          name: row.name,
          key: row.key,
          businessUid: row.business_uid,
          subscriptionUid: row.subscription_uid,
          payload: row.payload,
          issues: row.issues === null ? null : JSON.parse(row.issues),
          receivedAt: row.received_at,
          attempt: row.attempts,
          lapses: row.lapses,
        }))
    },

    async skip(trx: Transaction<Tables>, { limit, kinds, exceptNames }: SkipEntries): Promise<number> {
      const names = JSON.stringify(exceptNames.map((name) => ({ name })))
      const { rows } = await sql`
        with unhandled as materialized (
          select seq from journal
          where status = 'pending' and due_at <= ${engine.now()} and lease_token is null
            and kind in (${sql.join(kinds)})
            and name not in (select name from ${engine.rows(names, { name: 'text' })} as handled)
          order by due_at limit ${limit} ${engine.skipLocked}
        )
        update journal set status = 'done', attempts = 0
        where seq in (select seq from unhandled) returning seq`.execute(trx)
      return rows.length
    },

    async renew(trx: Transaction<Tables>, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const { rows } = await sql`
        update journal set due_at = ${engine.now()} + ${leaseMs}
        where id = ${id} and lease_token = ${leaseToken} returning id`.execute(trx)
      return rows.length > 0
    },

    async finish(trx: Transaction<Tables>, finishes: readonly EntryFinish[]): Promise<string[]> {
      if (finishes.length === 0) return []
      const json = JSON.stringify(
        finishes.map(({ id, leaseToken: token, result }) => ({
          id,
          token,
          status: result.kind === 'retry' ? 'pending' : result.kind,
          in_ms: result.kind === 'retry' ? Math.round(result.inMs) : 0,
          error: result.kind === 'done' ? null : storable(result.error),
        })),
      )
      const { rows } = await sql<{ id: string }>`
        update journal set
          status = finishes.status, due_at = ${engine.now()} + finishes.in_ms, error = finishes.error,
          lease_token = null, lapses = 0
        from ${engine.rows(json, FINISH_COLUMNS)} as finishes
        where journal.id = finishes.id and journal.lease_token = finishes.token
        returning journal.id as id`.execute(trx)
      return rows.map((row) => row.id)
    },

    async replay(trx: Transaction<Tables>, id: string): Promise<boolean> {
      // Its handlers may be at work on it: nobody else is to have it while its holder may believe in the lease.
      const { rows } = await sql`
        update journal set status = 'pending', attempts = 0, lapses = 0,
          due_at = case when lease_token is null then ${engine.now()} else due_at end,
          lease_token = case when lease_token is null then null else 'taken back by a replay' end
        where id = ${id} returning id`.execute(trx)
      return rows.length > 0
    },

    async prune(trx: Transaction<Tables>, keep: Retention): Promise<number> {
      const now = engine.now()
      const { rows } = await sql`
        delete from journal where seq in (
          select seq from journal where
            (status = 'done' and kind in ('event', 'unrecognised') and received_at < ${now} - ${keep.doneMs})
            or (status = 'done' and kind = 'change' and received_at < ${now} - ${keep.changesMs})
            or (status = 'dead' and kind in ('event', 'unrecognised', 'change')
              and received_at < ${now} - ${Math.max(keep.deadMs, keep.doneMs)})
            or (status = 'pending' and kind = 'change' and lease_token is null
              and received_at < ${now} - ${keep.changesMs})
          limit 500 ${engine.skipLocked}
        ) returning seq`.execute(trx)
      return rows.length
    },
  }
}

const EVENT_COLUMNS = {
  id: 'text',
  kind: 'text',
  name: 'text',
  key: 'text',
  business: 'text',
  subscription: 'text',
  payload: 'text',
  issues: 'text',
} as const

const FINISH_COLUMNS = { id: 'text', token: 'text', status: 'text', in_ms: 'integer', error: 'text' } as const
