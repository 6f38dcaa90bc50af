import { nextTurn } from '../../base/waiting.js'
import type { Lanes } from '../lanes/lanes.js'
import type { Erased, Hint, NewAction } from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { Journal } from './journal.js'

/** The entries of one transaction: on SQLite the event loop waits for it (200 with their lanes took up to 13 ms). */
const BATCH = 100
/** The subscriptions of one transaction, which also deletes their entries. */
const SUBSCRIPTIONS = 25

/**
 * Deletes the data of a business, a batch at a time, in this order:
 *
 * 1. It writes the record of the erasure, so that a read under way that finds the business writes nothing of its result,
 *    and is repeated (`subscriptions/finishes.ts`).
 * 2. It clears the business where it is a candidate. A read of such a row loses its lease and is repeated.
 * 3. It deletes the subscriptions, each in one transaction with the last of its entries, so that no finish finds a row.
 * 4. It deletes the entries that name the business.
 *
 * When a pending entry is deleted, the holder of its lane loses the lease. It is asked to have its lease confirmed before its
 * next entry: this process before the commit, so that it handles no entry that was deleted; another one by a hint with the
 * commit, so that it may begin one more until the hint arrives. Rows are locked in the order of all transactions
 * (`sql/lock-order.ts`).
 */
export function createErasing(options: {
  engine: Engine
  write: Engine['write']
  lanes: Lanes
  journal: Pick<Journal, 'insertAction'>
  offsetOf: ClockOffset
  /** Gives a hint to this process. */
  notify(hint: Hint): void
  /** Gives a hint to all processes. */
  announce(hint: Hint): void
}) {
  const { engine, write, lanes, journal, offsetOf, notify, announce } = options

  async function deleteEntries(trx: Connection, which: Sql): Promise<number> {
    const found = await sql<{ id: string; key: string }>`
      select id, key from journal where ${which} limit ${BATCH}`.execute(trx)
    if (found.length === 0) return 0
    const keys = [...new Set(found.map(({ key }) => key))]
    await sql`select key from lanes where ${engine.isOneOf('key', keys)} order by key ${engine.forUpdate}`.execute(
      trx,
    )
    const deleted = await sql<{ key: string; status: string }>`
      delete from journal where id in (
        select id from journal where ${engine.isOneOf(
          'id',
          found.map(({ id }) => id),
        )} order by id ${engine.forUpdate}
      ) returning key, status`.execute(trx)
    const pending = new Set(deleted.flatMap(({ key, status }) => (status === 'pending' ? key : [])))
    await lanes.advance(trx, [...pending], 'free')
    // The lanes are taken back, not freed: handlers may still be running, and two entries of a lane are never handled at once.
    await lanes.takeBack(trx, [...pending])
    return found.length
  }

  async function begin(trx: Connection, businessUid: string, record: NewAction) {
    await engine.holdNames?.(trx, [businessUid])
    await journal.insertAction(trx, record)
  }

  /** One batch. Returns its rows, as the steps below do: 0 when none is left. */
  async function candidates(trx: Connection, businessUid: string): Promise<number> {
    const rows = await sql<{ uid: string }>`
      select subscription_uid as uid from subscriptions where candidate_business_uid = ${businessUid}
      order by subscription_uid limit ${BATCH} ${engine.forUpdate}`.execute(trx)
    if (rows.length === 0) return 0
    await sql`
      update subscriptions set candidate_business_uid = null,
        refresh_at = case when lease_token is null then refresh_at else ${engine.now()} end, lease_token = null
      where ${engine.isOneOf(
        'subscription_uid',
        rows.map(({ uid }) => uid),
      )}`.execute(trx)
    return rows.length
  }

  async function subscriptions(trx: Connection, businessUid: string): Promise<number> {
    const rows = await sql<{ uid: string }>`
      select subscription_uid as uid from subscriptions where business_uid = ${businessUid}
      order by subscription_uid limit ${SUBSCRIPTIONS} ${engine.forUpdate}`.execute(trx)
    const uids = rows.map(({ uid }) => uid)
    if (uids.length === 0) return 0
    const deleted = await deleteEntries(
      trx,
      sql`subscription_uid is not null and ${engine.isOneOf('subscription_uid', uids)}`,
    )
    if (deleted === BATCH) return deleted
    await sql`delete from subscriptions where ${engine.isOneOf('subscription_uid', uids)}`.execute(trx)
    return deleted + uids.length
  }

  const entries = (trx: Connection, businessUid: string): Promise<number> =>
    deleteEntries(trx, sql`business_uid = ${businessUid} and not (kind = 'action' and name = 'erase')`)

  async function end(trx: Connection, { id }: NewAction, rows: number): Promise<number> {
    const written = await sql<{ payload: string; received_at: number }>`
      select payload, received_at from journal where id = ${id}`.one(trx)
    const payload = JSON.stringify({ ...JSON.parse(written.payload), rows })
    await sql`update journal set payload = ${payload} where id = ${id}`.execute(trx)
    return written.received_at
  }

  return async function erase(businessUid: string, record: NewAction): Promise<Erased> {
    // No process may answer from memory with what was erased so far.
    const erased: Hint = { kind: 'decided', businessUid, superseded: true }
    await write((trx) => begin(trx, businessUid, record))
    let rows = 0
    try {
      for (const part of [candidates, subscriptions, entries]) {
        for (let batch = 1; batch > 0; rows += batch) {
          batch = await write(async (trx) => {
            await engine.announceIn?.(trx, [erased])
            const count = await part(trx, businessUid)
            // While the rows are locked: a holder in this process that asks for its lease waits for the commit.
            notify(erased)
            return count
          })
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
