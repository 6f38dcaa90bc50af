import { type Kysely, sql, type Transaction } from 'kysely'
import type { SubscriptionRecord } from '../record.js'
import { newLeaseToken } from './lease-token.js'
import type { Engine, SubscriptionsTable, Tables } from './schema.js'
import {
  type ClaimRead,
  type KeptSubscription,
  type Leased,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type ReadFinish,
  type Subscription,
} from './store.js'

/** All was written; only that the read came too late for what it found; nothing, for the lease is somebody else's. */
export type Finished = 'written' | 'too late' | false

export type Subscriptions = ReturnType<typeof createSubscriptions>

const MOST_OF_BUSINESS = 1_000
const MOST_ON_THE_WAY_MS = 200

/** A row with the store's time, by which its own times are converted. */
type TimedRow = SubscriptionsTable & { store_now: number }

/**
 * The table `subscriptions`. A row is idle (no lease; `refresh_at` in the future, or null when given up), due
 * (`refresh_at` has come), or leased (`lease_token` set; `refresh_at` is when the lease runs out, so that an abandoned
 * row becomes due by itself). Claiming stands in `claim-read.ts`, requests in `request-refresh.ts`.
 */
export function createSubscriptions(engine: Engine) {
  const { clock } = engine
  let aheadMs = Number.NaN

  /**
   * Times leave the store as the caller's wall clock shows them, so that nobody compares the clocks of two machines.
   * How far ours is ahead is measured with every row, and believed anew when it has moved by more than an answer's way
   * back takes: so a time that did not change reads the same twice.
   */
  function ownTime(row: TimedRow) {
    const measuredMs = clock.now() - Number(row.store_now)
    if (!(Math.abs(measuredMs - aheadMs) <= MOST_ON_THE_WAY_MS)) aheadMs = measuredMs
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

  return {
    /** A row for people. */
    kept(row: TimedRow): KeptSubscription {
      const own = ownTime(row)
      return {
        ...asSubscription(row),
        candidateBusinessUid: row.candidate_business_uid,
        installAt: own(row.install_at),
        uninstalledAt: own(row.uninstalled_at),
        createdAt: own(row.created_at),
      }
    },

    async ofBusiness(db: Kysely<Tables>, businessUid: string): Promise<Subscription[]> {
      // Those that have been read first: forged rows must not slow down lookups, nor push out what is known.
      const { rows } = await sql<TimedRow>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where business_uid = ${businessUid}
        order by unread, created_at desc limit ${MOST_OF_BUSINESS}`.execute(db)
      return rows
        .sort((a, b) => a.created_at - b.created_at || (a.subscription_uid < b.subscription_uid ? -1 : 1))
        .map(asSubscription)
    },

    async named(db: Kysely<Tables>, subscriptionUids: readonly string[]): Promise<Subscription[]> {
      const { rows } = await sql<TimedRow>`
        select subscriptions.*, ${engine.now()} as store_now from subscriptions
        where ${engine.isOneOf('subscription_uid', subscriptionUids)}`.execute(db)
      return rows.map(asSubscription)
    },

    /** Whether the read that is about to be finished is quiet. Asked of the row itself: an event may have come since the claim. */
    async isQuiet(trx: Transaction<Tables>, { id, subscription }: ReadClaim): Promise<boolean> {
      if (subscription.record !== null) return false
      const { rows } = await sql<{ quiet: number }>`
        select quiet_until_read as quiet from subscriptions
        where subscription_uid = ${id} ${engine.forUpdate}`.execute(trx)
      return rows[0]?.quiet === 1
    },

    /** Leases the first of these that nobody else is about to lease; another process may have been quicker with all. */
    async lease(
      trx: Transaction<Tables>,
      uids: readonly string[],
      { leaseMs }: Pick<ClaimRead, 'leaseMs'>,
    ): Promise<ReadClaim | undefined> {
      const token = newLeaseToken()
      // Found by their key: `+ 0` keeps planners from walking the index of what is due, without an end.
      const { rows } = await sql<TimedRow>`
        with free as materialized (
          select subscription_uid as uid from subscriptions
          where ${engine.isOneOf('subscription_uid', uids)} and refresh_at + 0 <= ${engine.now()}
          order by refresh_at + 0 limit 1 ${engine.skipLocked}
        )
        update subscriptions set
          lapses = lapses + case when lease_token is null then 0 else 1 end,
          lease_token = ${token},
          refresh_at = ${engine.now()} + ${leaseMs}
        where subscription_uid = (select uid from free)
        returning *, ${engine.now()} as store_now`.execute(trx)
      const row = rows[0]
      if (!row) return undefined
      const own = ownTime(row)
      return {
        id: row.subscription_uid,
        leaseToken: token,
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
    },

    async renew(trx: Transaction<Tables>, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const { rows } = await sql`
        update subscriptions set refresh_at = ${engine.now()} + ${leaseMs}
        where subscription_uid = ${id} and lease_token = ${leaseToken}
        returning subscription_uid`.execute(trx)
      return rows.length > 0
    },

    /** Answers what it has written: all of it, or only that the read came too late to revoke, or nothing. */
    async finish(trx: Transaction<Tables>, claim: ReadClaim, finish: ReadFinish): Promise<Finished> {
      // A revocation rests on the uninstall that the claim saw: an install since then asks for another read.
      const revokes = finish.found?.gone === 'revoked' && claim.subscription.gone !== 'revoked'
      const isErased = await erasedSince(trx, claim, finish)
      if (!isErased && (await write(trx, claim, finish, revokes))) return 'written'
      if (!revokes && !isErased) return false
      const { failure } = finish
      const asFailed = { settled: false, failure, progress: claim.progress, nextInMs: 0 }
      return (await write(trx, claim, asFailed, false)) && 'too late'
    },
  }

  /** Whether the business that the record names was erased while it was read: then it is read again, as something new. */
  async function erasedSince(trx: Transaction<Tables>, claim: ReadClaim, { found }: ReadFinish) {
    const businessUid = found?.record?.business_uid
    if (businessUid === undefined || businessUid === claim.subscription.businessUid) return false
    const { rows } = await sql`
      select 1 from journal where business_uid = ${businessUid} and kind = 'action' and name = 'erase'
        and received_at >= ${claim.claimedAt} limit 1`.execute(trx)
    return rows.length > 0
  }

  async function write(
    trx: Transaction<Tables>,
    claim: ReadClaim,
    finish: ReadFinish,
    onlyIfUnrequested: boolean,
  ): Promise<boolean> {
    const { found, settled, failure, progress, nextInMs, clearUninstalled, candidate } = finish
    const record = found?.record ?? null
    const isAnswered = settled || REFUSALS.includes(failure ?? '')
    const { rows } = await sql`
      update subscriptions set
        record = ${found ? record && JSON.stringify(record) : sql.ref('record')},
        unread = ${record ? 0 : sql.ref('unread')},
        business_uid = ${record?.business_uid ?? sql.ref('business_uid')},
        candidate_business_uid = ${
          candidate === undefined
            ? sql.ref('candidate_business_uid')
            : requestedAgain(claim, sql.ref('candidate_business_uid'), candidate)
        },
        purchasable_uid = ${record?.purchasable_uid ?? sql.ref('purchasable_uid')},
        state = ${found ? found.state : sql.ref('state')},
        gone = ${found ? found.gone : sql.ref('gone')},
        read_at = ${found?.confirmed ? confirmedAt() : sql.ref('read_at')},
        settled_generation = ${settled ? claim.generation : sql.ref('settled_generation')},
        owed_since = ${isAnswered ? requestedAgain(claim, sql.ref('requested_at'), null) : sql.ref('owed_since')},
        failure = ${requestedAgain(claim, null, failure)},
        progress = ${progress},
        verifying = ${finish.verifying ? 1 : 0},
        urgency = ${
          finish.urgency === undefined
            ? sql.ref('urgency')
            : requestedAgain(claim, sql.ref('urgency'), finish.urgency)
        },
        uninstalled_at = ${
          clearUninstalled
            ? requestedAgain(claim, sql.ref('uninstalled_at'), null)
            : sql.ref('uninstalled_at')
        },
        quiet_until_read = ${record ? 0 : sql.ref('quiet_until_read')},
        lease_token = null,
        lapses = 0,
        not_before = ${engine.now()} + ${MIN_READ_INTERVAL_MS},
        refresh_at = ${requestedAgain(
          claim,
          sql`${engine.now()} + ${MIN_READ_INTERVAL_MS}`,
          nextInMs === null ? null : sql`${engine.now()} + ${nextInMs}`,
        )}
      where subscription_uid = ${claim.id} and lease_token = ${claim.leaseToken}
        ${onlyIfUnrequested ? sql`and generation = ${claim.generation}` : sql``}
      returning subscription_uid`.execute(trx)
    return rows.length > 0
  }

  // A process that stood still between its read and this knows no more than its lease's end, which `refresh_at` is here.
  function confirmedAt() {
    return sql`case when refresh_at < ${engine.now()} then refresh_at else ${engine.now()} end`
  }
}

/** Answers of the platform, although they show nothing: who waits for the platform does not wait for these. */
const REFUSALS = ['platform_refused', 'platform_record_mismatch', 'token_refused', 'platform_record_missing']

/** `then` where a read was requested after the claim: that request is newer than what the read found. */
function requestedAgain(claim: ReadClaim, then: unknown, otherwise: unknown) {
  return sql`case when generation > ${claim.generation} then ${then} else ${otherwise} end`
}
