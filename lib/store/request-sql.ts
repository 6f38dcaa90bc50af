import { type Sql, sql } from './sql.js'
import { MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS } from './store.js'

// What a request makes of a row of `subscriptions`, as SQL for its columns.

/**
 * Due now, or when the pause after the last read is over (which a clock that was set back would make long). A leased
 * row keeps its lease's end (the finish sees that it was requested again), an overdue one its place. What waits for
 * the end of a pause already waits for the last of its requests, up to the longest interval.
 */
export function dueAfterRequest(now: Sql) {
  const last = sql`subscriptions.not_before + ${sql.lit(MAX_READ_INTERVAL_MS - MIN_READ_INTERVAL_MS)}`
  const pauseFromNow = sql`${now} + ${sql.lit(MIN_READ_INTERVAL_MS)}`
  return sql`case
    when subscriptions.lease_token is not null or subscriptions.refresh_at <= ${now}
      then subscriptions.refresh_at
    when subscriptions.not_before > ${pauseFromNow} then ${now}
    when subscriptions.generation > subscriptions.settled_generation and subscriptions.refresh_at <= ${last}
      then case when ${pauseFromNow} < ${last} then ${pauseFromNow} else ${last} end
    when subscriptions.not_before > ${now} then subscriptions.not_before
    else ${now} end`
}

/** A request while another is open does not make it wait longer. */
export function urgencyAfterRequest(asked: unknown) {
  return sql`case
    when subscriptions.generation > subscriptions.settled_generation and subscriptions.urgency < ${asked}
      then subscriptions.urgency
    else ${asked} end`
}
