import type { Engine } from './engine.js'
import { type Sql, sql } from './sql.js'
import type { Urgency } from './store.js'

/** The columns of a due row that decide whether it is leased. */
export interface DueRow {
  uid: string
  business: string
  urgency: Urgency
  is_newest: number
}

/** The due rows of a class, the longest due first: a range of the index `subscriptions_due`, which ends at its limit. */
export function dueReads(engine: Engine, urgency: Urgency, limit: number, more: Sql = sql``) {
  return sql`
    select subscription_uid as uid, business_uid as business, urgency, 0 as is_newest ${more} from subscriptions
    where urgency = ${sql.lit(urgency)} and refresh_at <= ${engine.now()}
    order by refresh_at limit ${limit}`
}
