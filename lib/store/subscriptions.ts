import { type Kysely, sql, type Transaction } from 'kysely'
import type { SubscriptionRecord } from '../record.js'
import { newLeaseToken } from './lease-token.js'
import type { Engine, SubscriptionsTable, Tables } from './schema.js'
import {
  type ClaimRead,
  type Leased,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type ReadFinish,
  type Retention,
  type Subscription,
} from './store.js'

const MOST_OF_BUSINESS = 1_000

/**
 * The table `subscriptions`. A row is idle (no lease; `refresh_at` in the future, or null when given up), due
 * (`refresh_at` has come), or leased (`lease_token` set; `refresh_at` is when the lease runs out, so that an abandoned
 * row becomes due by itself).
 */
export function createSubscriptions(engine: Engine) {
  return {
    async ofBusiness(db: Kysely<Tables>, businessUid: string): Promise<Subscription[]> {
      // Those that have been read first: whoever makes up others must not make every question slow.
      const rows = await db
        .selectFrom('subscriptions')
        .selectAll()
        .where('business_uid', '=', businessUid)
        .orderBy('lane')
        .orderBy('created_at', 'desc')
        .limit(MOST_OF_BUSINESS)
        .execute()
      return rows
        .sort((a, b) => a.created_at - b.created_at || (a.subscription_uid < b.subscription_uid ? -1 : 1))
        .map(asSubscription)
    },

    /** In one order, so that two who want the same rows wait for each other instead of both failing. */
    async lockBusiness(trx: Transaction<Tables>, businessUid: string): Promise<void> {
      await sql`
        select subscription_uid from subscriptions where business_uid = ${businessUid}
        order by subscription_uid ${engine.forUpdate}`.execute(trx)
    },

    async claim(trx: Transaction<Tables>, options: ClaimRead): Promise<ReadClaim | undefined> {
      const { leaseMs, except, lane } = options
      const token = newLeaseToken()
      // The select names everything that makes a row eligible, so that LIMIT counts eligible rows only.
      const { rows } = await sql<SubscriptionsTable>`
        with due as materialized (
          select subscription_uid as uid from subscriptions
          where lane = ${lane} and refresh_at <= ${engine.now()}
            and business_uid not in (select business from ${engine.rows(
              JSON.stringify(except.map((business) => ({ business }))),
              { business: 'text' },
            )} as busy)
          order by refresh_at limit 1 ${engine.skipLocked}
        )
        update subscriptions set
          lapses = lapses + case when lease_token is null then 0 else 1 end,
          lease_token = ${token},
          refresh_at = ${engine.now()} + ${leaseMs}
        where subscription_uid in (select uid from due)
        returning *`.execute(trx)
      const row = rows[0]
      if (!row) return undefined
      return {
        id: row.subscription_uid,
        leaseToken: token,
        subscription: asSubscription(row),
        wanted: row.wanted,
        done: row.done,
        lapses: row.lapses,
        uninstalledAt: row.uninstalled_at,
        createdAt: row.created_at,
        progress: row.progress,
      }
    },

    async renew(trx: Transaction<Tables>, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const { rows } = await sql`
        update subscriptions set refresh_at = ${engine.now()} + ${leaseMs}
        where subscription_uid = ${id} and lease_token = ${leaseToken}
        returning subscription_uid`.execute(trx)
      return rows.length > 0
    },

    async finish(trx: Transaction<Tables>, claim: ReadClaim, finish: ReadFinish): Promise<boolean> {
      const { found, settled, failure, progress, nextInMs, clearUninstalled } = finish
      const record = found?.record ?? null
      const { rows } = await sql`
        update subscriptions set
          record = ${found ? record && JSON.stringify(record) : sql.ref('record')},
          lane = ${record ? 'known' : sql.ref('lane')},
          business_uid = ${record?.business_uid ?? sql.ref('business_uid')},
          purchasable_uid = ${record?.purchasable_uid ?? sql.ref('purchasable_uid')},
          state = ${found ? found.state : sql.ref('state')},
          gone = ${found ? found.gone : sql.ref('gone')},
          read_at = ${found?.confirmed ? confirmedAt() : sql.ref('read_at')},
          done = ${settled ? claim.wanted : sql.ref('done')},
          failure = ${wantedAgain(claim, null, failure)},
          progress = ${progress},
          uninstalled_at = ${clearUninstalled ? null : sql.ref('uninstalled_at')},
          lease_token = null,
          lapses = 0,
          not_before = ${engine.now()} + ${MIN_READ_INTERVAL_MS},
          refresh_at = ${wantedAgain(
            claim,
            sql`${engine.now()} + ${MIN_READ_INTERVAL_MS}`,
            nextInMs === null ? null : sql`${engine.now()} + ${nextInMs}`,
          )}
        where subscription_uid = ${claim.id} and lease_token = ${claim.leaseToken}
        returning subscription_uid`.execute(trx)
      return rows.length > 0
    },

    /**
     * Subscriptions never read that were given up long ago, or that the platform would not show and that are too many:
     * made-up identifiers must not fill the table. One that is real comes back with its next event.
     */
    async prune(trx: Transaction<Tables>, keep: Retention): Promise<number> {
      const { rows } = await sql`
        delete from subscriptions where subscription_uid in (
          select subscription_uid from (
            select subscription_uid from subscriptions
            where refresh_at is null and lane = 'new' and requested_at < ${engine.now()} - ${keep.deadMs} limit 500
          ) as given_up
          union
          select subscription_uid from (
            select subscription_uid from subscriptions
            where lane = 'new' and failure is not null and lease_token is null
            order by requested_at desc limit 500 offset ${MAX_NEVER_READ}
          ) as too_many
        )
        -- Said again, of the row as it is when it is locked: it may have been wanted meanwhile.
        and lane = 'new' and lease_token is null and (refresh_at is null or failure is not null)
        returning subscription_uid`.execute(trx)
      return rows.length
    },

    async counts(db: Kysely<Tables>) {
      const { rows } = await sql<{ subscriptions: number; wanted: number; given_up: number }>`
        select count(*) as subscriptions,
          coalesce(sum(case when wanted > done and refresh_at is not null then 1 else 0 end), 0) as wanted,
          coalesce(sum(case when refresh_at is null then 1 else 0 end), 0) as given_up
        from subscriptions`.execute(db)
      const row = rows[0]
      return {
        subscriptions: Number(row?.subscriptions),
        wanted: Number(row?.wanted),
        givenUp: Number(row?.given_up),
      }
    },
  }

  // A process that stood still between its read and this knows no more than its lease's end, which `refresh_at` is here.
  function confirmedAt() {
    return sql`case when refresh_at < ${engine.now()} then refresh_at else ${engine.now()} end`
  }
}

/** `then` where the subscription was wanted again after the claim: that word is newer than what the read found. */
function wantedAgain(claim: ReadClaim, then: unknown, otherwise: unknown) {
  return sql`case when wanted > ${claim.wanted} then ${then} else ${otherwise} end`
}

/** Subscriptions without a single good read that are kept; far above what an app has open at once. */
const MAX_NEVER_READ = 100_000

function asSubscription(row: SubscriptionsTable): Subscription {
  return {
    subscriptionUid: row.subscription_uid,
    businessUid: row.business_uid,
    record: row.record === null ? null : (JSON.parse(row.record) as SubscriptionRecord),
    state: row.state,
    gone: row.gone,
    readAt: row.read_at,
    requestedAt: row.requested_at,
    pending: row.wanted > row.done,
    failure: row.failure,
    refreshAt: row.refresh_at,
  }
}
