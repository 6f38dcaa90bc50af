import type { Engine } from './engine.js'
import type { Lanes } from './lanes.js'
import { readTopics } from './read-topics.js'
import { perform } from './script.js'
import { type Connection, type Sql, sql } from './sql.js'
import { EVERY_EVENT, isTopicAmong, type Topic } from './store.js'
import { withinBytes } from './within-bytes.js'

/** The entries of one transaction: on SQLite the event loop waits for it. */
export const BATCH = 200

/** What is needed of an entry to make it pending. */
export interface Waiting {
  id: string
  key: string
  topic: Topic
  /** The length of its payload. */
  bytes: number
}

/** Moves entries into and out of the status `waiting`, one batch in each transaction. `handled-topics.ts` has the rules. */
export function createWaitingEntries(engine: Engine, lanes: Lanes) {
  /** Makes a batch of events `unhandled` that came before the first worker, which does not handle them. */
  async function markUnhandled(trx: Connection): Promise<boolean> {
    const { all } = await readTopics(engine, trx)
    const topics = (await waitingEvents(engine, trx)).filter((topic) => !isTopicAmong(all, topic))
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
   * Makes unhandled events wait, as if their topics had been named when they came. `release` then makes them pending, in
   * order with those that wait already.
   */
  async function rescue(trx: Connection, rows: readonly Waiting[]) {
    await sql`
      update journal set status = 'waiting', settled_at = ${engine.now()}
      where ${engine.isOneOf(
        'id',
        rows.map(({ id }) => id),
      )} and ${sql.still(sql`status = 'unhandled'`)}`.execute(trx)
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
    const events = named.includes(EVERY_EVENT) ? await waitingEvents(engine, trx) : []
    const oldest = [...new Set([...named, ...events])].map(
      (topic, i) => sql`
        select * from (
          select id, key, topic, seq, octet_length(payload) as bytes from journal
          where status = 'waiting' and topic = ${topic}
          order by seq limit ${BATCH}
        ) as ${sql.ref(`topic_${i}`)}`,
    )
    const rows = await sql<Waiting>`
      select id, key, topic, bytes from (${sql.join(oldest, ' union all ')}) as oldest order by seq limit ${BATCH}`.execute(
      trx,
    )
    if (rows.length > 0) {
      await makePending(trx, withinBytes(rows))
      return true
    }
    await sql`
      update handlers set ready = 1 where ${engine.isOneOf('topic', named)} and ready = 0`.execute(trx)
    return false
  }

  /** Makes these entries pending, if they still wait. */
  async function makePending(trx: Connection, rows: readonly Waiting[]) {
    await perform(engine, trx, lanes.enter(rows))
    await sql`
      update journal set status = 'pending', due_at = ${engine.now()}, settled_at = null
      where ${engine.isOneOf(
        'id',
        rows.map(({ id }) => id),
      )} and ${sql.still(sql`status = 'waiting'`)}`.execute(trx)
    await lanes.advance(trx, [...new Set(rows.map(({ key }) => key))], 'free')
  }

  return { markUnhandled, rescue, release }
}

/** The topics of waiting events. */
async function waitingEvents(engine: Engine, trx: Connection): Promise<Topic[]> {
  const rows = await sql<{ topic: Topic }>`
    with recursive ${waitingTopics(engine)} select topic from topics where topic is not null`.execute(trx)
  return rows.map(({ topic }) => topic).filter((topic) => topic.startsWith('event:'))
}

/** `topics`, those of all waiting entries, for a recursive query: it reads one index entry for each topic. */
export function waitingTopics(engine: Pick<Engine, 'byIndex'>): Sql {
  const waiting = sql`journal ${engine.byIndex('journal_waiting')} where status = 'waiting'`
  return sql`topics(topic) as (
    select min(topic) from ${waiting}
    union all
    select (select min(journal.topic) from ${waiting} and journal.topic > topics.topic)
    from topics where topic is not null
  )`
}
