import { nextTurn } from '../../base/waiting.js'
import { headsOf, topicsOf } from '../lanes/heads.js'
import type { Lanes } from '../lanes/lanes.js'
import { EVERY_EVENT, isTopicAmong } from '../port/journal.js'
import type { HandleTopics, Topic } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { byBytes } from '../sql/lock-order.js'
import type { HandlersTable } from '../sql/schema.js'
import { type Connection, sql } from '../sql/sql.js'
import { withinBytes } from '../sql/within-bytes.js'
import { prepare, run } from '../sql/writes.js'
import { asideTopics, IS_ASIDE } from './is-handled.js'

/**
 * The table `handlers`: the topics that processes have had handlers for, and when one last named them. docs/states.md has
 * their states.
 *
 * A process names its topics, then makes pending what came unhandled before that, and only then claims entries of these
 * topics. So a handler gets the events of a subscription in order, however late it is registered.
 */
export function createHandledTopics(engine: Engine, lanes: Lanes) {
  const nameTopics = prepare(
    engine,
    { topic: 'text', reach_ms: 'integer' },
    ({ insert, of }) => sql`
      insert into handlers (topic, seen_at, rescue_from)
      ${insert(sql`${of('topic')}, ${of('lease_now')}, ${of('lease_now')} - ${of('reach_ms')}`)}
      on conflict (topic) do update set seen_at = excluded.seen_at`,
  )
  /**
   * Writes that a process has these topics. Returns how far back their unhandled events are to be made pending: within
   * `rescueMs`; without a limit for the first processes with handlers, those that began before, or at most shortly after, the
   * first of them had made pending what came before it. Nothing is history for them, so two that begin together get the same
   * events. A topic has the reach of the process that first named it until a process has made its events pending: the first
   * one may end before that.
   */
  async function name(trx: Connection, topics: readonly Topic[], rescueMs: number): Promise<number> {
    const rows = await sql<Omit<HandlersTable, 'seen_at'> & { now: number }>`
      select topic, rescued_at, rescue_from, ${engine.leaseNow()} as now from handlers`.execute(trx)
    const known = new Set(rows.map(({ topic }) => topic))
    const hasHistory = rows.some(({ rescued_at: at, now }) => at !== null && at < now - rescueMs)
    const reachMs = hasHistory ? Math.ceil(rescueMs) : null
    // Those who accept events wait, and see the new rows: none of them takes an event for unhandled after this commit.
    if (topics.some((topic) => !known.has(topic))) await engine.holdWrites?.(trx)
    const named = [...topics].sort(byBytes).map((topic) => ({ topic, reach_ms: reachMs }))
    await run(engine, trx, nameTopics(named))
    const left = rows.filter((row) => row.rescued_at === null && topics.includes(row.topic))
    const reaches = left.map(({ rescue_from: from, now }) => (from === null ? null : now - from))
    return Math.max(...[reachMs, ...reaches].map((ms) => ms ?? Number.MAX_SAFE_INTEGER))
  }

  /** Writes that the events of these topics that came before are pending. */
  async function noteRescue(trx: Connection, topics: readonly Topic[]) {
    await sql`
      update handlers set rescued_at = ${engine.leaseNow()} where topic in (
        select topic from handlers where rescued_at is null and ${engine.isOneOf('topic', topics)}
        order by topic ${engine.forUpdate}
      )`.execute(trx)
  }

  /** Makes unhandled events pending, each behind the pending ones of its lane that came before. */
  async function makePending(trx: Connection, rows: readonly Unhandled[]) {
    await run(engine, trx, ...lanes.enter(rows.map(({ key, topic }) => ({ key, topic }))))
    await sql`
      update journal set status = 'pending', due_at = ${engine.now()}, settled_at = null where id in (
        select id from journal where ${engine.isOneOf(
          'id',
          rows.map(({ id }) => id),
        )} and ${sql.still(sql`status = 'unhandled'`)} order by id ${engine.forUpdate}
      )`.execute(trx)
    await lanes.advance(trx, [...new Set(rows.map(({ key }) => key))], 'free')
  }

  /** Makes a batch of the events pending that were set aside while no process named their topic. */
  async function revive(trx: Connection, named: readonly Topic[]): Promise<number> {
    const aside = named.includes(EVERY_EVENT) ? await topicsAside(engine, trx) : []
    const oldest = [...new Set([...named, ...aside])].map(
      (topic, i) => sql`
        select * from (
          select id, key, topic, seq, octet_length(payload) as bytes from journal ${engine.byIndex('journal_aside')}
          where ${IS_ASIDE} and topic = ${topic}
          order by seq limit ${BATCH}
        ) as ${sql.ref(`topic_${i}`)}`,
    )
    const rows = await sql<Unhandled>`
      select id, key, topic, bytes from (${sql.join(oldest, ' union all ')}) as oldest order by seq limit ${BATCH}`.execute(
      trx,
    )
    if (rows.length > 0) await makePending(trx, withinBytes(rows))
    return rows.length
  }

  /**
   * Makes a batch of the entitlements pending that came before any process had their handler. It is repeated, because one that
   * a read was writing when the topic was first named comes later. Each says what is true when it is handled, so none is too
   * old.
   */
  async function wakeEntitlements(trx: Connection): Promise<number> {
    const rows = await sql<Unhandled>`
      select id, key, topic, octet_length(payload) as bytes from journal ${engine.byIndex('journal_status')}
      where status = 'unhandled' and kind = 'entitlement' order by seq limit ${BATCH}`.execute(trx)
    if (rows.length > 0) await makePending(trx, rows)
    return rows.length
  }

  /**
   * Sets aside the events of a topic that no process names, in a batch of lanes that have one at their head: all among the
   * first pending entries of the lane, so that they do not delay those of other topics. Returns how many lanes that were. Only
   * events share a lane with others.
   */
  async function setAside(trx: Connection, retireMs: number, own: ReadonlySet<Topic>): Promise<number> {
    const heads = (await topicsOf(trx)).filter((topic) => topic.startsWith('event:'))
    if (heads.every((topic) => isTopicAmong(own, topic))) return 0
    // Locked: a process that names a topic meanwhile makes pending again what is set aside here.
    const named = await sql<Pick<HandlersTable, 'topic'> & { age: number }>`
      select topic, ${engine.leaseNow()} - seen_at as age from handlers order by topic ${engine.forUpdate}`.execute(
      trx,
    )
    const handled = new Set(named.flatMap(({ topic, age }) => (age <= retireMs ? topic : [])))
    for (const topic of heads) {
      if (isTopicAmong(own, topic) || isTopicAmong(handled, topic)) continue
      const rows = await sql<{ key: string }>`
        select key from lanes where topic = ${topic} and (lease_token is null or due_at <= ${engine.leaseNow()})
        order by unread, due_at limit ${LANES} ${engine.skipLocked}`.execute(trx)
      if (rows.length === 0) continue
      const keys = rows.map(({ key }) => key)
      const found = await headsOf(engine, trx, keys, Math.floor(BATCH / keys.length))
      const ids = [...found.values()].flat().flatMap((row) => (row.topic === topic ? row.id : []))
      await sql`
        update journal set status = 'unhandled', settled_at = ${engine.now()}
        where ${engine.isOneOf('id', ids)} and ${sql.still(sql`status = 'pending'`)}`.execute(trx)
      await lanes.advance(trx, keys, 'all')
      return keys.length
    }
    return 0
  }

  return {
    /** See the port. True when entries became pending. `isClosed` ends it between two batches. */
    async handle(
      { topics, rescueMs, retireMs }: HandleTopics,
      { read, write }: Pick<Engine, 'read' | 'write'>,
      isClosed: () => boolean,
    ): Promise<boolean> {
      let moved = false
      let namedAt = Number.NEGATIVE_INFINITY
      let reachMs: number | undefined
      // Repeated between batches: many may take longer than `retireMs`, and other processes would set aside these topics.
      const nameEvery = async (ms: number) => {
        if (topics.length === 0 || engine.clock.monotonic() - namedAt < ms) return
        namedAt = engine.clock.monotonic()
        const namedMs = await write((trx) => name(trx, topics, rescueMs))
        reachMs ??= namedMs
      }
      /** Writes batches until one is empty. A batch may run again, so `written` is called after its commit. */
      const inBatches = async (
        batch: (trx: Connection) => Promise<number>,
        written: (count: number) => void = () => {},
      ) => {
        while (!isClosed()) {
          const count = await write(batch)
          if (count === 0) return
          written(count)
          moved = true
          await nextTurn()
          await nameEvery(retireMs / 6)
        }
      }
      if (topics.length > 0) {
        await nameEvery(0)
        await inBatches((trx) => revive(trx, topics))
        if (topics.includes('entitlement')) await inBatches(wakeEntitlements)
        if (rescueMs > 0) {
          for await (const late of unhandledEvents(engine, read, new Set(topics), reachMs ?? rescueMs)) {
            await inBatches(
              async (trx) => {
                const batch = withinBytes(late.slice(0, BATCH))
                if (batch.length > 0) await makePending(trx, batch)
                return batch.length
              },
              (count) => late.splice(0, count),
            )
            if (isClosed()) return moved
            await nameEvery(retireMs / 6)
          }
          await write((trx) => noteRescue(trx, topics))
        }
      }
      await inBatches((trx) => setAside(trx, retireMs, new Set(topics)))
      return moved
    },
  }
}

async function topicsAside(engine: Engine, trx: Connection): Promise<Topic[]> {
  const rows = await sql<{ topic: Topic }>`
    with recursive ${asideTopics(engine)} select topic from topics where topic is not null`.execute(trx)
  return rows.map(({ topic }) => topic)
}

/**
 * The events of these topics that are unhandled and came within `withinMs`, the newest first, a window at a time.
 */
async function* unhandledEvents(
  engine: Pick<Engine, 'now'>,
  read: Engine['read'],
  topics: ReadonlySet<Topic>,
  withinMs: number,
): AsyncGenerator<Unhandled[]> {
  for (const kind of ['event', 'unrecognised'] as const) {
    for (let before = Number.MAX_SAFE_INTEGER, goesOn = true; goesOn; ) {
      const rows = await read((db) =>
        sql<Unhandled & { seq: number; is_recent: number }>`
          select id, key, topic, seq, octet_length(payload) as bytes,
            case when received_at >= ${engine.now()} - ${Math.ceil(withinMs)} then 1 else 0 end as is_recent from journal
          where status = 'unhandled' and kind = ${kind} and seq < ${before}
          order by seq desc limit ${WINDOW}`.execute(db),
      )
      yield rows.filter((row) => row.is_recent === 1 && isTopicAmong(topics, row.topic))
      const last = rows.at(-1)
      before = last?.seq ?? 0
      goesOn = rows.length === WINDOW && last?.is_recent === 1
      await nextTurn()
    }
  }
}

/** What is needed of an entry to make it pending. */
interface Unhandled {
  id: string
  key: string
  topic: Topic
  /** The length of its payload. */
  bytes: number
}

/** The entries of one transaction: on SQLite the event loop waits for it. */
const BATCH = 200
/** The lanes of one transaction. */
const LANES = 50
/** The entries that one statement reads. */
const WINDOW = 1_000
