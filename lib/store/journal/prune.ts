import type { Lanes } from '../lanes/lanes.js'
import { TAKEN_BACK } from '../leases/leases.js'
import type { Suspects } from '../leases/suspects.js'
import { ENTRY_KINDS } from '../port/journal.js'
import {
  type DeadEntry,
  type EntryKind,
  isTopicAmong,
  type Pruned,
  type Retention,
  type Topic,
} from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { HandlersTable } from '../sql/schema.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { isNamedWithin } from './is-handled.js'

/** Rows in one transaction: on SQLite the event loop waits for it (100 take 3 ms, 8 where pages have to be read). */
const BATCH = 100
/** The batches that one transaction searches for entries whose retention has ended. */
const MAX_BATCHES = 50
/** The condition of the partial index `journal_settled`: SQLite uses it only for a query that repeats it. */
const HAS_SETTLED = sql`status in ('done', 'dead', 'unhandled')`
/** The error of an entry that ended for want of a handler. */
export const NO_HANDLER = 'no handler was registered for it before its retention ended'

/** Prunes the table `journal`. One call applies the first rule that finds rows, to one batch of them. */
export function createJournalPruning(
  engine: Engine,
  lanes: Pick<Lanes, 'advance'>,
  suspects: Pick<Suspects, 'mark'>,
) {
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
          and settled_at < ${engine.now()} - ${retentionMs}
        order by settled_at limit ${BATCH} ${engine.skipLocked}
      ) returning id`.execute(trx)
    return rows.length
  }

  /** Whether a process once had a handler for each of these topics. */
  async function onceHandled(trx: Connection): Promise<(topic: Topic) => boolean> {
    const rows = await sql<Pick<HandlersTable, 'topic'>>`select topic from handlers`.execute(trx)
    const named = new Set(rows.map(({ topic }) => topic))
    return (topic) => isTopicAmong(named, topic)
  }

  async function endAsDead(trx: Connection, ids: readonly string[]): Promise<DeadEntry[]> {
    if (ids.length === 0) return []
    return sql<DeadEntry>`
      update journal set status = 'dead', due_at = null, settled_at = ${engine.now()}, error = ${NO_HANDLER}, stack = null
      where ${engine.isOneOf('id', ids)}
      returning id, kind, name, business_uid as "businessUid", subscription_uid as "subscriptionUid", attempts, error`.execute(
      trx,
    )
  }

  const isOverdue = (retentionMs: number) =>
    sql`coalesce(due_at, received_at) < ${engine.now()} - ${retentionMs}`

  /** The last entry that a search of each status and kind has passed, since it last reached the end. */
  const passed = new Map<string, number>()

  /**
   * The oldest entries of a status and kind whose retention has ended: since their arrival, or their last replay, which one
   * that was set aside keeps. `seq` is the order of their arrival, so the search passes what was replayed since, a batch at a
   * time, and ends at what arrived within the retention. Where it stops for now, the next one goes on.
   */
  async function oldestOverdue(
    trx: Connection,
    { status, kind, retentionMs }: { status: 'unhandled' | 'pending'; kind: EntryKind; retentionMs: number },
    among: Sql = sql`1 = 1`,
  ): Promise<Overdue[]> {
    const of = `${status} ${kind}`
    for (let batches = 0; batches < MAX_BATCHES; batches++) {
      const rows = await sql<Overdue & { seq: number; is_old: number; is_overdue: number }>`
        select id, key, seq, case when received_at < ${engine.now()} - ${retentionMs} then 1 else 0 end as is_old,
          case when ${isOverdue(retentionMs)} and ${among} then 1 else 0 end as is_overdue
        from journal where status = ${sql.lit(status)} and kind = ${sql.lit(kind)} and seq > ${passed.get(of) ?? 0}
        order by seq limit ${BATCH}`.execute(trx)
      const overdue = rows.filter(({ is_overdue }) => is_overdue === 1)
      if (overdue.length > 0) return overdue
      const last = rows.at(-1)
      if (last?.is_old !== 1 || rows.length < BATCH) {
        passed.delete(of)
        return []
      }
      passed.set(of, last.seq)
    }
    return []
  }

  /**
   * Ends a batch of unhandled events whose retention has ended. Those that were set aside are dead if a process once had
   * their handler; the others are deleted.
   */
  async function endUnhandled(trx: Connection, kind: EntryKind, retentionMs: number): Promise<Pruned> {
    const found = await oldestOverdue(trx, { status: 'unhandled', kind, retentionMs })
    if (found.length === 0) return { rows: 0, dead: [] }
    const rows = await sql<{ id: string; topic: Topic; settled_at: number | null }>`
      select id, topic, settled_at from journal where ${engine.isOneOf(
        'id',
        found.map(({ id }) => id),
      )} and ${sql.still(sql`status = 'unhandled'`)} and ${isOverdue(retentionMs)} ${engine.skipLocked}`.execute(
      trx,
    )
    const isOnceHandled = await onceHandled(trx)
    const isMissed = (row: (typeof rows)[0]) => row.settled_at !== null && isOnceHandled(row.topic)
    const dead = await endAsDead(
      trx,
      rows.flatMap((row) => (isMissed(row) ? row.id : [])),
    )
    await sql`delete from journal where ${engine.isOneOf(
      'id',
      rows.flatMap((row) => (isMissed(row) ? [] : row.id)),
    )}`.execute(trx)
    return { rows: rows.length, dead }
  }

  /**
   * Ends a batch of pending entries that no process has handled until the end of their retention: as dead if a process once
   * had a handler, else as unhandled. Such a change is kept as long as a dead one, so that a replay can still find it.
   */
  async function endPending(trx: Connection, kind: EntryKind, retentionMs: number): Promise<Pruned> {
    const isAbandoned = sql`coalesce(${isNamedWithin(engine, sql.ref('journal.topic'))}, false) = false`
    const found = await oldestOverdue(trx, { status: 'pending', kind, retentionMs }, isAbandoned)
    if (found.length === 0) return { rows: 0, dead: [] }
    const keys = [...new Set(found.map(({ key }) => key))]
    // Entries of a leased lane stay: its holder may be handling one.
    const free = await sql<{ key: string }>`
      select key from lanes
      where ${engine.isOneOf('key', keys)} and (lease_token is null or due_at <= ${engine.leaseNow()})
      order by key ${engine.forUpdate}`.execute(trx)
    if (free.length === 0) return { rows: 0, dead: [] }
    const freeKeys = new Set(free.map(({ key }) => key))
    // The entries are read again, now that the locked lanes prevent a claim, a finish and a replay.
    const rows = await sql<{ id: string; topic: Topic }>`
      select id, topic from journal where ${engine.isOneOf(
        'id',
        found.flatMap(({ id, key }) => (freeKeys.has(key) ? id : [])),
      )} and ${sql.still(sql`status = 'pending'`)} and ${isOverdue(retentionMs)}`.execute(trx)
    const isOnceHandled = await onceHandled(trx)
    const idsOf = (isMissed: boolean) =>
      rows.flatMap(({ id, topic }) => (isOnceHandled(topic) === isMissed ? id : []))
    await sql`
      update journal set status = 'unhandled', due_at = null, settled_at = ${kind === 'change' ? engine.now() : sql`null`}
      where ${engine.isOneOf('id', idsOf(false))}`.execute(trx)
    const dead = await endAsDead(trx, idsOf(true))
    // Leases that ran out are marked here, because a process looks only for those of its own topics. A suspect lane stays
    // suspect: its head may be the one that ended the process, and another entry was too old.
    await suspects.mark(trx, 'lane', engine.isOneOf('key', [...freeKeys]))
    await lanes.advance(trx, [...freeKeys], 'free')
    return { rows: rows.length, dead }
  }

  /**
   * Frees a batch of lanes that were taken from their holders whose leases would have run out by now; without entries they
   * are deleted. Claims do the same, but only for topics that a process handles.
   */
  async function freeTakenBack(trx: Connection): Promise<number> {
    const rows = await sql<{ key: string }>`
      select key from lanes where lease_token is not null and lease_token = ${TAKEN_BACK} and due_at <= ${engine.leaseNow()}
      order by due_at limit ${BATCH} ${engine.skipLocked}`.execute(trx)
    await lanes.advance(
      trx,
      rows.map(({ key }) => key),
      'all',
    )
    return rows.length
  }

  return async function prune(trx: Connection, retention: Retention): Promise<Pruned> {
    const { eventsMs, changesMs, actionsMs, deadMs } = retention
    const handled = {
      event: eventsMs,
      unrecognised: eventsMs,
      change: changesMs,
      entitlement: changesMs,
      action: actionsMs,
    }
    for (const kind of ENTRY_KINDS) {
      const handledMs = handled[kind]
      const ended = await endPending(trx, kind, handledMs)
      if (ended.rows > 0) return ended
      if (kind !== 'change') {
        const unhandled = await endUnhandled(trx, kind, handledMs)
        if (unhandled.rows > 0) return unhandled
      }
      const rows =
        (kind === 'change' && (await deleteSettled(trx, 'unhandled', kind, deadMs))) ||
        (await deleteSettled(trx, 'done', kind, handledMs)) ||
        (await deleteSettled(trx, 'dead', kind, deadMs))
      if (rows > 0) return { rows, dead: [] }
    }
    return { rows: await freeTakenBack(trx), dead: [] }
  }
}

interface Overdue {
  id: string
  key: string
}
