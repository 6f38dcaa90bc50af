import { type DueRow, dueReads } from './due-reads.js'
import type { Engine } from './engine.js'
import { type Connection, sql } from './sql.js'
import type { Urgency } from './store.js'

/** The rows of busy businesses that one transaction puts off. */
const PUT_OFF_AT_ONCE = 128
/** A business is read one row at a time, so its rows are put off by one step each. A row that is due too early is put off again. */
const PUT_OFF_STEP_MS = 20

/** Puts off due rows of busy businesses, so that the rows behind them come first. */
export function createPutOff(engine: Engine) {
  const { clock } = engine
  /** The monotonic time until which the rows of a business have been put off. */
  const putOffUntil = new Map<string, number>()

  /** Puts off one batch. False when it finds none. */
  return async function putOff(trx: Connection, urgency: Urgency, busy: ReadonlySet<string>) {
    const rows = await sql<DueRow & { token: string | null }>`${dueReads(
      engine,
      urgency,
      PUT_OFF_AT_ONCE + busy.size,
      sql`, lease_token as token`,
    )} ${engine.skipLocked}`.execute(trx)
    // The time of a leased row is the end of its lease, so it stays.
    const late = rows.filter(({ business, token }) => busy.has(business) && token === null)
    if (late.length === 0) return false
    const now = clock.monotonic()
    for (const [business, until] of putOffUntil) if (until < now) putOffUntil.delete(business)
    const json = late.map(({ uid, business }) => {
      const until = Math.max(putOffUntil.get(business) ?? 0, now) + PUT_OFF_STEP_MS
      putOffUntil.set(business, until)
      return { uid, ms: Math.ceil(until - now) }
    })
    const put = await sql`
      update subscriptions set refresh_at = ${engine.now()} + late.ms
      from ${engine.rows(JSON.stringify(json), { uid: 'text', ms: 'integer' })} as late
      where subscriptions.subscription_uid = late.uid and lease_token is null and refresh_at <= ${engine.now()}
      returning subscription_uid`.execute(trx)
    return put.length > 0
  }
}
