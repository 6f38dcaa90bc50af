import type { Clock } from '../base/clock.js'
import type { CleanUp } from '../store/port/operators.js'
import { type Connection, sql } from '../store/sql/sql.js'
import { TABLES } from './rights.js'

/** A transaction, a standby or a slot. The server keeps dead rows that it may still see. */
interface Holder {
  kind: 'transaction' | 'standby' | 'prepared' | 'slot'
  pid: number | null
  name: string | null
  /** The oldest transaction that it may not see the end of. */
  since: string
  /** Null: the server does not tell. */
  open_ms: number | null
}

/**
 * Returns a function that reads how many rows of our tables are dead, and what the server keeps them for. The age of a
 * standby, a slot, or a transaction of a role that this one may not look into (`pg_read_all_stats`) is unknown, so
 * it counts since this process first saw that it holds.
 */
export function createCleanUp({ schema, clock }: { schema: string; clock: Clock }) {
  let seen = { holder: '', at: 0 }

  function seenForMs({ kind, pid, name, since }: Holder): number {
    const holder = JSON.stringify([kind, pid, name, since])
    if (seen.holder !== holder) seen = { holder, at: clock.monotonic() }
    return clock.monotonic() - seen.at
  }

  return async function cleanUp(db: Connection): Promise<CleanUp> {
    const { dead } = await sql<{ dead: number }>`
      select coalesce(sum(pg_stat_get_dead_tuples(c.oid)), 0) as dead
      from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
      where n.nspname = ${schema} and c.relname in (${sql.join(TABLES)})`.one(db)
    const [oldest] = await HOLDERS.execute(db)
    if (!oldest) return { deadRows: dead, oldestTransactionMs: null, oldestTransaction: null }
    return {
      deadRows: dead,
      oldestTransactionMs: Math.max(0, oldest.open_ms ?? seenForMs(oldest)),
      oldestTransaction: described(oldest),
    }
  }
}

const msSince = (column: string) =>
  sql.raw(`(extract(epoch from statement_timestamp() - ${column}) * 1000)::bigint`)

/** The one that holds most. Vacuum holds nothing, and this transaction will have ended. */
const HOLDERS = sql<Holder>`
  select * from (
    select case when backend_type = 'walsender' then 'standby' else 'transaction' end as kind, pid, application_name as name,
      coalesce(backend_xmin, backend_xid)::text as since, ${msSince('xact_start')} as open_ms,
      greatest(age(backend_xmin), age(backend_xid)) as held
    from pg_catalog.pg_stat_activity
    where (datname = current_database() or backend_type = 'walsender') and pid <> pg_backend_pid()
      and coalesce(backend_type, '') <> 'autovacuum worker' and (backend_xmin is not null or backend_xid is not null)
    union all
    select 'prepared', null, gid, transaction::text, ${msSince('prepared')}, age(transaction)
    from pg_catalog.pg_prepared_xacts where database = current_database()
    union all
    select 'slot', active_pid, slot_name, xmin::text, null, age(xmin)
    from pg_catalog.pg_replication_slots where xmin is not null
  ) as holders order by held desc, open_ms desc nulls last limit 1`

function described({ kind, pid, name }: Holder): string {
  const named = (name ?? '').replace(/[^ -~]/g, '?').slice(0, 64) || 'without a name'
  switch (kind) {
    case 'prepared':
      return `the prepared transaction ${named}`
    case 'slot':
      return `the replication slot ${named}`
    case 'standby':
      return `the standby ${named} (process ${pid})`
    case 'transaction':
      return `a transaction of the application ${named} (process ${pid})`
  }
}
