import type { SubscriptionRecord } from '../record.js'
import type { Engine } from './engine.js'
import { newLeaseToken } from './lease-token.js'
import type { SubscriptionsTable } from './schema.js'
import { answered, perform, prepare } from './script.js'
import { type Connection, sql } from './sql.js'
import type { Leased, ReadClaim, ReadFinish, StoredSubscription, Subscription } from './store.js'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/** The most subscriptions of one business that a decision takes into account. */
const MAX_OF_BUSINESS = 1_000
/** The most time that an answer of the database spends on its way. */
const MAX_TRANSIT_MS = 200

/** A row, and the store's time when it was read, by which its times are converted. */
type TimedRow = SubscriptionsTable & { store_now: number }

/**
 * The table `subscriptions`: the rows, and their leases.
 *
 * | state | row | entered | left |
 * |---|---|---|---|
 * | due | `refresh_at` has come, no lease | a request; the time of one of the states below comes | a claim: leased |
 * | leased | a token; `refresh_at` is the end of the lease | a claim (`claim-reads.ts`) | a finish: one of the states below. The lease runs out: claimed again, with a lapse |
 * | waiting for its pause | `generation` above `settled_generation`, `refresh_at` within 2 s | a request soon after a read, or during one | the pause ends: due |
 * | retrying | `failure` set, `refresh_at` to come | a failed read | that time comes: due. A request: due after its pause |
 * | verifying | `verifying` = 1, `refresh_at` to come | a read that does not show yet what was requested | that time comes: due. A request: due after its pause |
 * | reconcile | settled, `refresh_at` to come | a conclusive read; with the urgency of a verification its early verification | that time comes: due. A request: due after its pause |
 * | given up | `refresh_at` null, `unread` below 2 | a finish without a next read | a request: due. Never read and long ago: deleted |
 * | of another item | `unread` = 2, `refresh_at` null | a request of the kind `other_item` for a new uid | a request of the kind `subscription`, or `adoptItems`: due. Long ago: deleted |
 *
 * `gone` stands beside these states: a read sets it when the platform no longer shows the subscription, and one that
 * finds a record clears it. An erasure deletes a row in any state. `request-refresh.ts` has the requests,
 * `write-finishes.ts` the finishes, `subscription-upkeep.ts` the deletion of old rows.
 */
export function createSubscriptions(engine: Engine) {
  const { clock } = engine
  let aheadMs = Number.NaN

  /**
   * Converts the times of a row to the caller's wall clock, so that clocks of two machines are never compared. Each row
   * measures how far the wall clock is ahead. The measure changes only when it has moved by more than an answer takes to
   * arrive, so a time that did not change reads the same twice.
   */
  function ownTime(row: TimedRow) {
    const measuredMs = clock.now() - Number(row.store_now)
    if (!(Math.abs(measuredMs - aheadMs) <= MAX_TRANSIT_MS)) aheadMs = measuredMs
    return <T extends number | null>(time: T): T => (time === null ? time : ((time + aheadMs) as T))
  }

  function asSubscription(row: TimedRow): Subscription {
    const own = ownTime(row)
    return {
      subscriptionUid: row.subscription_uid,
      businessUid: row.business_uid,
      purchasableUid: row.purchasable_uid,
      record: row.record === null ? null : (JSON.parse(row.record) as SubscriptionRecord),
      state: row.state,
      gone: row.gone,
      readAt: own(row.read_at),
      requestedAt: own(row.requested_at),
      pending: row.generation > row.settled_generation,
      verifying: row.verifying === 1,
      failure: row.failure,
      refreshAt: own(row.refresh_at),
      quiet: row.quiet_until_read === 1,
    }
  }

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
    const rows = await perform(engine, db, answered<TimedRow>(rowsOf(businesses)))
    for (const row of rows) byUid.get(row.business_uid)?.push(row)
    return new Map([...byUid].map(([uid, found]) => [uid, sorted(found).map(asSubscription)]))
  }

  function asClaim(row: TimedRow): ReadClaim {
    const own = ownTime(row)
    return {
      id: row.subscription_uid,
      leaseToken: row.lease_token as string,
      subscription: asSubscription(row),
      urgency: row.urgency,
      generation: row.generation,
      settledGeneration: row.settled_generation,
      candidateBusinessUid: row.candidate_business_uid,
      lapses: row.lapses,
      uninstalledAt: own(row.uninstalled_at),
      createdAt: own(row.created_at),
      progress: row.progress,
      claimedAt: Number(row.store_now),
    }
  }

  return {
    /** A row with everything but its lease. */
    asStored(row: TimedRow): StoredSubscription {
      const own = ownTime(row)
      return {
        ...asSubscription(row),
        candidateBusinessUid: row.candidate_business_uid,
        installAt: own(row.install_at),
        uninstalledAt: own(row.uninstalled_at),
        createdAt: own(row.created_at),
      }
    },

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

    /** The subscriptions of these claims that are quiet now. An event may have ended that since the claim, so the rows are read. */
    async quietAmong(trx: Connection, claims: readonly ReadClaim[]): Promise<ReadonlySet<string>> {
      const firstReads = claims.filter(({ subscription }) => subscription.record === null)
      if (firstReads.length === 0) return new Set()
      const rows = await sql<{ uid: string; quiet: number }>`
        select subscription_uid as uid, quiet_until_read as quiet from subscriptions
        where ${engine.isOneOf(
          'subscription_uid',
          firstReads.map(({ id }) => id),
        )} order by subscription_uid ${engine.forUpdate}`.execute(trx)
      return new Set(rows.flatMap(({ uid, quiet }) => (quiet === 1 ? uid : [])))
    },

    /** Whether the business that the record names was erased during the read. The subscription is then read again. */
    async isErasedSince(trx: Connection, claim: ReadClaim, { found }: ReadFinish): Promise<boolean> {
      const businessUid = found?.record?.business_uid
      if (businessUid === undefined || businessUid === claim.subscription.businessUid) return false
      const rows = await sql`
        select 1 from journal where business_uid = ${businessUid} and kind = 'action' and name = 'erase'
          and received_at >= ${claim.claimedAt} limit 1`.execute(trx)
      return rows.length > 0
    },

    /** Leases these subscriptions, which are due and locked by the transaction, in the order of `uids`. */
    async lease(trx: Connection, uids: readonly string[], leaseMs: number): Promise<ReadClaim[]> {
      if (uids.length === 0) return []
      const rows = await sql<TimedRow>`
        update subscriptions set
          lapses = lapses + case when lease_token is null then 0 else 1 end,
          lease_token = ${newLeaseToken()},
          refresh_at = ${engine.now()} + ${leaseMs}
        where ${engine.isOneOf('subscription_uid', uids)}
        returning *, ${engine.now()} as store_now`.execute(trx)
      const byUid = new Map(rows.map((row) => [row.subscription_uid, row]))
      return uids.flatMap((uid) => {
        const row = byUid.get(uid)
        return row ? asClaim(row) : []
      })
    },

    async renew(trx: Connection, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const rows = await sql`
        update subscriptions set refresh_at = ${engine.now()} + ${leaseMs}
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
