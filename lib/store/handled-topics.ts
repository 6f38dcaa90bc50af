import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { createStatuses, WORKER } from './entry-status.js'
import type { Lanes } from './lanes.js'
import { readTopics } from './read-topics.js'
import { createTopicRetirement } from './retire-topics.js'
import { perform } from './script.js'
import { type Connection, sql } from './sql.js'
import { EVERY_EVENT, type HandleTopics, isTopicAmong, type Topic } from './store.js'

/** The entries of one transaction: on SQLite the event loop waits for it. */
const BATCH = 200

/**
 * The table `handlers`: the topics that any process has handlers for. They decide whether a new entry is pending.
 *
 * | topic | entered | left | new entries |
 * |---|---|---|---|
 * | absent | no process has named it for three days | a process names it: not ready | unhandled; changes wait |
 * | not ready | a process names it; no process has named it for `retireMs`, and entries in lanes wait again | all waiting entries are pending: ready. Not named for three days: absent | wait, behind those that wait already |
 * | ready | all its waiting entries were made pending, in order | no process has named it for `retireMs`: not ready | pending |
 *
 * A worker is a process that has called `handleTopics`. Before the first worker has named its topics, every entry waits.
 * A transaction that writes entries of a topic that is not ready locks the row, so that no entry begins to wait after the
 * last batch.
 */
export function createHandledTopics(engine: Engine, lanes: Lanes) {
  /** The topics of this process. Entries that it receives for them are pending even before the row exists. */
  let own = new Set<Topic>()
  let isWorker = false
  const { now } = engine
  const { retire, setAside } = createTopicRetirement(engine, lanes)

  /** Writes that a process has these topics. True when it is the first worker. */
  async function nameTopics(trx: Connection, topics: readonly Topic[]): Promise<boolean> {
    const isFirst = !(await readTopics(engine, trx)).all.has(WORKER)
    const json = JSON.stringify([WORKER, ...topics].sort().map((topic) => ({ topic })))
    await sql`
      insert into handlers (topic, seen_at, ready)
      select topic, ${now()}, 0 from ${engine.rows(json, { topic: 'text' })} as named where true
      on conflict (topic) do update set seen_at = ${now()}`.execute(trx)
    return isFirst
  }

  /** Makes a batch of events `unhandled` that came before the first worker, which does not handle them. */
  async function markUnhandled(trx: Connection): Promise<boolean> {
    const { all } = await readTopics(engine, trx)
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

  /**
   * Makes one batch of the entries that wait for any of `named` pending: in order over all of them, because entries of
   * one key may have several topics. False when none is left; then the topics are ready.
   */
  async function release(trx: Connection, named: readonly Topic[]): Promise<boolean> {
    await sql`
      select topic from handlers where ${engine.isOneOf('topic', named)} order by topic ${engine.forUpdate}`.execute(
      trx,
    )
    const events = named.includes(EVERY_EVENT) ? await waitingEvents(trx) : []
    const oldest = [...new Set([...named, ...events])].map(
      (topic, i) => sql`
        select * from (
          select id, key, topic, seq from journal where status = 'waiting' and topic = ${topic}
          order by seq limit ${BATCH}
        ) as ${sql.ref(`topic_${i}`)}`,
    )
    const rows = await sql<Waiting>`
      select id, key, topic from (${sql.join(oldest, ' union all ')}) as oldest order by seq limit ${BATCH}`.execute(
      trx,
    )
    if (rows.length > 0) {
      await makePending(trx, rows, 'waiting')
      return true
    }
    await sql`
      update handlers set ready = 1 where ${engine.isOneOf('topic', named)} and ready = 0`.execute(trx)
    return false
  }

  /** The topics of waiting events. The recursive query reads one index entry for each topic. */
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

  /** The events of these topics that are unhandled and came within `withinMs`, in order. */
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

  return {
    statuses: createStatuses(engine, () => ({ own, isWorker })),

    /** See the port. True when entries became pending or waiting. `isClosed` ends it between two batches. */
    async handle(
      { topics, rescueMs, retireMs }: HandleTopics,
      write: Engine['write'],
      isClosed: () => boolean,
    ) {
      own = new Set(topics)
      isWorker = true
      let moved = 0
      let namedAt = Number.NEGATIVE_INFINITY
      // Repeated between batches, so that no other process retires the topics meanwhile.
      const nameEvery = async (atMostEveryMs: number) => {
        if (engine.clock.monotonic() - namedAt < atMostEveryMs) return false
        namedAt = engine.clock.monotonic()
        return write((trx) => nameTopics(trx, topics))
      }
      const inBatches = async (batch: (trx: Connection) => Promise<number | boolean>) => {
        while (!isClosed() && (await write(batch))) {
          moved++
          await nextTurn()
          await nameEvery(retireMs / 6)
        }
      }
      const isFirst = await nameEvery(0)
      if (topics.length > 0) await inBatches((trx) => release(trx, topics))
      if (isFirst) await inBatches(markUnhandled)
      if (topics.length > 0 && rescueMs > 0) {
        const late = await unhandledSince(own, rescueMs)
        await inBatches(async (trx) => {
          const batch = late.splice(0, BATCH)
          if (batch.length > 0) await makePending(trx, batch, 'unhandled')
          return batch.length
        })
      }
      if (topics.length > 0) {
        if (moved > 0) await nameEvery(0)
        await write((trx) => retire(trx, retireMs))
        await inBatches((trx) => setAside(trx, retireMs, own))
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
