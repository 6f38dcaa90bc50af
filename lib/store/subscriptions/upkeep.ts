import { nextTurn } from '../../base/waiting.js'
import type { Transactions } from '../life-cycle.js'
import { CAUSES, type Retention, URGENCY } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { prepare, run } from '../sql/writes.js'
import { IS_DENIED } from './other-businesses.js'
import { IS_FREE } from './subscriptions.js'

/** The most subscriptions that were never read and that the platform has denied: far more than an app has at once. */
const MAX_DENIED = 100_000

/**
 * Deletes subscriptions that were never read: those given up whose retention has ended; and the oldest of those that the
 * platform has denied, when they are more than `MAX_DENIED`. So forged identifiers do not fill the table. What waits for
 * its first answer is never deleted. A real subscription returns with its next event.
 */
export function createSubscriptionPruning(engine: Engine) {
  return async function prune(trx: Connection, retention: Retention): Promise<number> {
    const tooMany = await sql<{ cutoff: number }>`
      select requested_at as cutoff from subscriptions where ${IS_DENIED}
      order by requested_at desc limit 1 offset ${MAX_DENIED}`.execute(trx)
    const cutoff = sql`<= ${tooMany[0]?.cutoff ?? -1}`
    const ended = sql`< ${engine.now()} - ${retention.deadMs}`
    return (
      (await deleteOldest(engine, trx, sql`${IS_DENIED} and lease_token is null`, cutoff)) +
      (await deleteOldest(engine, trx, sql`refresh_at is null and unread = 1`, ended))
    )
  }
}

/** Deletes a batch of these subscriptions, those whose last request is the oldest. Returns their number. */
async function deleteOldest(
  { skipLocked }: Pick<Engine, 'skipLocked'>,
  trx: Connection,
  which: Sql,
  requestedAt: Sql,
): Promise<number> {
  const rows = await sql`
    delete from subscriptions where subscription_uid in (
      select subscription_uid from subscriptions where ${which} and requested_at ${requestedAt}
      order by requested_at limit 500 ${skipLocked}
    ) returning subscription_uid`.execute(trx)
  return rows.length
}

/** The rows of one transaction: on SQLite the event loop waits for it. */
const BATCH = 200
/** The time between two reads, while there are few of them. */
const EACH_MS = 250
/** The cause of these reads. What they find is no sign that events do not come: a restored database has lost events. */
const IMPORT = sql.lit(CAUSES.indexOf('import'))

const IS_KNOWN = sql`(unread = 0 or (unread = 1 and refresh_at is not null))`

/**
 * Makes every read due within a time, as a regular read, at random times so that the platform is not flooded. Few reads
 * are due sooner: `EACH_MS` for each. A read that is due earlier, under way or suspect stays as it is. Anybody can have named
 * the subscriptions that were never read: those that were given up are left out, and the others keep their class, so they
 * stay behind those that were read.
 *
 * Returns how many are read within the time. Those that stay as they are count too, but not a suspect that was put off
 * for longer.
 */
export function createRefreshAll(engine: Engine, { read, write }: Pick<Transactions, 'read' | 'write'>) {
  const due = sql`late.now + late.ms`
  const makeDue = prepare(
    engine,
    { uid: 'text', ms: 'integer' },
    ({ table }) => sql`
      update subscriptions set
        refresh_at = case when refresh_at < ${due} then refresh_at else ${due} end,
        urgency = case when unread = 1 or refresh_at < ${due} or generation > settled_generation then urgency
          else ${sql.lit(URGENCY.reconcile)} end,
        cause = case when cause < ${IMPORT} then cause else ${IMPORT} end
      from ${table} as late
      where subscription_uid = late.uid`,
  )

  return async function refreshAll(withinMs: number): Promise<number> {
    const { known } = await read((db) =>
      sql<{ known: number }>`
        select count(*) as known from subscriptions
        where ${IS_KNOWN} and (suspect = 0 or refresh_at <= ${engine.now()} + ${withinMs})`.one(db),
    )
    const spreadMs = Math.min(withinMs, EACH_MS * known)
    let after: string | undefined = ''
    while (after !== undefined) {
      const uids: string[] = await write(async (trx) => {
        const rows = await sql<{ uid: string }>`
          select subscription_uid as uid from subscriptions
          where subscription_uid > ${after} and ${IS_FREE} and ${IS_KNOWN}
          order by subscription_uid limit ${BATCH} ${engine.forUpdate}`.execute(trx)
        const late = rows.map(({ uid }) => ({ uid, ms: Math.floor(Math.random() * spreadMs) }))
        if (late.length > 0) await run(engine, trx, makeDue(late))
        return rows.map(({ uid }) => uid)
      })
      after = uids.length === BATCH ? uids.at(-1) : undefined
      await nextTurn()
    }
    return known
  }
}
