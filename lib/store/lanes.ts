import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import { settle } from './entry-results.js'
import type { EntryRow } from './entry-row.js'
import { prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'
import type { LaneFinish, Leased, Topic } from './store.js'

/** In place of a token: the holder has lost the lease, and nobody has the lane before that lease would have run out. */
export const TAKEN_BACK = 'taken back'
/** Further behind the head nothing is handed out, so that a replay there need not take the lane from its holder. */
export const MAX_HANDED_OUT = 200

/**
 * The table `lanes`: one row per key that has pending entries.
 *
 * Whoever adds a pending entry inserts or locks the row of its lane first (`enter`), and whoever ends entries locks it
 * before it looks for the next head. So on PostgreSQL no entry is left without a lane, and entries of one key are
 * numbered in the order of their commits.
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

  /** Makes sure that the lanes exist, and locks them; a new one is due now. */
  function* enter(heads: Iterable<{ key: string; topic: Topic }>): Script {
    const first = new Map<string, { key: string; topic: Topic }>()
    for (const { key, topic } of heads) if (!first.has(key)) first.set(key, { key, topic })
    if (first.size > 0) yield enterSorted([...first.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
  }

  /**
   * Puts each lane, which the caller has locked, to its first pending entry, or removes it. Leased ones only if told.
   * `untried`: the holder gave it back as it was, so the lapses of its head still count.
   */
  async function advance(trx: Connection, keys: readonly string[], among: 'all' | 'free' | 'untried') {
    if (keys.length === 0) return
    const lapses = among === 'untried' ? sql.ref('lapses') : 0
    // Sub-selects that end at their first row: of `exists` PostgreSQL makes a join over all that is pending.
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
    // The last of them is found in the index alone; only these rows are read. SQLite would walk the table by seq.
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

  /** The topics of the heads of lanes: of all, or of the due ones. Walks from topic to topic, which are few. */
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

  /** The holders of these lanes, which the caller has locked, lose their leases. */
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
      const locked = await sql<{ key: string; token: string | null; lapses: number }>`
        select key, lease_token as token, lapses from lanes
        where ${engine.isOneOf('key', [...tokens.keys()])} order by key ${engine.forUpdate}`.execute(trx)
      const held = locked.filter(({ key, token }) => token !== null && token === tokens.get(key))
      const keys = new Set(held.map(({ key }) => key))
      const ours = finishes.filter(({ id, leaseToken }) => keys.has(id) && tokens.get(id) === leaseToken)
      await settle(engine, trx, ours)
      // Only now, in a statement that sees what was accepted while this one waited for the lane.
      const left = new Set(ours.filter(({ keep }) => !keep).map(({ id }) => id))
      const tried = new Set(ours.filter(({ results }) => results.length > 0).map(({ id }) => id))
      await advance(
        trx,
        [...left].filter((id) => tried.has(id)),
        'all',
      )
      await advance(
        trx,
        [...left].filter((id) => !tried.has(id)),
        'untried',
      )
      const kept = held
        .filter(({ key, lapses }) => !left.has(key) && Number(lapses) > 0)
        .map(({ key }) => key)
      if (kept.length > 0)
        await sql`update lanes set lapses = 0 where ${engine.isOneOf('key', kept)}`.execute(trx)
      return [...keys]
    },

    /** After an entry became pending: its lane, which the caller has locked, may have a new head. */
    async replayed(
      trx: Connection,
      { key, seq, wasPending }: { key: string; seq: number; wasPending: boolean },
    ) {
      await advance(trx, [key], 'free')
      if (!wasPending) return
      // Its handlers may be at work on it.
      const rows = await sql`
        select 1 from journal where key = ${key} and status = 'pending' and seq < ${seq}
        order by seq limit 1 offset ${MAX_HANDED_OUT - 1}`.execute(trx)
      if (rows.length === 0) await takeBack(trx, [key])
    },
  }
}

/** Keys as a sub-select. */
export function keysIn(engine: Pick<Engine, 'rows'>) {
  return (keys: readonly string[]) =>
    sql`(select key from ${engine.rows(JSON.stringify(keys.map((key) => ({ key }))), { key: 'text' })} as keys)`
}

export type Lanes = ReturnType<typeof createLanes>
