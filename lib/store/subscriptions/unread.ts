import { type Sql, sql } from '../sql/sql.js'

/**
 * The column `unread` of a new lane or entry, as SQL: 0 for what a read made, and for an event whose subscription was read
 * before. Only the platform can show a subscription, so nobody can make these up. Everything else may be a first purchase or made
 * up by somebody who knows the delivery secret, and comes behind the others in every queue.
 */
export function unreadOf(isOfRead: Sql, subscription: Sql): Sql {
  return sql`case when ${isOfRead} then 0 else coalesce((
    select subscriptions.unread from subscriptions where subscription_uid = ${subscription}
  ), 1) end`
}

/** The same of an event that names a business and no subscription: 0 if a subscription of the business was read before. */
export function unreadOfBusiness(business: Sql): Sql {
  return sql`coalesce((
    select of_business.unread from subscriptions as of_business
    where of_business.business_uid = ${business} order by of_business.unread limit 1
  ), 1)`
}
