import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { sql } from './sql.js'
import { CAUSES, URGENCY } from './store.js'
import type { Transactions } from './transactions.js'

/** The rows of one transaction: on SQLite the event loop waits for it. */
const BATCH = 200
/** Few reads need not wait for each other. */
const EACH_MS = 250
/** What these reads find is no sign that events do not come: the restored database has lost those of the meantime. */
const IMPORT = sql.lit(CAUSES.indexOf('import'))

const IS_KNOWN = sql`(unread = 0 or (unread = 1 and refresh_at is not null))`

/**
 * Makes every read due within a time, as a regular read, at random times so that the platform is not flooded. Few reads
 * are due sooner: `EACH_MS` for each. A read that is due earlier, or whose subscription is read now, stays as it is. Subscriptions that were given up before they were
 * ever read are left out: anybody can have named them.
 */
export function createRefreshAll(engine: Engine, { read, write }: Pick<Transactions, 'read' | 'write'>) {
  const countKnown = () =>
    read(async (db) => {
      const [row] = await sql<{ known: number }>`
        select count(*) as known from subscriptions where ${IS_KNOWN}`.execute(db)
      return Number(row?.known)
    })

  return async function refreshAll(withinMs: number): Promise<number> {
    const spreadMs = Math.min(withinMs, EACH_MS * (await countKnown()))
    let count = 0
    let after: string | undefined = ''
    while (after !== undefined) {
      const uids: string[] = await write(async (trx) => {
        const rows = await sql<{ uid: string }>`
          select subscription_uid as uid from subscriptions
          where subscription_uid > ${after} and lease_token is null and ${IS_KNOWN}
          order by subscription_uid limit ${BATCH} ${engine.forUpdate}`.execute(trx)
        const json = rows.map(({ uid }) => ({ uid, ms: Math.floor(Math.random() * spreadMs) }))
        const due = sql`${engine.now()} + late.ms`
        await sql`
          update subscriptions set
            refresh_at = case when refresh_at < ${due} then refresh_at else ${due} end,
            urgency = case when refresh_at < ${due} or generation > settled_generation then urgency
              else ${sql.lit(URGENCY.reconcile)} end,
            cause = case when cause < ${IMPORT} then cause else ${IMPORT} end
          from ${engine.rows(JSON.stringify(json), { uid: 'text', ms: 'integer' })} as late
          where subscription_uid = late.uid`.execute(trx)
        return rows.map(({ uid }) => uid)
      })
      count += uids.length
      after = uids.length === BATCH ? uids.at(-1) : undefined
      await nextTurn()
    }
    return count
  }
}
