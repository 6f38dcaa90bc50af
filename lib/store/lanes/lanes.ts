import { isPendingBy } from '../journal/is-handled.js'
import { TAKEN_BACK } from '../leases/leases.js'
import { businessKey, type EntryKind, isOfRead, subscriptionKey, type Topic } from '../port/store.js'
import type { Write } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { prepare } from '../sql/writes.js'
import { unreadOf } from '../subscriptions/unread.js'
import { isPending } from './heads.js'

/** The most entries of a lane that are handed out, so a replay further behind need not take the lane from its holder. */
export const MAX_HANDED_OUT = 200

/**
 * The table `lanes`: a row for each key that has pending entries. docs/states.md has its states and the order of its locks;
 * `claims.ts` leases lanes, `leases/suspects.ts` the suspect ones, `finishes.ts` finishes them.
 */
export function createLanes(engine: Engine) {
  const entering = (isPending: (kind: Sql, topic: Sql) => Sql) =>
    prepare(
      engine,
      {
        key: 'text',
        topic: 'text',
        kind: 'text',
        subscription: 'text',
        is_of_read: 'integer',
        at: 'integer',
      },
      ({ insertFirst, of }) => sql`
        insert into lanes (key, topic, due_at, lapses, unread)
        ${insertFirst(
          of('key'),
          sql`${of('key')}, ${of('topic')}, ${of('now')}, 0, ${unreadOf(sql`${of('is_of_read')} = 1`, of('subscription'))}`,
          isPending(of('kind'), of('topic')),
        )}
        on conflict (key) do update set unread = case when excluded.unread < lanes.unread then 0 else lanes.unread end,
          due_at = case when excluded.unread < lanes.unread then ${dueAsRead(sql`excluded.due_at`)} else lanes.due_at end`,
      { keepsPlan: true },
    )
  const enterEach = entering(() => sql`1 = 1`)
  const enterIfPending = entering(isPendingBy)
  // Only its unique indexes may keep a plan, so the businesses are looked up by a statement of their own.
  const promoteBusinesses = prepare(
    engine,
    { key: 'text', business: 'text' },
    ({ table }) => sql`
      update lanes set unread = 0, due_at = ${dueAsRead(sql`given.now`)} from ${table} as given
      where lanes.key = given.key and lanes.unread = 1 and exists (
        select 1 from subscriptions where business_uid = given.business and subscriptions.unread = 0
      )`,
  )

  function entered(enter: typeof enterEach, entries: readonly NewHead[]): Write[] {
    const rows = inOrder(entries)
    const ofBusinesses = [...new Set(rows.map(({ key }) => key))].flatMap((key) => {
      const business = after(businessKey(''), key)
      return business === null ? [] : { key, business }
    })
    return [enter(rows), ...(ofBusinesses.length > 0 ? [promoteBusinesses(ofBusinesses)] : [])]
  }

  /** Locks the lanes of these entries, and inserts the missing ones, which are due now. */
  const enter = (entries: readonly NewHead[]) => entered(enterEach, entries)
  /** Locks or inserts the lanes of those new entries that are pending. The others enter no lane. */
  const enterPending = (entries: readonly NewHead[]) => entered(enterIfPending, entries)

  /**
   * Sets each lane to its first pending entry, or deletes it when there is none. The caller has locked the lanes.
   * `free`: leased lanes are left as they are. A suspect one stays suspect, but its lapses begin anew: it may have got
   * another head, which must not become dead for the lapses of the former. `untried`: the holder tried nothing, so the
   * lapses of the head still count, without the one of a try alone that it did not make. A head is due since its lane came
   * to it at the earliest, or keeps the place of a free lane among those of its topic.
   */
  async function advance(trx: Connection, keys: readonly string[], among: 'all' | 'free' | 'untried') {
    if (keys.length === 0) return
    const lapses = among === 'untried' ? sql`lapses - suspect` : sql`0`
    const suspect = among === 'all' ? sql`0` : sql`suspect`
    // Sub-selects that end at their first row: PostgreSQL turns `exists` into a join over all pending entries.
    const free = among === 'free' ? sql`and lease_token is null` : sql``
    const isKept =
      among === 'free' ? sql`journal.topic = lanes.topic and lanes.due_at < ${engine.now()}` : sql`1 = 0`
    const dueAt = sql`case when journal.due_at > ${engine.now()} then journal.due_at
      when ${isKept} then lanes.due_at else ${engine.now()} end`
    await Promise.all([
      sql`
        delete from lanes where ${engine.isOneOf('key', keys)} ${free} and (
          select seq from journal where journal.key = lanes.key and ${isPending(engine)} order by seq limit 1
        ) is null`.execute(trx),
      sql`
        update lanes set lease_token = null, lapses = ${lapses}, suspect = ${suspect}, (topic, due_at) = (
          select journal.topic, ${dueAt} from journal
          where journal.key = lanes.key and ${isPending(engine)} order by seq limit 1
        )
        where ${engine.isOneOf('key', keys)} ${free}`.execute(trx),
    ])
  }

  /** Takes these lanes, which the caller has locked, from their holders. */
  async function takeBack(trx: Connection, keys: readonly string[]) {
    await sql`
      update lanes set lease_token = ${TAKEN_BACK}, lapses = 0, suspect = 0
      where ${engine.isOneOf('key', keys)} and lease_token is not null`.execute(trx)
  }

  return {
    enterPending,
    enter,

    /**
     * Follows the first read of subscriptions: no sender can have made them and their businesses up. A lane that another
     * transaction has locked is left out, because this one has locked others out of order; its next event promotes it.
     * Nothing may wait for a lane after it in its transaction.
     */
    async promote(trx: Connection, read: readonly { subscriptionUid: string; businessUid: string }[]) {
      if (read.length === 0) return
      const keys = read.flatMap(({ subscriptionUid, businessUid }) => [
        subscriptionKey(subscriptionUid),
        businessKey(businessUid),
      ])
      await sql`
        update lanes set unread = 0, due_at = ${dueAsRead(engine.now())} where key in (
          select key from lanes where ${engine.isOneOf('key', keys)} and unread = 1 ${engine.skipLocked}
        )`.execute(trx)
    },

    advance,
    takeBack,

    /** Follows a replay: the lane of the entry, which the caller has locked, may have a new head. */
    async replayed(
      trx: Connection,
      { key, seq, wasPending }: { key: string; seq: number; wasPending: boolean },
    ) {
      await advance(trx, [key], 'free')
      if (!wasPending) return
      // The entry may have been handed out, so its handlers may be running.
      const rows = await sql`
        select 1 from journal where key = ${key} and ${isPending(engine)} and seq < ${seq}
        order by seq limit 1 offset ${MAX_HANDED_OUT - 1}`.execute(trx)
      if (rows.length === 0) await takeBack(trx, [key])
    },
  }
}

/** `due_at` of a lane that becomes one of a subscription that was read: an overdue one is due there from now on. */
function dueAsRead(now: Sql): Sql {
  return sql`case when lanes.lease_token is null and lanes.suspect = 0 and lanes.due_at < ${now} then ${now} else lanes.due_at end`
}

interface NewHead {
  key: string
  topic: Topic
  kind?: EntryKind
}

/**
 * Sorts entries by key, for SQLite; on PostgreSQL the statement does (`insertFirst`). Those of one key stay in their order.
 */
function inOrder(entries: readonly NewHead[]) {
  const rows = entries.map(({ key, topic, kind = null }, at) => ({
    key,
    topic,
    kind,
    subscription: after(subscriptionKey(''), key),
    is_of_read: isOfRead(topic) ? 1 : 0,
    at,
  }))
  return rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.at - b.at))
}

/** What follows a prefix; null if the key has another one. */
function after(prefix: string, key: string): string | null {
  return key.startsWith(prefix) ? key.slice(prefix.length) : null
}

export type Lanes = ReturnType<typeof createLanes>
