import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import type { HandledTopics } from './handled-topics.js'
import type { Lanes } from './lanes.js'
import { perform, prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'
import {
  type EntryKind,
  type NewAction,
  type NewChange,
  type NewEvent,
  type Topic,
  topicOf,
} from './store.js'

/** A change to write. */
export interface WrittenChange extends NewChange {
  subscriptionUid: string
}

/**
 * The table `journal`: adds and replays entries. `lanes.ts` and `handled-topics.ts` change their status, `prune-journal.ts` deletes them.
 *
 * | status | entered | left |
 * |---|---|---|
 * | pending | written with a topic that is ready, or that this process handles; its topic becomes handled; a replay. A try that failed leaves it pending, with `due_at` | its handlers return: done. Its tries are used up: dead. Its topic is retired: waiting |
 * | waiting | written with a topic that is not ready; a change that no process handles; any entry before the first worker; its topic is retired; unhandled, and a process names its topic within `rescueMs`; a replay while no process handles it | its topic becomes handled: pending. The first worker handles no such event: unhandled. Its retention ends: dead, or unhandled if no process ever had its handler |
 * | unhandled | written, after the first worker, with a topic that no process ever had; waited for one until its retention ended | a process names its topic within `rescueMs`: waiting. A replay: pending or waiting. Its retention ends: deleted |
 * | done | its handlers returned; an action from the start | a replay, but not of an action: pending or waiting. Its retention ends: deleted |
 * | dead | its tries are used up, or its retention ended while it waited | a replay: pending or waiting. Its retention ends: deleted |
 *
 * An erasure deletes an entry in any status.
 */
export function createJournal(engine: Engine, lanes: Lanes, handled: HandledTopics) {
  const { now } = engine

  const insertAll = prepareInsert(
    engine,
    NEW_COLUMNS,
    ({ insert, of }) => sql`
      insert into journal
        (id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, cause, secret, status, attempts, received_at, settled_at)
      ${insert(sql`${of('id')}, ${of('kind')}, ${of('name')}, ${of('topic')}, ${of('key')}, ${of('business')},
        ${of('subscription')}, ${of('payload')}, ${of('issues')}, ${of('cause')}, ${of('secret')}, ${of('status')}, 0, ${of('now')},
        case when ${of('status')} = 'waiting' then ${of('now')} end`)}
      on conflict (id) do nothing`,
  )

  /** Only pending entries enter a lane, so an entry that no process handles is written once. */
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
      cause: entry.cause ?? null,
      secret: entry.secret ?? null,
      status: statusOf(topics[i] as Topic, entry.kind),
    }))
    yield* lanes.enter(rows.filter(({ status }) => status === 'pending'))
    yield insertAll(rows)
  }

  return {
    insert: (events: readonly NewEvent[]) => append(events),

    insertChanges: (trx: Connection, changes: readonly WrittenChange[]) =>
      perform(
        engine,
        trx,
        append(changes.map((change) => ({ ...change, kind: 'change', name: '', issues: null }))),
      ),

    /** An action is done from the start, so it enters no lane. The same id is written once. */
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
      // Read again, now that the locked lane prevents its end.
      const entry = await find()
      if (!entry) {
        await lanes.advance(trx, [key], 'free')
        return false
      }
      const wasPending = entry.status === 'pending'
      await sql`
        update journal set attempts = 0, due_at = ${now()},
          status = ${isHandled || wasPending ? 'pending' : 'waiting'},
          settled_at = ${isHandled || wasPending ? sql`null` : now()}
        where id = ${id}`.execute(trx)
      await lanes.replayed(trx, { key, seq: Number(entry.seq), wasPending })
      return true
    },
  }
}

type NewEntry = Pick<
  NewEvent,
  'id' | 'name' | 'key' | 'businessUid' | 'subscriptionUid' | 'payload' | 'issues'
> & { kind: EntryKind; cause?: NewChange['cause']; secret?: string | null }

/** Consecutive entries of one name share their topic, which saves making the text anew for each. */
function topicsOf(entries: readonly NewEntry[]): Topic[] {
  let last: { kind: EntryKind; name: string; topic: Topic } | undefined
  return entries.map((entry) => {
    const { kind, name } = entry
    if (last?.kind !== kind || last.name !== name) last = { kind, name, topic: topicOf(entry) }
    return last.topic
  })
}

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
  cause: 'text',
  secret: 'text',
  status: 'text',
} as const

export type Journal = ReturnType<typeof createJournal>
