import type { Entry } from '../port/journal.js'
import type { Topic } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { byBytes } from '../sql/lock-order.js'
import type { JournalTable } from '../sql/schema.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { MAX_BYTES } from '../sql/within-bytes.js'

/** A condition of the pending entries that only the index `journal_lane` answers. */
export const isPending = ({ hidden }: Pick<Engine, 'hidden'>) => sql`${hidden('status')} = 'pending'`

/**
 * The first `count` pending entries of each lane, until their payloads reach `MAX_BYTES`: of all lanes together, the
 * oldest entries.
 */
export async function headsOf(
  engine: Engine,
  trx: Connection,
  keys: readonly string[],
  count: number,
): Promise<Map<string, EntryRow[]>> {
  const heads = (engine.hasLateral ? headsByLateral : headsByIndex)(engine, engine.keys(keys), count)
  const rows = await heads.execute(trx)
  const byKey = new Map<string, EntryRow[]>(keys.map((key) => [key, []]))
  for (const row of rows.sort((a, b) => a.seq - b.seq)) byKey.get(row.key)?.push(row)
  return byKey
}

/**
 * For PostgreSQL. The limit forces a search of the index for each key: any other join could begin with all pending
 * entries.
 */
const headsByLateral: Heads = (engine, keys, count) => sql`
  with heads as materialized (
    select journal.* from ${keys} as picked cross join lateral (
      select * from journal where journal.key = picked.key and ${isPending(engine)} order by seq limit ${count}
    ) as journal
  ), sums as (
    select heads.*, sum(octet_length(payload)) over (order by seq) - octet_length(payload) as bytes_before from heads
  )
  select sums.*, ${engine.now()} as now from sums where bytes_before < ${MAX_BYTES}`

/**
 * For SQLite. The sub-select finds the last of them in the index alone, so only these rows are read. Without the named
 * index SQLite walks the table by seq. Materialized, because it reads the payloads themselves for a window over the table.
 */
const headsByIndex: Heads = (engine, keys, count) => sql`
  with heads as materialized (
    select journal.key, journal.seq, octet_length(journal.payload) as bytes
    from ${keys} as picked cross join journal ${engine.byIndex('journal_lane')}
    where journal.key = picked.key and ${isPending(engine)} and journal.seq <= coalesce((
      select seq from journal as last where last.key = picked.key and ${isPending(engine)}
      order by seq limit 1 offset ${count - 1}
    ), ${Number.MAX_SAFE_INTEGER})
  ), sums as materialized (select key, seq, bytes, sum(bytes) over (order by seq) as total from heads)
  select journal.*, ${engine.now()} as now from sums cross join journal ${engine.byIndex('journal_lane')}
  where journal.key = sums.key and ${isPending(engine)} and journal.seq = sums.seq
    and sums.total - sums.bytes < ${MAX_BYTES}`

type Heads = (engine: Engine, keys: Sql, count: number) => Sql<EntryRow>

/** A common table expression `topics`: the topics of the heads of all lanes. It reads one index entry for each topic. */
export const LANE_TOPICS = sql`topics(topic) as (
    select min(topic) from lanes
    union all
    select (select min(lanes.topic) from lanes where lanes.topic > topics.topic) from topics where topic is not null
  )`

/** The topics of the heads of all lanes. */
export async function topicsOf(db: Connection): Promise<Topic[]> {
  const rows = await sql<{ topic: Topic }>`
    with recursive ${LANE_TOPICS} select topic from topics where topic is not null`.execute(db)
  return rows.map(({ topic }) => topic)
}

/**
 * The least `due_at` of the lanes of `topics.topic` that fulfil a condition, as SQL. It reads the first row of each range of
 * the index `lanes_due`.
 */
export function firstDueOf(which: Sql): Sql {
  const first = ([0, 1] as const).map(
    (unread) => sql`select * from (
      select due_at from lanes where lanes.topic = topics.topic and unread = ${sql.lit(unread)} and ${which}
      order by due_at limit 1
    ) as ${sql.ref(`first_${unread}`)}`,
  )
  return sql`(select min(due_at) from (${sql.join(first, ' union all ')}) as firsts)`
}

/** The topics with due lanes, each with the classes of these lanes: 0 for those that were read before, 1 for the others. */
export async function dueTopics(engine: Times, db: Connection): Promise<{ topic: Topic; unread: 0 | 1 }[]> {
  const due = ([0, 1] as const).map(
    (unread) => sql`select topic, ${sql.lit(unread)} as unread from topics where topic is not null and (
      select due_at from lanes where lanes.topic = topics.topic and unread = ${sql.lit(unread)} and ${isDue(engine)}
      order by due_at limit 1
    ) is not null`,
  )
  return sql<{
    topic: Topic
    unread: 0 | 1
  }>`with recursive ${LANE_TOPICS} ${sql.join(due, ' union all ')}`.execute(db)
}

/**
 * Some topics of lanes that were not seen, if there are any. The search leaves out the parts of the index of those that were
 * seen, with the entries of all lanes that they had.
 */
export async function otherTopics(db: Connection, seen: readonly Topic[]): Promise<Topic[]> {
  // In the order of the column.
  const sorted = [...seen].sort(byBytes)
  const others = [undefined, ...sorted].map((topic, i) => {
    const after = topic === undefined ? sql`` : sql`and topic > ${topic}`
    const before = sorted[i] === undefined ? sql`` : sql`and topic < ${sorted[i]}`
    return sql`select min(topic) as topic from lanes where topic is not null ${after} ${before}`
  })
  const rows = await sql<{ topic: Topic }>`
    select topic from (${sql.join(others, ' union all ')}) as topics where topic is not null`.execute(db)
  return rows.map(({ topic }) => topic)
}

/**
 * Whether a lane is due. While it is leased, `due_at` is the end of the lease, in the time of leases, which is never ahead of
 * the time of dates. So the first condition is a range of the index. PostgreSQL has one time. The `case` keeps SQLite from
 * another index.
 */
export function isDue(engine: Times): Sql {
  const isDueByDate = sql`due_at <= ${engine.now()}`
  return engine.isLocal
    ? sql`${isDueByDate} and case when lease_token is null then 1 else due_at <= ${engine.leaseNow()} end = 1`
    : isDueByDate
}

type Times = Pick<Engine, 'now' | 'leaseNow' | 'isLocal'>

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
    // A replay begins with the first try again.
    triedUnder: row.attempts > 0 ? row.tried_under : null,
  }
}
