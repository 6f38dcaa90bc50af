import { type Sql, sql } from './sql.js'
import { CAUSES, MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS, URGENCY } from './store.js'

// The values that a refresh request gives to the columns of a row of `subscriptions`, as SQL.

/**
 * `refresh_at`, the first case that applies:
 *
 * 1. A leased row is left as it is: its finish sees the new generation. So is an overdue row, which keeps its place, and
 *    a suspect one: no sender may cause the reads that end the process.
 * 2. A pause that ends too far ahead comes from a clock that was set back, so the row is due now.
 * 3. After an event, a row that already waits for a read waits a whole pause from now on, up to `MAX_READ_INTERVAL_MS`
 *    after its last read. `track` and `refresh` make it due at the end of the pause after its last read. If
 *    that pause is over, the next event does not delay the read again.
 * 4. Otherwise the row is due at the end of the pause after its last read, or now.
 */
export function dueAfterRequest(now: Sql, isByEvent: Sql) {
  const last = sql`subscriptions.not_before + ${sql.lit(MAX_READ_INTERVAL_MS - MIN_READ_INTERVAL_MS)}`
  const pauseFromNow = sql`${now} + ${sql.lit(MIN_READ_INTERVAL_MS)}`
  return sql`case
    when subscriptions.lease_token is not null or subscriptions.suspect = 1 or subscriptions.refresh_at <= ${now}
      then subscriptions.refresh_at
    when subscriptions.not_before > ${pauseFromNow} then ${now}
    when ${isByEvent} and subscriptions.generation > subscriptions.settled_generation
      and subscriptions.refresh_at <= ${last}
      then case when ${pauseFromNow} < ${last} then ${pauseFromNow} else ${last} end
    when subscriptions.not_before > ${now} then subscriptions.not_before
    else ${now} end`
}

/** The `urgency`: while an earlier request is open, the lower of the two. */
export function urgencyAfterRequest(requested: unknown) {
  return sql`case
    when subscriptions.generation > subscriptions.settled_generation and subscriptions.urgency < ${requested}
      then subscriptions.urgency
    else ${requested} end`
}

/**
 * The urgency by the cause of a request. Of a row that is read, `unread` is the urgency after an event: 0 is
 * `URGENCY.event`, 1 is `URGENCY.eventOfUnread`.
 */
export function urgencyOfCause(cause: Sql, unread: Sql) {
  return sql`case when ${isEvent(cause)} then ${unread} else ${sql.lit(URGENCY.track)} end`
}

/** The `cause`: the stronger one while a read is due or to come. A row that is given up has none that counts. */
export function causeAfterRequest(requested: Sql) {
  return sql`case
    when subscriptions.refresh_at is not null and subscriptions.cause < ${requested} then subscriptions.cause
    else ${requested} end`
}

export function isEvent(cause: Sql) {
  return sql`${cause} = ${sql.lit(CAUSES.indexOf('event'))}`
}
