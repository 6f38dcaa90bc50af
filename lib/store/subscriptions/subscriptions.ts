import type { SubscriptionRecord } from '../../base/record.js'
import { newLeaseToken } from '../leases/leases.js'
import {
  CAUSES,
  type Cause,
  type Leased,
  MIN_READ_INTERVAL_MS,
  type NewEvent,
  type ReadClaim,
  type StoredSubscription,
  type Subscription,
  type SubscriptionFilter,
} from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import type { SubscriptionsTable } from '../sql/schema.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import { prepare, run } from '../sql/writes.js'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/** What an event of the journal names. */
type NamedByEvent = Pick<NewEvent, 'subscriptionUid' | 'businessUid'>

/**
 * A row that is neither leased nor suspect. Requests, claims and the reads of others may move only the due time of such rows:
 * that of a leased row is the end of its lease, and a suspect one, which may end the process, is read when it was put off
 * to.
 */
export const IS_FREE = sql`subscriptions.suspect = 0 and subscriptions.lease_token is null`

/** The most subscriptions of one business that a decision takes into account, and that a request reads. */
const MAX_OF_BUSINESS = 1_000
/** Those of them that were never read, of which anybody with the delivery secret can make up any number. */
export const MAX_UNREAD_OF_BUSINESS = 20

/** The subscriptions of a business that count, the newest of those that were read and of the others. `of`: their condition. */
export function someOfBusiness(
  columns: Sql,
  of: Sql,
  { skipLocked = sql`` }: { skipLocked?: Sql } = {},
): Sql {
  const parts = [MAX_OF_BUSINESS, MAX_UNREAD_OF_BUSINESS].map(
    (limit, unread) => sql`select * from (
      select ${columns} from subscriptions where ${of} and unread = ${sql.lit(unread)}
      order by created_at desc limit ${sql.lit(limit)} ${skipLocked}
    ) as ${sql.ref(`mine_${unread}`)}`,
  )
  return sql.join(parts, ' union all ')
}

/**
 * The table `subscriptions`: the rows, and their leases. docs/states.md has their states; `requests.ts` has the
 * requests, `claims.ts` and `finishes.ts` the reads, `upkeep.ts` the deletion of old rows, and the reads of all.
 */
export function createSubscriptions(engine: Engine, offsetOf: ClockOffset) {
  const { asSubscription, asStored, asClaim } = createSubscriptionRows(offsetOf)

  /** Forged rows neither slow down a lookup nor displace those that were read. */
  const rowsOf = prepare(engine, { business: 'text' }, ({ each, of }) =>
    each(
      someOfBusiness(sql`subscriptions.*, ${of('now')} as store_now`, sql`business_uid = ${of('business')}`),
    ),
  )

  return {
    /** The subscriptions of a business, oldest first. */
    async ofBusiness(db: Connection, business: string): Promise<Subscription[]> {
      return sorted(await run<TimedRow>(engine, db, rowsOf([{ business }]))).map(asSubscription)
    },

    async named(db: Connection, subscriptionUids: readonly string[]): Promise<Subscription[]> {
      const rows = await sql<TimedRow>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where ${engine.isOneOf('subscription_uid', subscriptionUids)}`.execute(db)
      return rows.map(asSubscription)
    },

    /**
     * Whether a read has shown what an event names: its subscription, or without one a subscription of its business.
     * Nobody can make these up.
     */
    async readAmong(
      db: Connection,
      events: readonly NamedByEvent[],
    ): Promise<(event: NamedByEvent) => boolean> {
      const uids = events.flatMap(({ subscriptionUid }) => subscriptionUid ?? [])
      const businesses = events.flatMap(({ subscriptionUid, businessUid }) =>
        subscriptionUid === null && businessUid !== null ? businessUid : [],
      )
      const rows = await sql<{ uid: string; business: string }>`
        select subscription_uid as uid, business_uid as business from subscriptions
        where ${engine.isOneOf('subscription_uid', uids)} and unread = 0
        union all
        select '' as uid, business from (
          select key as business, (
            select 1 - unread from subscriptions where business_uid = key order by unread, created_at desc limit 1
          ) as is_read from ${engine.keys(businesses)} as given
        ) as looked_up where is_read = 1`.execute(db)
      const readUids = new Set(rows.map(({ uid }) => uid))
      const readBusinesses = new Set(rows.flatMap(({ uid, business }) => (uid === '' ? business : [])))
      return ({ subscriptionUid, businessUid }) =>
        subscriptionUid === null
          ? businessUid !== null && readBusinesses.has(businessUid)
          : readUids.has(subscriptionUid)
    },

    /** For people, a page of an index at a time. */
    async list(db: Connection, filter: SubscriptionFilter): Promise<StoredSubscription[]> {
      const { subscriptionUid, businessUid, candidateBusinessUid, after = '', limit } = filter
      const conditions = [sql`subscription_uid > ${after}`]
      if (subscriptionUid !== undefined) conditions.push(sql`subscription_uid = ${subscriptionUid}`)
      if (businessUid !== undefined) conditions.push(sql`business_uid = ${businessUid}`)
      if (candidateBusinessUid !== undefined)
        conditions.push(sql`candidate_business_uid = ${candidateBusinessUid}`)
      const rows = await sql<TimedRow>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where ${sql.join(conditions, ' and ')} order by subscription_uid limit ${limit}`.execute(db)
      return rows.map(asStored)
    },

    /**
     * The next businesses of the index `subscriptions_of`: a step of it for each, however many subscriptions a business has.
     */
    async listBusinesses(
      db: Connection,
      { after = '', limit }: { after?: string; limit: number },
    ): Promise<string[]> {
      const next = (than: Sql) =>
        sql`select min(business_uid) from subscriptions where business_uid > ${than}`
      const rows = await sql<{ uid: string }>`
        with recursive found (uid) as (
          select (${next(sql`${after}`)})
          union all
          select (${next(sql`found.uid`)}) from found where found.uid is not null
        )
        select uid from found where uid is not null limit ${limit}`.execute(db)
      return rows.map(({ uid }) => uid)
    },

    /**
     * Leases these subscriptions, which are due and locked by the transaction. `claims`, in the order of `uids`, are known when the
     * transaction has ended.
     */
    lease(trx: Transaction, uids: readonly string[], leaseMs: number): LeasedReads {
      if (uids.length === 0) return { leases: [], claims: Promise.resolve([]) }
      const leaseToken = newLeaseToken()
      const leased = sql<LeasedRow>`
        update subscriptions set
          lease_token = ${leaseToken},
          refresh_at = ${engine.leaseNow()} + ${leaseMs}
        where ${engine.isOneOf('subscription_uid', uids)}
        returning ${leasedRow(engine)}`.execute(trx)
      const claims = leased.then((rows) => {
        const byUid = new Map(rows.map((row) => [row.subscription_uid, row]))
        return uids.flatMap((uid) => {
          const row = byUid.get(uid)
          return row ? asClaim(row) : []
        })
      })
      trx.leave(claims)
      return { leases: uids.map((id) => ({ id, leaseToken })), claims }
    },

    /** The claim of a subscription that this transaction has leased. */
    async leased(trx: Connection, { id }: Leased): Promise<ReadClaim> {
      const [row] = await sql<LeasedRow>`
        select ${leasedRow(engine)} from subscriptions where subscription_uid = ${id}`.execute(trx)
      return asClaim(row as LeasedRow)
    },
  }
}

function sorted(rows: TimedRow[]): TimedRow[] {
  return rows.sort(
    (a, b) => a.created_at - b.created_at || (a.subscription_uid < b.subscription_uid ? -1 : 1),
  )
}

/** A row of `subscriptions`, and the store's time when it was read, by which its times are converted. */
type TimedRow = SubscriptionsTable & { store_now: number }

export interface LeasedReads {
  leases: Leased[]
  claims: Promise<ReadClaim[]>
}

/** A row that was just leased. */
type LeasedRow = TimedRow & { lease_now: number; business_update_at: number | null }

const BUSINESS_UPDATE_AT = sql`case when failing_since is not null then (
  select max(of_business.update_at) from subscriptions as of_business
  where of_business.business_uid = subscriptions.business_uid and of_business.unread = 0
    and of_business.update_at >= subscriptions.read_at
) end`

/** The columns of a `LeasedRow`, for the `returning` of a statement that leases rows. */
function leasedRow({ now, leaseNow }: Pick<Engine, 'now' | 'leaseNow'>): Sql {
  return sql`*, ${BUSINESS_UPDATE_AT} as business_update_at, ${now()} as store_now, ${leaseNow()} as lease_now`
}

/** Turns rows of `subscriptions` into what the port returns. */
function createSubscriptionRows(offsetOf: ClockOffset) {
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
      triedAt: own(row.not_before === null ? null : row.not_before - MIN_READ_INTERVAL_MS),
      requestedAt: own(row.requested_at),
      owedSince: own(row.owed_since),
      generation: row.generation,
      settledGeneration: row.settled_generation,
      pending: row.generation > row.settled_generation,
      verifying: row.verifying === 1,
      failure: row.failure,
      // The end of a lease is in another time: see `Dialect.leaseNow`.
      refreshAt: own(
        row.lease_token === null ? row.refresh_at : Math.max(row.refresh_at ?? 0, row.store_now),
      ),
      quiet: row.quiet_until_read === 1,
      entitles: row.entitles === 1,
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
      claimedAt: row.store_now,
      leaseTimeBehindMs: row.store_now - row.lease_now,
    }
  }

  return { asSubscription, asStored, asClaim }
}
