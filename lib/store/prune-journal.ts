import type { Engine } from './engine.js'
import { ENTRY_KINDS } from './entries.js'
import { readTopics } from './read-topics.js'
import { type Connection, sql } from './sql.js'
import {
  type DeadEntry,
  type EntryKind,
  isTopicAmong,
  type Pruned,
  type Retention,
  type Topic,
} from './store.js'

/** Rows in one transaction: on SQLite the event loop waits for it (100 take 3 ms, 8 where pages have to be read). */
const BATCH = 100
/** The condition of the partial index `journal_settled`: SQLite uses it only for a query that repeats it. */
const HAS_SETTLED = sql`status in ('done', 'dead', 'waiting', 'unhandled')`
/** The error of an entry that ended for want of a handler. */
export const NO_HANDLER = 'no handler was registered for it before its retention ended'

/** Prunes the table `journal`: a call does one batch of the first rule that finds a row. */
export function createJournalPruning(engine: Engine) {
  const { now } = engine

  /** Deletes a batch of entries of one status and kind whose retention has ended. */
  async function deleteSettled(
    trx: Connection,
    status: 'done' | 'dead' | 'unhandled',
    kind: EntryKind,
    retentionMs: number,
  ) {
    const rows = await sql`
      delete from journal where id in (
        select id from journal where status = ${sql.lit(status)} and ${HAS_SETTLED} and kind = ${sql.lit(kind)}
          and settled_at < ${now()} - ${retentionMs}
        order by settled_at limit ${BATCH} ${engine.skipLocked}
      ) returning id`.execute(trx)
    return rows.length
  }

  /** Deletes those of the oldest unhandled entries whose retention has ended. `seq` is the order of their arrival. */
  async function deleteUnhandled(trx: Connection, kind: EntryKind, retentionMs: number) {
    const rows = await sql`
      delete from journal where id in (
        select id from (
          select id, received_at from journal where status = 'unhandled' and kind = ${sql.lit(kind)}
          order by seq limit ${BATCH} ${engine.skipLocked}
        ) as oldest where received_at < ${now()} - ${retentionMs}
      ) returning id`.execute(trx)
    return rows.length
  }

  /**
   * Ends a batch of entries whose retention has ended while they waited for a handler: as dead if a process once had one,
   * else as unhandled. Such a change is kept as long as a dead one, so that a replay can still find it.
   */
  async function endWaiting(trx: Connection, kind: EntryKind, retentionMs: number): Promise<Pruned> {
    const rows = await sql<{ id: string; topic: Topic }>`
      select id, topic from journal where status = 'waiting' and ${HAS_SETTLED} and kind = ${sql.lit(kind)}
        and settled_at < ${now()} - ${retentionMs}
      order by settled_at limit ${BATCH} ${engine.skipLocked}`.execute(trx)
    if (rows.length === 0) return { rows: 0, dead: [] }
    const { named } = await readTopics(engine, trx)
    const idsOf = (isHandled: boolean) =>
      rows.filter(({ topic }) => isTopicAmong(named, topic) === isHandled).map(({ id }) => id)
    await sql`
      update journal set status = 'unhandled', settled_at = ${kind === 'change' ? now() : sql`null`}
      where ${engine.isOneOf('id', idsOf(false))}`.execute(trx)
    const dead = await sql<DeadEntry>`
      update journal set status = 'dead', settled_at = ${now()}, error = ${NO_HANDLER}
      where ${engine.isOneOf('id', idsOf(true))}
      returning id, kind, name, business_uid as "businessUid", subscription_uid as "subscriptionUid", attempts, error`.execute(
      trx,
    )
    return { rows: rows.length, dead }
  }

  return async function prune(trx: Connection, { doneMs, changesMs, deadMs }: Retention): Promise<Pruned> {
    for (const kind of ENTRY_KINDS) {
      const handledMs = kind === 'change' ? changesMs : doneMs
      const ended = await endWaiting(trx, kind, handledMs)
      if (ended.rows > 0) return ended
      const rows =
        (await (kind === 'change'
          ? deleteSettled(trx, 'unhandled', kind, deadMs)
          : deleteUnhandled(trx, kind, doneMs))) ||
        (await deleteSettled(trx, 'done', kind, handledMs)) ||
        (await deleteSettled(trx, 'dead', kind, deadMs))
      if (rows > 0) return { rows, dead: [] }
    }
    return { rows: 0, dead: [] }
  }
}
