import type { Engine } from './engine.js'
import { newLeaseToken } from './lease-token.js'
import { type Connection, sql } from './sql.js'
import type { Leased, ReadClaim, Subscription } from './store.js'
import type { StoreTime } from './store-time.js'
import { createSubscriptionRows, type LeasedRow, leasedRow, type TimedRow } from './subscription-rows.js'
import { prepare, run } from './writes.js'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/** The most subscriptions of one business that a decision takes into account, and that a request reads. */
export const MAX_OF_BUSINESS = 1_000

/**
 * The table `subscriptions`: the rows, and their leases. docs/states.md has their states; `request-refresh.ts` has the
 * requests, `write-finishes.ts` the finishes, `subscription-upkeep.ts` the deletion of old rows.
 */
export function createSubscriptions(engine: Engine, offsetOf: StoreTime) {
  const { asSubscription, asStored, asClaim } = createSubscriptionRows(offsetOf)

  /** Rows that were read come first, so that forged ones neither slow down a lookup nor displace them. */
  const rowsOf = prepare(engine, { business: 'text' }, ({ each, of }) =>
    each(sql`
      select subscriptions.*, ${of('now')} as store_now from subscriptions
      where business_uid = ${of('business')}
      order by unread, created_at desc limit ${sql.lit(MAX_OF_BUSINESS)}`),
  )

  /** The subscriptions of each of these businesses, oldest first. */
  async function ofBusinesses(db: Connection, businessUids: readonly string[]) {
    const byUid = new Map<string, TimedRow[]>(businessUids.map((uid) => [uid, []]))
    if (byUid.size === 0) return new Map<string, Subscription[]>()
    const businesses = [...byUid.keys()].map((business) => ({ business }))
    const rows = await run<TimedRow>(engine, db, rowsOf(businesses))
    for (const row of rows) byUid.get(row.business_uid)?.push(row)
    return new Map([...byUid].map(([uid, found]) => [uid, sorted(found).map(asSubscription)]))
  }

  return {
    asStored,
    ofBusinesses,

    async ofBusiness(db: Connection, businessUid: string): Promise<Subscription[]> {
      const found = await ofBusinesses(db, [businessUid])
      return found.get(businessUid) ?? []
    },

    async named(db: Connection, subscriptionUids: readonly string[]): Promise<Subscription[]> {
      const rows = await sql<TimedRow>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where ${engine.isOneOf('subscription_uid', subscriptionUids)}`.execute(db)
      return rows.map(asSubscription)
    },

    /** Leases these subscriptions, which are due and locked by the transaction, in the order of `uids`. */
    async lease(trx: Connection, uids: readonly string[], leaseMs: number): Promise<ReadClaim[]> {
      if (uids.length === 0) return []
      const rows = await sql<LeasedRow>`
        update subscriptions set
          lease_token = ${newLeaseToken()},
          refresh_at = ${engine.leaseNow()} + ${leaseMs}
        where ${engine.isOneOf('subscription_uid', uids)}
        returning ${leasedRow(engine)}`.execute(trx)
      const byUid = new Map(rows.map((row) => [row.subscription_uid, row]))
      return uids.flatMap((uid) => {
        const row = byUid.get(uid)
        return row ? asClaim(row) : []
      })
    },

    async renew(trx: Connection, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const rows = await sql`
        update subscriptions set refresh_at = ${engine.leaseNow()} + ${leaseMs}
        where subscription_uid = ${id} and lease_token = ${leaseToken}
        returning subscription_uid`.execute(trx)
      return rows.length > 0
    },
  }
}

function sorted(rows: TimedRow[]): TimedRow[] {
  return rows.sort(
    (a, b) => a.created_at - b.created_at || (a.subscription_uid < b.subscription_uid ? -1 : 1),
  )
}
