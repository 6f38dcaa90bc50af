import type { Lanes } from '../lanes/lanes.js'
import {
  type EntryFilter,
  type EntryKind,
  entitlementKey,
  type NewAction,
  type NewChange,
  type NewEntitlement,
  type NewEvent,
  type StoredEntitlement,
  topicOf,
} from '../port/store.js'
import type { Given, Write } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import type { JournalTable } from '../sql/schema.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { withinBytes } from '../sql/within-bytes.js'
import { prepare, run } from '../sql/writes.js'
import { unreadOf, unreadOfBusiness } from '../subscriptions/unread.js'
import { isOfReadBy, isPendingBy } from './is-handled.js'

/** What the read of a subscription found. `quiet`: nothing of it is written. */
export interface FoundByRead {
  subscriptionUid: string
  quiet: boolean
  changes: readonly NewChange[]
  entitlements: readonly NewEntitlement[]
}

/**
 * The table `journal`: adds and replays entries. docs/states.md has their states; `lanes/` and `handled-topics.ts` change
 * them, `prune.ts` deletes entries.
 */
export function createJournal(engine: Engine, lanes: Lanes) {
  const inserting = (unread: (of: Given<keyof typeof NEW_COLUMNS>['of']) => Sql, keepsPlan: boolean) =>
    prepare(
      engine,
      NEW_COLUMNS,
      ({ insert, of }) => sql`
      insert into journal
        (id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, cause, secret, status, attempts, unread, received_at)
      ${insert(sql`${of('id')}, ${of('kind')}, ${of('name')}, ${of('topic')}, ${of('key')}, ${of('business')},
        ${of('subscription')}, ${of('payload')}, ${of('issues')}, ${of('cause')}, ${of('secret')},
        case when ${isPendingBy(of('kind'), of('topic'))} then 'pending' else 'unhandled' end, 0,
        ${unread(of)}, ${of('now')}`)}
      on conflict (id) do nothing`,
      { keepsPlan },
    )
  const insertAll = inserting((of) => unreadOf(isOfReadBy(of('kind')), of('subscription')), true)
  // Only its unique indexes may keep a plan, so the businesses are looked up by a statement of their own.
  const insertOfBusinesses = inserting((of) => unreadOfBusiness(of('business')), false)

  /**
   * Those of the newest entries of a subscription, or of a business alone, that count as made up: before the first read anybody
   * may know these uids, and send any number. `place`: 1 is the newest.
   */
  const newestUnread = prepare(engine, { subscription: 'text', business: 'text' }, ({ each, of }) => {
    const among = (which: Sql, alone: Sql, name: string) => sql`
      select * from (
        select id, bytes, row_number() over (order by received_at desc, seq desc) as place from (
          select id, subscription_uid, unread, octet_length(payload) as bytes, received_at, seq from journal
          where ${which} order by received_at desc, seq desc limit ${sql.lit(PROMOTED_AMONG)}
        ) as newest where unread = 1 and ${alone}
      ) as ${sql.ref(name)}`
    const ofSubscription = among(sql`subscription_uid = ${of('subscription')}`, sql`1 = 1`, 'of_subscription')
    const ofBusiness = sql`business_uid = ${of('business')} and kind = 'event'`
    return each(
      sql`${ofSubscription} union all ${among(ofBusiness, sql`subscription_uid is null`, 'of_business')}`,
    )
  })

  function append(entries: readonly NewEntry[]): Write[] {
    if (entries.length === 0) return []
    const rows = entries.map((entry) => ({
      id: entry.id,
      kind: entry.kind,
      name: entry.name,
      topic: topicOf(entry),
      key: entry.key,
      business: entry.businessUid,
      subscription: entry.subscriptionUid,
      payload: entry.payload,
      issues: entry.issues && JSON.stringify(entry.issues),
      cause: entry.cause ?? null,
      secret: entry.secret ?? null,
    }))
    const isOfBusiness = (row: (typeof rows)[0]) => row.subscription === null && row.business !== null
    const ofBusinesses = rows.filter(isOfBusiness)
    const others = rows.filter((row) => !isOfBusiness(row))
    return [
      ...lanes.enterPending(rows),
      ...(others.length > 0 ? [insertAll(others)] : []),
      ...(ofBusinesses.length > 0 ? [insertOfBusinesses(ofBusinesses)] : []),
    ]
  }

  return {
    /** The writes of new events. */
    insert: (events: readonly NewEvent[]): Write[] => append(events),

    /** What reads found, in one call, because it locks lanes in order. */
    async insertOfReads(trx: Connection, reads: readonly FoundByRead[]) {
      await run(engine, trx, ...append(reads.flatMap(entriesOf)))
    },

    /**
     * Follows the first read of these subscriptions: their events, and those of their businesses alone, are not made up. Of very
     * many only the newest of each are promoted, as many as fit a transaction.
     */
    async promote(trx: Connection, read: readonly { subscriptionUid: string; businessUid: string }[]) {
      if (read.length === 0) return
      const businesses = new Set(read.map(({ businessUid }) => businessUid))
      const named = [
        ...read.map(({ subscriptionUid: subscription }) => ({ subscription, business: null })),
        ...[...businesses].map((business) => ({ subscription: null, business })),
      ]
      const found = await run<{ id: string; bytes: number; place: number }>(engine, trx, newestUnread(named))
      const newest = found.sort((a, b) => a.place - b.place).slice(0, PROMOTED)
      if (newest.length === 0) return
      const ids = withinBytes(newest).map(({ id }) => id)
      await sql`
        update journal set unread = 0 where id in (
          select id from journal where ${engine.isOneOf('id', ids)} ${engine.skipLocked}
        )`.execute(trx)
    },

    /** An action is done from the start, so it enters no lane. The same id is written once. */
    async insertAction(
      trx: Connection,
      { id, name, businessUid, subscriptionUid = null, payload }: NewAction,
    ) {
      await sql`
        insert into journal
          (id, kind, name, topic, key, business_uid, subscription_uid, payload, status, attempts, received_at, settled_at)
        values (${id}, 'action', ${name}, 'action', ${id}, ${businessUid}, ${subscriptionUid}, ${payload}, 'done', 0, ${engine.now()}, ${engine.now()})
        on conflict (id) do nothing`.execute(trx)
    },

    async replay(trx: Connection, id: string, status: EntryFilter['status']): Promise<boolean> {
      const find = async () => {
        const [row] = await sql<Pick<JournalTable, 'key' | 'topic' | 'status' | 'seq'>>`
          select key, topic, status, seq from journal
          where id = ${id} and kind <> 'action' and ${isOfStatus(status)}`.execute(trx)
        return row
      }
      const found = await find()
      if (!found) return false
      const { key, topic } = found
      await run(engine, trx, ...lanes.enter([{ key, topic }]))
      // The entry is read again, now that the locked lane prevents its end, and another replay of it.
      const locked = await find()
      const [replayed] = locked
        ? await sql<Pick<JournalTable, 'seq'>>`
            update journal set attempts = 0, due_at = ${engine.now()}, status = 'pending', settled_at = null
            where id = ${id} and ${sql.still(isOfStatus(status))} returning seq`.execute(trx)
        : []
      if (locked && replayed)
        await lanes.replayed(trx, { key, seq: replayed.seq, wasPending: locked.status === 'pending' })
      // It has another status, or a prune has deleted it: that locks no lane.
      else await lanes.advance(trx, [key], 'free')
      return replayed !== undefined
    },
  }
}

function isOfStatus(status: EntryFilter['status']): Sql {
  if (status === undefined) return sql`1 = 1`
  return status === 'retrying' ? sql`status = 'pending' and attempts > 0` : sql`status = ${status}`
}

function entriesOf({ subscriptionUid, quiet, changes, entitlements }: FoundByRead): NewEntry[] {
  if (quiet) return []
  const common = { name: '', subscriptionUid, issues: null }
  const ofChanges = changes.map((change) => ({ ...change, ...common, kind: 'change' as const }))
  const ofEntitlements = entitlements.map(({ id, businessUid, ...flip }) => {
    const payload: StoredEntitlement = { id, business_uid: businessUid, ...flip }
    const entry = { id, businessUid, key: entitlementKey(businessUid), payload: JSON.stringify(payload) }
    return { ...entry, ...common, kind: 'entitlement' as const }
  })
  return [...ofChanges, ...ofEntitlements]
}

type NewEntry = Pick<
  NewEvent,
  'id' | 'name' | 'key' | 'businessUid' | 'subscriptionUid' | 'payload' | 'issues'
> & { kind: EntryKind; cause?: NewChange['cause']; secret?: string | null }

/** The entries of a subscription or a business among which a first read looks for some to promote. */
const PROMOTED_AMONG = 1_000
/** The entries that the first reads of one transaction promote: on SQLite the event loop waits for it. */
const PROMOTED = 1_000

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
} as const

export type Journal = ReturnType<typeof createJournal>
