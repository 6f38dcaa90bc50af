import { DAY } from '../clock.js'
import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { createStatuses, WORKER } from './entry-status.js'
import type { Lanes } from './lanes.js'
import { perform } from './script.js'
import { type Connection, type Sql, sql } from './sql.js'
import { EVERY_EVENT, type HandleTopics, isTopicAmong, type Topic } from './store.js'

/** Entries in one transaction: on SQLite the event loop waits for it. */
const BATCH = 200
/** After this time a topic that no process names is forgotten: its events are `unhandled` and do not wait any more. */
const FORGET_MS = 3 * DAY

/**
 * The table `handlers`: which topics any process has handlers for, and with it whether a new entry is pending.
 *
 * A topic is absent (nobody has handled it for days), not ready, or ready. A process that names it makes it not ready
 * first, hands over what waits for it in order, and when nothing is left, ready: until then new entries wait too, behind
 * the others. A topic that no process has named for a while is made not ready again, and what stands in lanes for
 * it is set aside. Before the first process that works has named its topics, nobody knows what will be handled, and every
 * entry waits. Writers of entries that find it not ready lock its row, so that none begins to wait unseen.
 */
export function createHandledTopics(engine: Engine, lanes: Lanes) {
  /** Named by this process; what it receives is pending even before the others know. */
  let own = new Set<Topic>()
  let isWorker = false
  const { now } = engine

  async function readiness(trx: Connection, lock: Sql = sql``) {
    const rows = await sql<{ topic: Topic; ready: number; age: number }>`
      select topic, ready, ${now()} - seen_at as age from handlers order by topic ${lock}`.execute(trx)
    return {
      rows,
      all: new Set(rows.map(({ topic }) => topic)),
      ready: new Set(rows.filter(({ ready }) => Number(ready) === 1).map(({ topic }) => topic)),
    }
  }

  /** Answers whether this is the first process that works. */
  async function announce(trx: Connection, topics: readonly Topic[]): Promise<boolean> {
    const isFirst = !(await readiness(trx)).all.has(WORKER)
    const json = JSON.stringify([WORKER, ...topics].sort().map((topic) => ({ topic })))
    await sql`
      insert into handlers (topic, seen_at, ready)
      select topic, ${now()}, 0 from ${engine.rows(json, { topic: 'text' })} as named where true
      on conflict (topic) do update set seen_at = ${now()}`.execute(trx)
    return isFirst
  }

  /** A batch of events that came before there was any process that works, and that nobody handles. */
  async function dismiss(trx: Connection): Promise<boolean> {
    const { all } = await readiness(trx)
    const topics = (await waitingEvents(trx)).filter((topic) => !isTopicAmong(all, topic))
    if (!all.has('unrecognised')) topics.push('unrecognised')
    for (const topic of topics) {
      const rows = await sql`
        update journal set status = 'unhandled', settled_at = null where id in (
          select id from journal where status = 'waiting' and topic = ${topic} order by seq limit ${BATCH}
        ) returning id`.execute(trx)
      if (rows.length > 0) return true
    }
    return false
  }

  /** Hands over one batch of what waits for `named`; false when there is no more, and then it is ready. */
  async function release(trx: Connection, named: Topic): Promise<boolean> {
    await sql`select topic from handlers where topic = ${named} ${engine.forUpdate}`.execute(trx)
    const topics = named === EVERY_EVENT ? await waitingEvents(trx) : [named]
    for (const topic of topics) {
      const rows = await sql<Waiting>`
        select id, key, topic from journal where status = 'waiting' and topic = ${topic}
        order by seq limit ${BATCH}`.execute(trx)
      if (rows.length === 0) continue
      await makePending(trx, rows, 'waiting')
      return true
    }
    await sql`update handlers set ready = 1 where topic = ${named} and ready = 0`.execute(trx)
    return false
  }

  /** The topics of events that wait, from one to the next by the index. */
  async function waitingEvents(trx: Connection): Promise<Topic[]> {
    const rows = await sql<{ topic: Topic }>`
      with recursive topics(topic) as (
        select min(topic) from journal where status = 'waiting' and topic > 'event:'
        union all
        select (select min(journal.topic) from journal where status = 'waiting' and journal.topic > topics.topic)
        from topics where topic is not null
      )
      select topic from topics where topic is not null`.execute(trx)
    return rows.map(({ topic }) => topic).filter((topic) => topic.startsWith('event:'))
  }

  async function makePending(trx: Connection, rows: readonly Waiting[], from: 'waiting' | 'unhandled') {
    await perform(engine, trx, lanes.enter(rows))
    await sql`
      update journal set status = 'pending', settled_at = null
      where ${engine.isOneOf(
        'id',
        rows.map(({ id }) => id),
      )} and status = ${from}`.execute(trx)
    await lanes.advance(trx, [...new Set(rows.map(({ key }) => key))], 'free')
  }

  /** Ids of events of these topics that nobody handled when they came, `withinMs` ago at most. In order. */
  async function unhandledSince(topics: ReadonlySet<Topic>, withinMs: number): Promise<Waiting[]> {
    const found: Waiting[] = []
    for (const kind of ['event', 'unrecognised'] as const) {
      for (let before = Number.MAX_SAFE_INTEGER, isRecent = true; isRecent; ) {
        const rows = await engine.read((db) =>
          sql<Waiting & { seq: number; is_recent: number }>`
            select id, key, topic, seq, case when received_at >= ${now()} - ${withinMs} then 1 else 0 end as is_recent from journal
            where status = 'unhandled' and kind = ${kind} and seq < ${before}
            order by seq desc limit 1000`.execute(db),
        )
        for (const row of rows)
          if (Number(row.is_recent) === 1 && isTopicAmong(topics, row.topic)) found.push(row)
        before = Number(rows.at(-1)?.seq)
        isRecent = rows.length === 1_000 && Number(rows.at(-1)?.is_recent) === 1
        await nextTurn()
      }
    }
    return found.reverse()
  }

  /** Makes topics not ready that nobody has named lately, and forgets those nobody has named for long. */
  async function retire(trx: Connection, retireMs: number) {
    await sql`update handlers set ready = 0 where ready = 1 and seen_at < ${now()} - ${retireMs}`.execute(trx)
    await sql`
      delete from handlers where ready = 0 and topic <> 'change' and seen_at < ${now()} - ${FORGET_MS}`.execute(
      trx,
    )
  }

  /**
   * Sets aside a batch of what stands at the head of lanes for retired topics; answers how many lanes moved. A topic
   * that is not ready and was named lately is not retired: its process is handing over what waits. A head that would be
   * tried in a day goes too: what is behind it may have a handler.
   */
  async function setAside(trx: Connection, retireMs: number): Promise<number> {
    const { ready, rows } = await readiness(trx, engine.forUpdate)
    const named = new Set(rows.flatMap(({ topic, age }) => (Number(age) <= retireMs ? topic : [])))
    for (const topic of await lanes.topicsOf(trx, 'all')) {
      if ([ready, named, own].some((topics) => isTopicAmong(topics, topic))) continue
      const rows = await sql<{ key: string }>`
        select key from lanes where topic = ${topic} and (lease_token is null or due_at <= ${now()})
        order by due_at limit ${BATCH / 4} ${engine.skipLocked}`.execute(trx)
      if (rows.length === 0) continue
      const keys = rows.map(({ key }) => key)
      const heads = await lanes.headsOf(trx, keys, Math.floor(BATCH / keys.length))
      const retired = [...heads.values()].flat().filter((row) => row.topic === topic)
      await sql`
        update journal set status = 'waiting', due_at = null, settled_at = ${now()}
        where ${engine.isOneOf(
          'id',
          retired.map(({ id }) => id),
        )} and status = 'pending'`.execute(trx)
      await lanes.advance(trx, keys, 'all')
      return keys.length
    }
    return 0
  }

  return {
    statuses: createStatuses(engine, () => ({ own, isWorker })),

    /** See the port. `isClosed` ends it between two batches. */
    async handle(
      { topics, rescueMs, retireMs }: HandleTopics,
      write: Engine['write'],
      isClosed: () => boolean,
    ) {
      own = new Set(topics)
      isWorker = true
      let moved = 0
      let namedAt = Number.NEGATIVE_INFINITY
      // Also while much is handed over: nobody may think that this process has ended.
      const name = async (atMostEveryMs: number) => {
        if (engine.clock.monotonic() - namedAt < atMostEveryMs) return false
        namedAt = engine.clock.monotonic()
        return write((trx) => announce(trx, topics))
      }
      const inBatches = async (batch: (trx: Connection) => Promise<number | boolean>) => {
        while (!isClosed() && (await write(batch))) {
          moved++
          await nextTurn()
          await name(retireMs / 6)
        }
      }
      const isFirst = await name(0)
      for (const topic of topics) await inBatches((trx) => release(trx, topic))
      if (isFirst) await inBatches(dismiss)
      if (topics.length > 0 && rescueMs > 0) {
        const late = await unhandledSince(own, rescueMs)
        await inBatches(async (trx) => {
          const batch = late.splice(0, BATCH)
          if (batch.length > 0) await makePending(trx, batch, 'unhandled')
          return batch.length
        })
      }
      if (topics.length > 0) {
        if (moved > 0) await name(0)
        await write((trx) => retire(trx, retireMs))
        await inBatches((trx) => setAside(trx, retireMs))
      }
      return moved > 0
    },
  }
}

interface Waiting {
  id: string
  key: string
  topic: Topic
}

export type HandledTopics = ReturnType<typeof createHandledTopics>
