import { nextTurn } from '../../base/waiting.js'
import type { Lanes } from '../lanes/lanes.js'
import type { Erased, Hint, NewAction } from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { Searches } from '../subscriptions/searches.js'
import { someOfBusiness } from '../subscriptions/subscriptions.js'
import { type AuditRow, auditUid, createAnonymiser } from './audit.js'
import { isOfReadBy } from './is-handled.js'
import type { Journal } from './journal.js'

/** The entries of one transaction: on SQLite the event loop waits for it (200 with their lanes took up to 13 ms). */
const BATCH = 100
/** The subscriptions of one transaction, which also deletes their entries. */
const SUBSCRIPTIONS = 25
/** The subscriptions whose names are looked for in the actions at a time. */
const NAMES = 1_000
/** The actions of one statement: to look for so many names in long reasons takes 10 ms. */
const ACTIONS = 100

/**
 * Deletes the data of a business, a batch at a time, in this order:
 *
 * 1. It writes the record of the erasure, so that a read under way that finds the business writes nothing of its result,
 *    and is repeated (`subscriptions/finishes.ts`). With it goes the search for subscriptions, so that one under way finds none.
 * 2. It removes the business and its subscriptions from the actions of people, which stay as the audit (`audit.ts`).
 * 3. It clears the business where it is a candidate. A read of such a row loses its lease and is repeated.
 * 4. It deletes the subscriptions, each in one transaction with the last of its entries, so that no finish finds a row.
 * 5. It deletes the entries that name the business. A read may meanwhile have moved a subscription to another business, so
 *    that step 4 did not find it: what it changed for this one is deleted too.
 *
 * Each step ends at what was there when the erasure began. What is added meanwhile is new data, so no flood of deliveries
 * prolongs it.
 *
 * When a pending entry is deleted, the holder of its lane loses the lease. It is asked to have its lease confirmed before its
 * next entry: this process before the commit, so that it handles no entry that was deleted; another one by a hint with the
 * commit, so that it may begin one more until the hint arrives. Rows are locked in the order of all transactions
 * (`sql/lock-order.ts`).
 */
export function createErasing(options: {
  engine: Engine
  read: Engine['read']
  write: Engine['write']
  lanes: Lanes
  searches: Pick<Searches, 'erase'>
  journal: Pick<Journal, 'insertAction'>
  offsetOf: ClockOffset
  /** Gives a hint to this process. */
  notify(hint: Hint): void
  /** Gives a hint to all processes. */
  announce(hint: Hint): void
}) {
  const { engine, read, write, lanes, searches, journal, offsetOf, notify, announce } = options

  async function deleteEntries(trx: Connection, businessUid: string, which: Sql): Promise<number> {
    const found = await sql<{ id: string; key: string }>`
      select id, key from journal where ${which} and kind <> 'action' limit ${BATCH}`.execute(trx)
    if (found.length === 0) return 0
    const keys = [...new Set(found.map(({ key }) => key))]
    await sql`select key from lanes where ${engine.isOneOf('key', keys)} order by key ${engine.forUpdate}`.execute(
      trx,
    )
    const deleted = await sql<{ key: string; status: string; business_uid: string | null }>`
      delete from journal where id in (
        select id from journal where ${engine.isOneOf(
          'id',
          found.map(({ id }) => id),
        )} order by id ${engine.forUpdate}
      ) returning key, status, business_uid`.execute(trx)
    const pending = deleted.filter(({ status }) => status === 'pending')
    const lanesOfPending = [...new Set(pending.map(({ key }) => key))]
    await lanes.advance(trx, lanesOfPending, 'free')
    // The lanes are taken back, not freed: handlers may still be running, and two entries of a lane are never handled at once.
    await lanes.takeBack(trx, lanesOfPending)
    // An event may name another business than the one that has its subscription: then any lane may have lost its lease.
    if (pending.some((entry) => entry.business_uid !== businessUid)) await tell(trx, OF_ANY)
    return found.length
  }

  /**
   * Gives a hint to other processes with the commit, and to this one before it: while the rows are locked, so a holder in
   * this process that asks for its lease waits for the commit.
   */
  async function tell(trx: Connection, hint: Hint) {
    await engine.announceIn?.(trx, [hint])
    notify(hint)
  }

  /** Writes the record, and returns the limits of what is there: later rows are new data, of which a sender can add any number. */
  async function begin(trx: Connection, businessUid: string, record: NewAction): Promise<Limits> {
    await engine.holdNames?.(trx, [businessUid])
    const searchCount = await searches.erase(trx, businessUid)
    await journal.insertAction(trx, { ...record, businessUid: auditUid(businessUid) })
    const limits = await sql<Omit<Limits, 'searchCount'>>`
      select seq as "lastSeq",
        (select max(subscription_uid) from subscriptions where candidate_business_uid = ${businessUid})
          as "lastCandidate",
        (select max(created_at) from (
          ${someOfBusiness(sql`created_at`, sql`business_uid = ${businessUid}`)}
        ) as newest) as "lastCreatedAt"
      from journal where id = ${record.id}`.one(trx)
    return { ...limits, searchCount }
  }

  /** Anonymises the actions that name the business, with some subscriptions at a time: any of them may stand in a reason. */
  async function actions(businessUid: string): Promise<number> {
    let rows = 0
    for (let after = ''; ; ) {
      const uids = await shownAfter(businessUid, after)
      rows += await anonymise(createAnonymiser(businessUid, uids))
      if (uids.length < NAMES) return rows
      after = uids.at(-1) as string
    }
  }

  /** Those that the platform has shown: any others were named by a sender of deliveries, and may be words of a reason. */
  async function shownAfter(businessUid: string, after: string): Promise<string[]> {
    const rows = await read((db) =>
      sql<{ uid: string }>`
        select subscription_uid as uid from subscriptions where business_uid = ${businessUid} and unread = 0
          and subscription_uid > ${after} order by subscription_uid limit ${NAMES}`.execute(db),
    )
    return rows.map(({ uid }) => uid)
  }

  async function anonymise(anonymised: (row: Action) => Action): Promise<number> {
    let rows = 0
    for (let seq = 0; ; await nextTurn()) {
      const found = await read((db) => actionsWhere(sql`seq > ${seq}`).execute(db))
      const ids = found.flatMap((row) => (anonymised(row) === row ? [] : row.id))
      if (ids.length > 0) rows += await write((trx) => rewrite(trx, ids, anonymised))
      if (found.length < ACTIONS) return rows
      seq = found.at(-1)?.seq as number
    }
  }

  /** The rows are read again, because the erasure of another business may change them too. */
  async function rewrite(trx: Connection, ids: readonly string[], anonymised: (row: Action) => Action) {
    const rows = await sql<Action>`${actionsWhere(engine.isOneOf('id', ids))} ${engine.forUpdate}`.execute(
      trx,
    )
    for (const { id, business_uid, subscription_uid, payload } of rows.map(anonymised))
      await sql`
        update journal set business_uid = ${business_uid}, subscription_uid = ${subscription_uid},
          payload = ${payload} where id = ${id}`.execute(trx)
    return rows.length
  }

  /** Steps through them by uid: a row that a sender has named again behind the step is new data. */
  function createCandidates(businessUid: string, { lastCandidate }: Limits): Part {
    return async (trx, after = '') => {
      if (lastCandidate === null) return undefined
      const rows = await sql<{ uid: string }>`
        select subscription_uid as uid from subscriptions where candidate_business_uid = ${businessUid}
          and subscription_uid > ${after} and subscription_uid <= ${lastCandidate}
        order by subscription_uid limit ${BATCH} ${engine.forUpdate}`.execute(trx)
      const uids = rows.map(({ uid }) => uid)
      if (uids.length === 0) return undefined
      await sql`
        update subscriptions set candidate_business_uid = null,
          refresh_at = case when lease_token is null then refresh_at else ${engine.now()} end, lease_token = null
        where ${engine.isOneOf('subscription_uid', uids)}`.execute(trx)
      return { rows: uids.length, after: uids.at(-1) as string }
    }
  }

  /** All entries of a subscription are deleted with it, also later ones: their read was requested in its row. */
  function createSubscriptions(businessUid: string, { lastCreatedAt }: Limits): Part {
    // The newest first, by the index `subscriptions_business`: it does not read rows that are added meanwhile.
    const parts = [0, 1].map(
      (unread) => sql`select * from (
        select subscription_uid as uid from subscriptions
        where business_uid = ${businessUid} and unread = ${sql.lit(unread)} and created_at <= ${lastCreatedAt}
        order by created_at desc limit ${SUBSCRIPTIONS}
      ) as ${sql.ref(`part_${unread}`)}`,
    )
    return async (trx) => {
      const found = await sql<{ uid: string }>`${sql.join(parts, ' union all ')}`.execute(trx)
      if (found.length === 0) return undefined
      const named = engine.isOneOf(
        'subscription_uid',
        found.map(({ uid }) => uid),
      )
      const rows = await sql<{ uid: string }>`
        select subscription_uid as uid from subscriptions where ${named} and business_uid = ${businessUid}
        order by subscription_uid ${engine.forUpdate}`.execute(trx)
      const uids = rows.map(({ uid }) => uid)
      if (uids.length === 0) return { rows: 0 }
      const ofThese = engine.isOneOf('subscription_uid', uids)
      const deleted = await deleteEntries(trx, businessUid, sql`subscription_uid is not null and ${ofThese}`)
      if (deleted === BATCH) return { rows: deleted }
      await sql`delete from subscriptions where ${ofThese}`.execute(trx)
      return { rows: deleted + uids.length }
    }
  }

  /** With the later ones of reads that found a subscription of the business to be another one's now. */
  function createEntries(businessUid: string, { lastSeq, lastCreatedAt }: Limits): Part {
    const isOfMoved = sql`${isOfReadBy(sql`kind`)} and exists (
      select 1 from subscriptions where subscription_uid = journal.subscription_uid
        and business_uid <> ${businessUid} and created_at <= ${lastCreatedAt}
    )`
    return async (trx) => {
      const rows = await deleteEntries(
        trx,
        businessUid,
        sql`business_uid = ${businessUid} and (seq <= ${lastSeq} or ${isOfMoved})`,
      )
      return rows === 0 ? undefined : { rows }
    }
  }

  async function end(trx: Connection, { id }: NewAction, rows: number): Promise<number> {
    const written = await sql<{ payload: string; received_at: number }>`
      select payload, received_at from journal where id = ${id} ${engine.forUpdate}`.one(trx)
    const payload = JSON.stringify({ ...JSON.parse(written.payload), rows })
    await sql`update journal set payload = ${payload} where id = ${id}`.execute(trx)
    return written.received_at
  }

  return async function erase(businessUid: string, record: NewAction): Promise<Erased> {
    // No process may answer from memory with what was erased so far.
    const erased: Hint = { kind: 'decided', businessUid, superseded: true }
    const batch = (part: Part, after?: string) =>
      write(async (trx) => {
        const done = await part(trx, after)
        await tell(trx, erased)
        return done
      })
    const limits = await write((trx) => begin(trx, businessUid, record))
    let rows = limits.searchCount
    try {
      rows += await actions(businessUid)
      for (const createPart of [createCandidates, createSubscriptions, createEntries]) {
        const part = createPart(businessUid, limits)
        for (let done = await batch(part); done !== undefined; done = await batch(part, done.after)) {
          rows += done.rows
          await nextTurn()
        }
      }
    } finally {
      announce(erased)
    }
    const at = await write((trx) => end(trx, record, rows))
    return { rows, at: at + offsetOf(undefined) }
  }
}

const OF_ANY: Hint = { kind: 'decided', businessUid: null, superseded: false }

/** What was there when the erasure began. Null: there was none. No clock decides, so none that was set back hides a row. */
interface Limits {
  /** The searches that were deleted: one or none. */
  searchCount: number
  lastSeq: number
  /** The highest uid of a subscription with the business as its candidate. */
  lastCandidate: string | null
  /** When its newest subscription was created, which may lie ahead. */
  lastCreatedAt: number | null
}

/** Does one batch, behind `after`. Undefined when no row is left. */
type Part = (trx: Connection, after?: string) => Promise<{ rows: number; after?: string } | undefined>

type Action = AuditRow & { seq: number }

/** Every action is done. The range is one of the index `journal_status`. */
function actionsWhere(condition: Sql) {
  return sql<Action>`
    select seq, id, business_uid, subscription_uid, payload from journal
    where status = 'done' and kind = 'action' and ${condition} order by seq limit ${ACTIONS}`
}
