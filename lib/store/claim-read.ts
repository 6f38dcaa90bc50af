import { sql, type Transaction } from 'kysely'
import type { Engine, Tables } from './schema.js'
import type { ClaimRead, Urgency } from './store.js'

/** Due rows that a claim looks at beside as many as businesses are busy. */
const WINDOW = 16
/** Rows of busy businesses that one transaction puts off. */
const PUT_OFF_AT_ONCE = 128
/** One business is read once at a time, so its rows come back one after the other; too soon only means: once more. */
const PUT_OFF_STEP_MS = 20

/**
 * Which subscription to lease next. A claim looks at a bounded number of due rows, however many belong to businesses
 * that are being read: when it finds nothing else, it puts those off, each once, so that what is behind them comes up.
 */
export function createReadClaims(engine: Engine) {
  const { clock } = engine
  /** Until when rows of a business have been put off, in monotonic time. */
  const putOffUntil = new Map<string, number>()

  /** The uid to lease; undefined when nothing is due. `put off`: look again, there may be something behind. */
  async function next(
    trx: Transaction<Tables>,
    { except, urgencies }: Omit<ClaimRead, 'leaseMs'>,
  ): Promise<{ uid: string } | 'put off' | undefined> {
    for (const urgency of urgencies) {
      const uid = await nextOf(trx, urgency, except)
      if (uid !== undefined) return { uid }
      if (except.length > 0 && (await putOff(trx, urgency, except))) return 'put off'
    }
    return undefined
  }

  // The window is walked in the index and ends by its limit. Its rows are then found by their key (`+ 0` keeps planners
  // from walking the index again, without an end), and the first that nobody else is about to lease is locked.
  async function nextOf(trx: Transaction<Tables>, urgency: Urgency, except: readonly string[]) {
    const { rows } = await sql<{ uid: string }>`
      with near as materialized (
        select subscription_uid as uid, business_uid as business from subscriptions
        where urgency = ${urgency} and refresh_at <= ${engine.now()}
        order by refresh_at limit ${WINDOW + except.length}
      ), free as materialized (
        select uid from near where business not in (select business from ${businesses(except)} as busy)
      )
      select subscription_uid as uid from subscriptions
      where subscription_uid in (select uid from free) and refresh_at + 0 <= ${engine.now()}
      order by refresh_at + 0 limit 1 ${engine.skipLocked}`.execute(trx)
    return rows[0]?.uid
  }

  async function putOff(trx: Transaction<Tables>, urgency: Urgency, except: readonly string[]) {
    const { rows } = await sql<{ uid: string; business: string; token: string | null }>`
      select subscription_uid as uid, business_uid as business, lease_token as token from subscriptions
      where urgency = ${urgency} and refresh_at <= ${engine.now()}
      order by refresh_at limit ${PUT_OFF_AT_ONCE + except.length}`.execute(trx)
    // All that is due has been looked at by the claim itself.
    if (rows.length < WINDOW + except.length) return false
    const busy = new Set(except)
    // A leased row keeps its time, which is the end of its lease.
    const late = rows.filter(({ business, token }) => busy.has(business) && token === null)
    if (late.length === 0) return false
    const now = clock.monotonic()
    for (const [business, until] of putOffUntil) if (until < now) putOffUntil.delete(business)
    const json = late.map(({ uid, business }) => {
      const until = Math.max(putOffUntil.get(business) ?? 0, now) + PUT_OFF_STEP_MS
      putOffUntil.set(business, until)
      return { uid, ms: Math.ceil(until - now) }
    })
    json.sort((a, b) => (a.uid < b.uid ? -1 : 1))
    const put = await sql`
      update subscriptions set refresh_at = ${engine.now()} + late.ms
      from ${engine.rows(JSON.stringify(json), { uid: 'text', ms: 'integer' })} as late
      where subscriptions.subscription_uid = late.uid and lease_token is null and refresh_at <= ${engine.now()}
      returning subscription_uid`.execute(trx)
    return put.rows.length > 0
  }

  function businesses(uids: readonly string[]) {
    return engine.rows(JSON.stringify(uids.map((business) => ({ business }))), { business: 'text' })
  }

  return { next }
}
