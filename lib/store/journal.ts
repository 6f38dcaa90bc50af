import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import type { HandledTopics } from './handled-topics.js'
import type { Lanes } from './lanes.js'
import { perform, prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'
import {
  type DeadEntry,
  type EntryKind,
  type NewAction,
  type NewEvent,
  type Pruned,
  type Retention,
  type Topic,
  topicOf,
} from './store.js'

/** Rows in one transaction: on SQLite the event loop waits for it (100 take 3 ms, 8 where pages have to be read). */
const BATCH = 100
/** Said of the index `journal_settled`; said again, or SQLite does not use it. */
const HAS_SETTLED = sql`status in ('done', 'dead', 'waiting')`
const KINDS = ['event', 'unrecognised', 'change', 'action'] as const

/** A change as it is written: under an id and a key of the caller's. */
export interface WrittenChange {
  id: string
  key: string
  businessUid: string
  subscriptionUid: string
  /** json */
  payload: string
}

/** The table `journal`: how entries get into it, and how they leave it. What happens between is in `lanes.ts`. */
export function createJournal(engine: Engine, lanes: Lanes, handled: HandledTopics) {
  const { now } = engine

  const insertAll = prepareInsert(
    engine,
    NEW_COLUMNS,
    ({ insert, of }) => sql`
      insert into journal
        (id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, received_at, settled_at)
      ${insert(sql`${of('id')}, ${of('kind')}, ${of('name')}, ${of('topic')}, ${of('key')}, ${of('business')},
        ${of('subscription')}, ${of('payload')}, ${of('issues')}, ${of('status')}, 0, ${of('now')},
        case when ${of('status')} = 'waiting' then ${of('now')} end`)}
      on conflict (id) do nothing`,
  )

  /** What nobody handles is written once and is in no lane. */
  function* append(entries: readonly NewEntry[]): Script {
    if (entries.length === 0) return
    const topics = topicsOf(entries)
    const statusOf = yield* handled.statuses(topics)
    const rows = entries.map((entry, i) => ({
      id: entry.id,
      kind: entry.kind,
      name: entry.name,
      topic: topics[i] as Topic,
      key: entry.key,
      business: entry.businessUid,
      subscription: entry.subscriptionUid,
      payload: entry.payload,
      issues: entry.issues && JSON.stringify(entry.issues),
      status: statusOf(topics[i] as Topic, entry.kind),
    }))
    yield* lanes.enter(rows.filter(({ status }) => status === 'pending'))
    yield insertAll(rows)
  }

  /** Deletes a batch of one status and kind that was settled long ago. */
  async function deleteSettled(trx: Connection, status: 'done' | 'dead', kind: EntryKind, keepMs: number) {
    const rows = await sql`
      delete from journal where id in (
        select id from journal where status = ${sql.lit(status)} and ${HAS_SETTLED} and kind = ${sql.lit(kind)}
          and settled_at < ${now()} - ${keepMs}
        order by settled_at limit ${BATCH} ${engine.skipLocked}
      ) returning id`.execute(trx)
    return rows.length
  }

  /** What nobody handled is in the order of its arrival: the oldest are looked at, and those that are too old go. */
  async function deleteUnhandled(trx: Connection, kind: EntryKind, keepMs: number) {
    const rows = await sql`
      delete from journal where id in (
        select id from (
          select id, received_at from journal where status = 'unhandled' and kind = ${sql.lit(kind)}
          order by seq limit ${BATCH} ${engine.skipLocked}
        ) as oldest where received_at < ${now()} - ${keepMs}
      ) returning id`.execute(trx)
    return rows.length
  }

  /** Ends a batch of what has waited too long for a handler. */
  async function endWaiting(trx: Connection, kind: EntryKind, keepMs: number): Promise<DeadEntry[]> {
    const rows = await sql<DeadEntry>`
      update journal set status = 'dead', settled_at = ${now()}, error = ${NOBODY_CAME}
      where id in (
        select id from journal where status = 'waiting' and ${HAS_SETTLED} and kind = ${sql.lit(kind)}
          and settled_at < ${now()} - ${keepMs}
        order by settled_at limit ${BATCH} ${engine.skipLocked}
      )
      returning id, kind, name, business_uid as "businessUid", subscription_uid as "subscriptionUid", attempts, error`.execute(
      trx,
    )
    return rows
  }

  return {
    insert: (events: readonly NewEvent[]) => append(events),

    insertChanges: (trx: Connection, changes: readonly WrittenChange[]) =>
      perform(
        engine,
        trx,
        append(changes.map((change) => ({ ...change, kind: 'change', name: '', issues: null }))),
      ),

    /** Done from the start, so it has no lane. Kept once. */
    async insertAction(trx: Connection, { id, name, businessUid, payload }: NewAction) {
      const json = JSON.stringify([{ id, name, business: businessUid, payload }])
      const columns = { id: 'text', name: 'text', business: 'text', payload: 'text' } as const
      await sql`
        insert into journal
          (id, kind, name, topic, key, business_uid, payload, status, attempts, received_at, settled_at)
        select id, 'action', name, 'action', id, business, payload, 'done', 0, ${now()}, ${now()}
        from ${engine.rows(json, columns)} as actions where true
        on conflict (id) do nothing`.execute(trx)
    },

    async replay(trx: Connection, id: string): Promise<boolean> {
      const find = async () => {
        const rows = await sql<{
          key: string
          kind: EntryKind
          topic: string
          status: string
          seq: number
        }>`
          select key, kind, topic, status, seq from journal where id = ${id}`.execute(trx)
        return rows[0]
      }
      const found = await find()
      if (!found || found.kind === 'action') return false
      const { key, topic, kind } = found
      const statusOf = await perform(engine, trx, handled.statuses([topic]))
      const isHandled = statusOf(topic, kind) === 'pending'
      await perform(engine, trx, lanes.enter([{ key, topic }]))
      // As it is now that nobody can end it.
      const entry = await find()
      if (!entry) {
        await lanes.advance(trx, [key], 'free')
        return false
      }
      const wasPending = entry.status === 'pending'
      await sql`
        update journal set attempts = 0, due_at = null,
          status = ${isHandled || wasPending ? 'pending' : 'waiting'},
          settled_at = ${isHandled || wasPending ? sql`null` : now()}
        where id = ${id}`.execute(trx)
      await lanes.replayed(trx, { key, seq: Number(entry.seq), wasPending })
      return true
    },

    /** One batch of the first rule that finds something. */
    async prune(trx: Connection, { doneMs, changesMs, deadMs }: Retention): Promise<Pruned> {
      for (const kind of KINDS) {
        const handledMs = kind === 'change' ? changesMs : doneMs
        const dead = await endWaiting(trx, kind, handledMs)
        if (dead.length > 0) return { rows: dead.length, dead }
        const rows =
          (await deleteUnhandled(trx, kind, doneMs)) ||
          (await deleteSettled(trx, 'done', kind, handledMs)) ||
          (await deleteSettled(trx, 'dead', kind, deadMs))
        if (rows > 0) return { rows, dead: [] }
      }
      return { rows: 0, dead: [] }
    },
  }
}

type NewEntry = Pick<
  NewEvent,
  'id' | 'name' | 'key' | 'businessUid' | 'subscriptionUid' | 'payload' | 'issues'
> & { kind: EntryKind }

/** Most entries of a batch are of the same few names: to put their topics together again and again would cost more. */
function topicsOf(entries: readonly NewEntry[]): Topic[] {
  let last: { kind: EntryKind; name: string; topic: Topic } | undefined
  return entries.map((entry) => {
    const { kind, name } = entry
    if (last?.kind !== kind || last.name !== name) last = { kind, name, topic: topicOf(entry) }
    return last.topic
  })
}

const NOBODY_CAME = 'no handler was registered for it before its retention ended'

const NEW_COLUMNS = {
  id: 'text',
  kind: 'text',
  name: 'text',
  topic: 'text',
  key: 'text',
  business: 'text',
  subscription: 'text',
  payload: 'text',
  issues: 'text',
  status: 'text',
} as const

export type Journal = ReturnType<typeof createJournal>
