import type { Engine } from './engine.js'
import type { SubscriptionsTable } from './schema.js'
import { sql } from './sql.js'
import type { StoredSubscription, SubscriptionFilter } from './store.js'
import type { Subscriptions } from './subscriptions.js'

/** Lists subscriptions for people, a page of an index at a time. */
export function createSubscriptionList(
  engine: Engine,
  read: Engine['read'],
  { asStored }: Pick<Subscriptions, 'asStored'>,
) {
  return async function listSubscriptions(filter: SubscriptionFilter): Promise<StoredSubscription[]> {
    const { subscriptionUid, businessUid, candidateBusinessUid, after = '', limit } = filter
    const conditions = [sql`subscription_uid > ${after}`]
    if (subscriptionUid !== undefined) conditions.push(sql`subscription_uid = ${subscriptionUid}`)
    if (businessUid !== undefined) conditions.push(sql`business_uid = ${businessUid}`)
    if (candidateBusinessUid !== undefined)
      conditions.push(sql`candidate_business_uid = ${candidateBusinessUid}`)
    const rows = await read((db) =>
      sql<SubscriptionsTable & { store_now: number }>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where ${sql.join(conditions, ' and ')} order by subscription_uid limit ${limit}`.execute(db),
    )
    return rows.map(asStored)
  }
}
