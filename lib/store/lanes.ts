import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import { writeResults } from './entry-results.js'
import type { EntryRow } from './entry-row.js'
import type { LanesTable } from './schema.js'
import { prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'
import type { LaneFinish, Leased, Topic } from './store.js'

/** The token of a lane that was taken from its holder. Nobody may claim it before that lease would have run out. */
export const TAKEN_BACK = 'taken back'
/** The most entries of a lane that are handed out, so a replay further behind need not take the lane from its holder. */
export const MAX_HANDED_OUT = 200

/**
 * The table `lanes`: a row for each key that has pending entries.
 *
 * | state | row | entered | left |
 * |---|---|---|---|
 * | waiting | no token, `due_at` to come | the head failed, and its next try is due later | that time comes, or a replay: due. Its last pending entry ends: deleted |
 * | due | no token, `due_at` has come | its first pending entry; the lease ends; the next try is due | a claim: leased. Its last pending entry ends: deleted |
 * | leased | a token; `due_at` is the end of the lease | a claim | a finish without `keepLease`: due, waiting or deleted. The lease runs out: claimed again, with a lapse. A replay or an erasure: taken back |
 * | taken back | the token `TAKEN_BACK`; `due_at` as it was | an entry that may have been handed out is replayed or erased | `due_at` comes: claimed, without a lapse |
 *
 * A transaction that adds a pending entry first inserts or locks the row of its lane (`enter`). One that ends entries
 * locks the row before it selects the next head. So on PostgreSQL every pending entry has a lane, and the entries of a
 * key are numbered in the order of their commits.
 */
export function createLanes(engine: Engine) {
  const now = engine.now
  const keysOf = keysIn(engine)

  const enterSorted = prepareInsert(
    engine,
    { key: 'text', topic: 'text' },
    ({ insert, of }) => sql`
      insert into lanes (key, topic, due_at, lapses)
      ${insert(sql`${of('key')}, ${of('topic')}, ${of('now')}, 0`)}
      on conflict (key) do update set due_at = lanes.due_at`,
  )

  /** Locks these lanes, and inserts the missing ones, which are due now. */
  function* enter(heads: Iterable<{ key: string; topic: Topic }>): Script {
    const first = new Map<string, { key: string; topic: Topic }>()
    for (const { key, topic } of heads) if (!first.has(key)) first.set(key, { key, topic })
    if (first.size > 0) yield enterSorted([...first.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
  }

  /**
   * Sets each lane to its first pending entry, or deletes it when there is none. The caller has locked the lanes.
   * `free`: leased lanes are left as they are. `untried`: the holder tried nothing, so the lapses of the head still count.
   */
  async function advance(trx: Connection, keys: readonly string[], among: 'all' | 'free' | 'untried') {
    if (keys.length === 0) return
    const lapses = among === 'untried' ? sql.ref('lapses') : 0
    // Sub-selects that end at their first row: PostgreSQL turns `exists` into a join over all pending entries.
    const free = among === 'free' ? sql`and lease_token is null` : sql``
    const emptied = await sql<{ key: string }>`
      delete from lanes where ${engine.isOneOf('key', keys)} ${free} and (
        select seq from journal where journal.key = lanes.key and status = 'pending' order by seq limit 1
      ) is null returning key`.execute(trx)
    const gone = new Set(emptied.map(({ key }) => key))
    const left = keys.filter((key) => !gone.has(key))
    if (left.length === 0) return
    await sql`
      update lanes set lease_token = null, lapses = ${lapses}, (topic, due_at) = (
        select journal.topic, coalesce(journal.due_at, ${now()}) from journal
        where journal.key = lanes.key and status = 'pending' order by seq limit 1
      )
      where ${engine.isOneOf('key', left)} ${free}`.execute(trx)
  }

  /** The first `count` pending entries of each lane. */
  async function headsOf(
    trx: Connection,
    keys: readonly string[],
    count: number,
  ): Promise<Map<string, EntryRow[]>> {
    // The sub-select finds the last of them in the index alone, so only these rows are read. Without the named index SQLite
    // walks the table by seq.
    const rows = await sql<EntryRow>`
      select journal.*, ${now()} as now from ${keysOf(keys)} as picked
      cross join journal ${engine.byIndex('journal_lane')}
      where journal.key = picked.key and journal.status = 'pending' and journal.seq <= coalesce((
        select seq from journal as last where last.key = picked.key and last.status = 'pending'
        order by seq limit 1 offset ${count - 1}
      ), ${Number.MAX_SAFE_INTEGER})`.execute(trx)
    const byKey = new Map<string, EntryRow[]>(keys.map((key) => [key, []]))
    for (const row of rows.sort((a, b) => a.seq - b.seq)) byKey.get(row.key)?.push(row)
    return byKey
  }

  /** The topics of the heads of all lanes, or of the due ones. The recursive query reads one index entry for each topic. */
  async function topicsOf(db: Connection, among: 'all' | 'due'): Promise<Topic[]> {
    const rows = await sql<{ topic: Topic; is_due: number }>`
      with recursive topics(topic) as (
        select min(topic) from lanes
        union all
        select (select min(lanes.topic) from lanes where lanes.topic > topics.topic) from topics where topic is not null
      )
      select topic, case when (
        select due_at from lanes where lanes.topic = topics.topic order by due_at limit 1
      ) <= ${now()} then 1 else 0 end as is_due
      from topics where topic is not null`.execute(db)
    return rows.flatMap(({ topic, is_due: isDue }) => (Number(isDue) === 1 || among === 'all' ? topic : []))
  }

  /** Takes these lanes, which the caller has locked, from their holders. */
  async function takeBack(trx: Connection, keys: readonly string[]) {
    await sql`
      update lanes set lease_token = ${TAKEN_BACK}, lapses = 0
      where ${engine.isOneOf('key', keys)} and lease_token is not null`.execute(trx)
  }

  return {
    enter,
    advance,
    takeBack,
    headsOf,
    topicsOf,

    async renew(trx: Connection, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const rows = await sql`
        update lanes set due_at = ${now()} + ${leaseMs}
        where key = ${id} and lease_token = ${leaseToken} returning key`.execute(trx)
      return rows.length > 0
    },

    async finish(trx: Connection, finishes: readonly LaneFinish[]): Promise<string[]> {
      if (finishes.length === 0) return []
      const tokens = new Map(finishes.map(({ id, leaseToken }) => [id, leaseToken]))
      const locked = await sql<Pick<LanesTable, 'key' | 'lease_token' | 'lapses'>>`
        select key, lease_token, lapses from lanes
        where ${engine.isOneOf('key', [...tokens.keys()])} order by key ${engine.forUpdate}`.execute(trx)
      const held = locked.filter(({ key, lease_token: token }) => token !== null && token === tokens.get(key))
      const keys = new Set(held.map(({ key }) => key))
      const ours = finishes.filter(({ id, leaseToken }) => keys.has(id) && tokens.get(id) === leaseToken)
      await writeResults(engine, trx, ours)
      // Not in the statement that locked the lanes: a new one sees the entries accepted while that one waited.
      const ended = new Set(ours.filter(({ keepLease }) => !keepLease).map(({ id }) => id))
      const tried = new Set(ours.filter(({ results }) => results.length > 0).map(({ id }) => id))
      const triedKeys = [...ended].filter((id) => tried.has(id))
      const untriedKeys = [...ended].filter((id) => !tried.has(id))
      await advance(trx, triedKeys, 'all')
      await advance(trx, untriedKeys, 'untried')
      const stillLeased = held.filter(({ key, lapses }) => !ended.has(key) && Number(lapses) > 0)
      const lapsed = stillLeased.map(({ key }) => key)
      if (lapsed.length > 0)
        await sql`update lanes set lapses = 0 where ${engine.isOneOf('key', lapsed)}`.execute(trx)
      return [...keys]
    },

    /** Follows a replay: the lane of the entry, which the caller has locked, may have a new head. */
    async replayed(
      trx: Connection,
      { key, seq, wasPending }: { key: string; seq: number; wasPending: boolean },
    ) {
      await advance(trx, [key], 'free')
      if (!wasPending) return
      // It may have been handed out, so its handlers may be running.
      const rows = await sql`
        select 1 from journal where key = ${key} and status = 'pending' and seq < ${seq}
        order by seq limit 1 offset ${MAX_HANDED_OUT - 1}`.execute(trx)
      if (rows.length === 0) await takeBack(trx, [key])
    },
  }
}

/** Keys as a sub-select of one column. */
export function keysIn(engine: Pick<Engine, 'rows'>) {
  return (keys: readonly string[]) =>
    sql`(select key from ${engine.rows(JSON.stringify(keys.map((key) => ({ key }))), { key: 'text' })} as keys)`
}

export type Lanes = ReturnType<typeof createLanes>
