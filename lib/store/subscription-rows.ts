import type { SubscriptionRecord } from '../record.js'
import type { Engine } from './engine.js'
import type { SubscriptionsTable } from './schema.js'
import { type Sql, sql } from './sql.js'
import { CAUSES, type Cause, type ReadClaim, type StoredSubscription, type Subscription } from './store.js'
import type { StoreTime } from './store-time.js'

/** A row of `subscriptions`, and the store's time when it was read, by which its times are converted. */
export type TimedRow = SubscriptionsTable & { store_now: number }

/** A row that was just leased. */
export type LeasedRow = TimedRow & { lease_now: number; business_update_at: number | null }

const BUSINESS_UPDATE_AT = sql`case when failing_since is not null then (
  select max(of_business.update_at) from subscriptions as of_business
  where of_business.business_uid = subscriptions.business_uid and of_business.unread = 0
    and of_business.update_at >= subscriptions.read_at
) end`

/** What a statement that leases rows returns: each is a `LeasedRow`. */
export function leasedRow({ now, leaseNow }: Pick<Engine, 'now' | 'leaseNow'>): Sql {
  return sql`*, ${BUSINESS_UPDATE_AT} as business_update_at, ${now()} as store_now, ${leaseNow()} as lease_now`
}

/** Turns rows of `subscriptions` into what the port returns. */
export function createSubscriptionRows(offsetOf: StoreTime) {
  /** Converts the times of a row to the caller's wall clock. */
  function ownTime(row: TimedRow) {
    const aheadMs = offsetOf(row.store_now)
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
      owedSince: own(row.owed_since),
      generation: row.generation,
      settledGeneration: row.settled_generation,
      pending: row.generation > row.settled_generation,
      verifying: row.verifying === 1,
      failure: row.failure,
      // The end of a lease is in another time: see `is-due.ts`.
      refreshAt: own(
        row.lease_token === null ? row.refresh_at : Math.max(row.refresh_at ?? 0, Number(row.store_now)),
      ),
      quiet: row.quiet_until_read === 1,
    }
  }

  /** A row with everything but its lease. */
  function asStored(row: TimedRow): StoredSubscription {
    const own = ownTime(row)
    return {
      ...asSubscription(row),
      candidateBusinessUid: row.candidate_business_uid,
      installAt: row.install_at,
      uninstalledAt: own(row.uninstalled_at),
      createdAt: own(row.created_at),
    }
  }

  function asClaim(row: LeasedRow): ReadClaim {
    const own = ownTime(row)
    return {
      id: row.subscription_uid,
      leaseToken: row.lease_token as string,
      subscription: asSubscription(row),
      urgency: row.urgency,
      cause: CAUSES[row.cause] as Cause,
      generation: row.generation,
      settledGeneration: row.settled_generation,
      candidateBusinessUid: row.candidate_business_uid,
      lapses: row.lapses,
      uninstalledAt: own(row.uninstalled_at),
      failingSince: own(row.failing_since),
      updateAt: own(row.update_at),
      businessUpdateAt: own(row.business_update_at),
      endAt: own(row.end_at),
      createdAt: own(row.created_at),
      progress: row.progress,
      claimedAt: Number(row.store_now),
      leaseTimeBehindMs: Number(row.store_now) - Number(row.lease_now),
    }
  }

  return { asSubscription, asStored, asClaim }
}
