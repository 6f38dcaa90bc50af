import { type Kysely, sql, type Transaction } from 'kysely'
import type { SubscriptionRecord } from '../record.js'
import { newLeaseToken } from './lease-token.js'
import type { Engine, SubscriptionsTable, Tables } from './schema.js'
import {
  type ClaimRead,
  type KeepTimes,
  type Leased,
  type ReadClaim,
  type ReadFinish,
  type Subscription,
  WANTED_AGAIN_MS,
  type Wanted,
} from './store.js'

/**
 * The table `subscriptions`. A row is idle (no lease; `refresh_at` in the future, or null when given up), due
 * (`refresh_at` has come), or leased (`lease_token` set; `refresh_at` is when the lease runs out, so that an abandoned
 * row becomes due by itself).
 */
export function createSubscriptions(engine: Engine) {
  return {
    /** Marks rows as wanted; in one statement per kind of mark, each row at most once per statement. */
    async want(trx: Transaction<Tables>, wanted: readonly Wanted[]) {
      const named = new Map<
        string,
        { uid: string; business: string; purchasable: string | null; times: number }
      >()
      const known = new Map<string, { uid: string; times: number }>()
      const businesses = new Map<string, { business: string; installed: number | null; times: number }>()
      for (const each of wanted) {
        if (each.what === 'subscription') {
          const { subscriptionUid: uid, businessUid: business, purchasableUid: purchasable } = each
          named.set(uid, { uid, business, purchasable, times: (named.get(uid)?.times ?? 0) + 1 })
        } else if (each.what === 'known') {
          const uid = each.subscriptionUid
          known.set(uid, { uid, times: (known.get(uid)?.times ?? 0) + 1 })
        } else {
          const before = businesses.get(each.businessUid)
          const installed = each.installed === null ? (before?.installed ?? null) : Number(each.installed)
          businesses.set(each.businessUid, {
            business: each.businessUid,
            installed,
            times: (before?.times ?? 0) + 1,
          })
        }
      }
      if (named.size > 0) await wantNamed(trx, sortedJson(named))
      if (known.size > 0) await wantKnown(trx, sortedJson(known))
      if (businesses.size > 0) await wantBusinesses(trx, sortedJson(businesses))
    },

    async ofBusiness(db: Kysely<Tables>, businessUid: string): Promise<Subscription[]> {
      const rows = await db
        .selectFrom('subscriptions')
        .selectAll()
        .where('business_uid', '=', businessUid)
        .orderBy('created_at')
        .orderBy('subscription_uid')
        .execute()
      return rows.map(asSubscription)
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
          read_at = ${found?.confirmed ? engine.now() : sql.ref('read_at')},
          done = ${settled ? claim.wanted : sql.ref('done')},
          failure = ${failure},
          progress = ${progress},
          uninstalled_at = ${clearUninstalled ? null : sql.ref('uninstalled_at')},
          lease_token = null,
          lapses = 0,
          not_before = ${engine.now()} + ${WANTED_AGAIN_MS},
          refresh_at = case
            when wanted > ${claim.wanted} then ${engine.now()} + ${WANTED_AGAIN_MS}
            else ${nextInMs === null ? null : sql`${engine.now()} + ${nextInMs}`} end
        where subscription_uid = ${claim.id} and lease_token = ${claim.leaseToken}
        returning subscription_uid`.execute(trx)
      return rows.length > 0
    },

    /**
     * Subscriptions never read that were given up long ago, or that the platform would not show and that are too many:
     * made-up identifiers must not fill the table. One that is real comes back with its next event.
     */
    async prune(trx: Transaction<Tables>, keep: KeepTimes): Promise<number> {
      const { rows } = await sql`
        delete from subscriptions where subscription_uid in (
          select subscription_uid from (
            select subscription_uid from subscriptions
            where refresh_at is null and lane = 'new' and wanted_at < ${engine.now()} - ${keep.deadMs} limit 500
          ) as given_up
          union
          select subscription_uid from (
            select subscription_uid from subscriptions
            where lane = 'new' and failure is not null and lease_token is null
            order by wanted_at desc limit 500 offset ${MAX_NEVER_READ}
          ) as too_many
        ) returning subscription_uid`.execute(trx)
      return rows.length
    },

    async counts() {
      const { rows } = await sql<{ subscriptions: number; wanted: number; given_up: number }>`
        select count(*) as subscriptions,
          coalesce(sum(case when wanted > done and refresh_at is not null then 1 else 0 end), 0) as wanted,
          coalesce(sum(case when refresh_at is null then 1 else 0 end), 0) as given_up
        from subscriptions`.execute(engine.db)
      const row = rows[0]
      return {
        subscriptions: Number(row?.subscriptions),
        wanted: Number(row?.wanted),
        givenUp: Number(row?.given_up),
      }
    },
  }

  /**
   * A subscription named by a notice or by `track`. The first word for whose it is stands until the platform refuses
   * it, and then the next counts; once it has been read the record does. A forged notice costs a read and no more.
   */
  async function wantNamed(trx: Transaction<Tables>, json: string) {
    const columns = { uid: 'text', business: 'text', purchasable: 'text', times: 'integer' } as const
    await sql`
      insert into subscriptions
        (subscription_uid, business_uid, purchasable_uid, wanted, done, wanted_at, refresh_at, lane, lapses, created_at)
      select uid, business, purchasable, times, 0, ${engine.now()}, ${engine.now()}, 'new', 0, ${engine.now()}
      from ${engine.rows(json, columns)} as named where true
      on conflict (subscription_uid) do update set
        wanted = subscriptions.wanted + excluded.wanted,
        wanted_at = excluded.wanted_at,
        failure = null,
        refresh_at = ${due()},
        business_uid = case when ${disproved}
          then excluded.business_uid else subscriptions.business_uid end,
        purchasable_uid = case when ${disproved}
          then excluded.purchasable_uid else subscriptions.purchasable_uid end`.execute(trx)
  }

  // Due now, or when the pause after the last read is over; a leased row keeps its lease's end (the finish sees that it was wanted again), an overdue one its place.
  function due() {
    return sql`case
      when subscriptions.lease_token is not null or subscriptions.refresh_at <= ${engine.now()}
        then subscriptions.refresh_at
      when subscriptions.not_before > ${engine.now()} then subscriptions.not_before
      else ${engine.now()} end`
  }

  async function wantKnown(trx: Transaction<Tables>, json: string) {
    await sql`
      update subscriptions set
        wanted = subscriptions.wanted + marks.times, wanted_at = ${engine.now()}, failure = null,
        refresh_at = ${due()}
      from ${engine.rows(json, { uid: 'text', times: 'integer' })} as marks
      where subscriptions.subscription_uid = marks.uid`.execute(trx)
  }

  async function wantBusinesses(trx: Transaction<Tables>, json: string) {
    const columns = { business: 'text', installed: 'integer', times: 'integer' } as const
    await sql`
      update subscriptions set
        wanted = subscriptions.wanted + marks.times, wanted_at = ${engine.now()}, failure = null,
        refresh_at = ${due()},
        uninstalled_at = case marks.installed when 1 then null when 0 then ${engine.now()}
          else subscriptions.uninstalled_at end
      from ${engine.rows(json, columns)} as marks
      where subscriptions.business_uid = marks.business`.execute(trx)
  }
}

/** Never read, and the platform has refused or not shown it for the business named so far. */
const disproved = sql`(subscriptions.record is null and subscriptions.failure in
  ('platform_record_missing', 'platform_refused', 'platform_record_mismatch', 'token_refused'))`

/** Subscriptions without a single good read that are kept; far above what an app has open at once. */
const MAX_NEVER_READ = 100_000

// Sorted, so that two transactions over the same rows lock them in one order.
function sortedJson(rows: Map<string, object>): string {
  return JSON.stringify([...rows.keys()].sort().map((key) => rows.get(key)))
}

function asSubscription(row: SubscriptionsTable): Subscription {
  return {
    subscriptionUid: row.subscription_uid,
    businessUid: row.business_uid,
    record: row.record === null ? null : (JSON.parse(row.record) as SubscriptionRecord),
    state: row.state,
    gone: row.gone,
    readAt: row.read_at,
    wantedAt: row.wanted_at,
    pending: row.wanted > row.done,
    failure: row.failure,
    refreshAt: row.refresh_at,
  }
}
