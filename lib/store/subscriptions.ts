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
 * The table `subscriptions`: the rows, and their leases.
 *
 * | state | row | entered | left |
 * |---|---|---|---|
 * | due | `refresh_at` has come, no lease | a request; the time of one of the states below comes | a claim: leased |
 * | leased | a token; `refresh_at` is the end of the lease | a claim (`claim-reads.ts`) | a finish: one of the states below. The lease runs out: suspect |
 * | suspect | `suspect` = 1, no lease, `refresh_at` has come | a lease that ran out is noticed (`suspect-reads.ts`) | `claimSuspectRead`: alone |
 * | alone | `suspect` = 1, a token; `lapses` counts this read too | the claim of a suspect subscription | a finish: one of the states below, with no lapses. The lease runs out: suspect, with a lapse more, or put off |
 * | put off | `suspect` = 1, `failure` `lease_lapsed`, `refresh_at` to come | its reads lapsed `MAX_LAPSES` times or more | that time comes: suspect |
 * | waiting for its pause | `generation` above `settled_generation`, `refresh_at` within 5 s | a request soon after a read, or during one | the pause ends: due |
 * | retrying | `failure` set, `refresh_at` to come | a failed read | that time comes: due. A request: due after its pause |
 * | verifying | `verifying` = 1, `refresh_at` to come | a read that does not show yet what was requested | that time comes: due. A request: due after its pause |
 * | reconcile | settled, `refresh_at` to come | a conclusive read; with the urgency of a verification its early verification | that time comes: due. A request: due after its pause |
 * | given up | `refresh_at` null | a finish without a next read | a request: due. Never read and long ago: deleted |
 *
 * `gone` stands beside these states: a read sets it when the platform no longer shows the subscription, and one that
 * finds a record clears it. An erasure deletes a row in any state. `request-refresh.ts` has the requests,
 * `write-finishes.ts` the finishes, `subscription-upkeep.ts` the deletion of old rows.
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
