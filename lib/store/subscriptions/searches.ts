import { SECOND } from '../../base/clock.js'
import { newLeaseToken } from '../leases/leases.js'
import {
  type ClaimSearches,
  COUNTED_UP_TO,
  type Leased,
  MIN_SEARCH_INTERVAL_MS,
  type Search,
  type SearchClaim,
  type SearchCounts,
  type SearchFinish,
  type SearchRequest,
} from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Given, Write } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { byBytes } from '../sql/lock-order.js'
import type { SearchesTable } from '../sql/schema.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { prepare, run } from '../sql/writes.js'
import type { RefreshRequests } from './requests.js'

/** The most searches that installs make. Beyond it the first question makes the search. */
const MOST_OF_INSTALLS = 100_000
/** The time between two looks at how many there are. */
const LOOK_EVERY_MS = 10 * SECOND
/** The rows of one transaction of `prune`. */
const BATCH = 500

export type Searches = ReturnType<typeof createSearches>

/**
 * The table `searches`: businesses without a subscription in the store, for which the platform is asked for their
 * subscriptions. docs/states.md has the states. All of its times are the store's time of dates, also the ends of leases: if
 * the clock is set forward, a search may be made twice, and nothing more.
 */
export function createSearches(engine: Engine, offsetOf: ClockOffset, request: RefreshRequests['request']) {
  const requests: Record<SearchRequest, (rows: readonly RequestRow[]) => Write> = {
    question: prepare(engine, COLUMNS, (given) => requested('question', given)),
    refresh: prepare(engine, COLUMNS, (given) => requested('refresh', given)),
    install: prepare(engine, COLUMNS, (given) => requested('install', given)),
  }
  let isFull = false
  let lookedAt = Number.NEGATIVE_INFINITY

  /** Whether installs may make no more searches. */
  async function looksFull(): Promise<boolean> {
    const now = engine.clock.monotonic()
    if (now - lookedAt < LOOK_EVERY_MS) return isFull
    lookedAt = now
    const beyond = await engine.read((db) =>
      sql`select 1 as one from searches where asked = 0 order by search_at limit 1 offset ${MOST_OF_INSTALLS - 1}`.execute(
        db,
      ),
    )
    isFull = beyond.length > 0
    return isFull
  }

  /** Requests reads of what was found, and deletes the search if nobody needs it any more. */
  async function isEnded(
    trx: Connection,
    { id: businessUid, generation }: SearchClaim,
    leased: Sql,
    { found, failure }: Extract<SearchFinish, { kind: 'answered' }>,
  ): Promise<boolean> {
    const tracked = found.map((subscriptionUid) => ({
      request: { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: null } as const,
      cause: 'request' as const,
    }))
    if (found.length > 0) await run(engine, trx, ...request(tracked))
    // What is stored for another business stays there until a read shows otherwise: then this search is kept.
    const isNeedless = found.length > 0 ? hasSubscription(sql`searches.business_uid`) : sql`1 = 0`
    // Most made-up businesses are refused. One that the app has not asked about needs no answer.
    const isMadeUp = failure === null ? sql`1 = 0` : sql`(asked = 0 and generation = ${generation})`
    const rows = await sql`
      delete from searches where ${leased} and (${isNeedless} or ${isMadeUp}) returning business_uid`.execute(
      trx,
    )
    return rows.length > 0
  }

  return {
    async of(db: Connection, businessUid: string): Promise<Search | undefined> {
      const [row] = await sql<SearchesTable & { store_now: number }>`
        select searches.*, ${engine.now()} as store_now from searches where business_uid = ${businessUid}`.execute(
        db,
      )
      return (
        row && {
          isAnswered: row.settled_generation > 0,
          pending: row.generation > row.settled_generation,
          isAsked: row.asked === 1,
          wantedAt: row.wanted_at + offsetOf(row.store_now),
          failure: row.failure,
        }
      )
    },

    request: (businessUid: string, by: SearchRequest): Write =>
      requests[by]([{ business: businessUid, at: 0 }]),

    /** The writes of installs of these businesses, sorted by bytes. */
    async installed(businessUids: readonly string[]): Promise<Write[]> {
      if (businessUids.length === 0 || (await looksFull())) return []
      const sorted = [...new Set(businessUids)].sort(byBytes)
      return [requests.install(sorted.map((business) => ({ business, at: 0 })))]
    },

    /** Whether any search is due. */
    async areDue(db: Connection): Promise<boolean> {
      const rows = await sql`
        select 1 as one from searches where asked in (0, 1) and search_at <= ${engine.now()} limit 1`.execute(
        db,
      )
      return rows.length > 0
    },

    async claim(trx: Connection, { limit, installLimit, leaseMs }: ClaimSearches): Promise<SearchClaim[]> {
      const asked = await due(engine, trx, 1, limit)
      const rows = [...asked, ...(await due(engine, trx, 0, Math.min(installLimit, limit - asked.length)))]
      const uidsOf = (isNeeded: boolean) =>
        rows.flatMap((row) => ((row.is_needed === 1) === isNeeded ? row.business_uid : []))
      const needless = uidsOf(false)
      if (needless.length > 0)
        await sql`delete from searches where ${engine.isOneOf('business_uid', needless)}`.execute(trx)
      const needed = uidsOf(true)
      if (needed.length === 0) return []
      const leased = await sql<SearchesTable>`
        update searches set lease_token = ${newLeaseToken()}, search_at = ${engine.now()} + ${leaseMs}
        where ${engine.isOneOf('business_uid', needed)} returning *`.execute(trx)
      const byUid = new Map(leased.map((row) => [row.business_uid, row]))
      return needed.flatMap((uid) => {
        const row = byUid.get(uid)
        return row ? asClaim(row) : []
      })
    },

    async renew(trx: Connection, { id, leaseToken }: Leased, leaseMs: number): Promise<boolean> {
      const rows = await sql`
        update searches set search_at = ${engine.now()} + ${leaseMs}
        where business_uid = ${id} and lease_token = ${leaseToken} returning business_uid`.execute(trx)
      return rows.length > 0
    },

    /** False: the lease is lost, and nothing was written. */
    async finish(trx: Connection, claim: SearchClaim, finish: SearchFinish): Promise<boolean> {
      const leased = sql`business_uid = ${claim.id} and lease_token = ${claim.leaseToken}`
      const held = await sql`select 1 as one from searches where ${leased} ${engine.forUpdate}`.execute(trx)
      if (held.length === 0) return false
      if (finish.kind === 'answered' && (await isEnded(trx, claim, leased, finish))) return true
      await sql`update searches set ${finished(engine, claim, finish)}, lease_token = null where ${leased}`.execute(
        trx,
      )
      return true
    },

    async erase(trx: Connection, businessUid: string): Promise<number> {
      const rows = await sql`
        delete from searches where business_uid = ${businessUid} returning business_uid`.execute(trx)
      return rows.length
    },

    /** Deletes a batch of searches that nobody has wanted for this long. Returns their number. */
    async prune(trx: Connection, unwantedMs: number): Promise<number> {
      const rows = await sql`
        delete from searches where business_uid in (
          select business_uid from searches where wanted_at < ${engine.now()} - ${unwantedMs} and lease_token is null
          order by wanted_at limit ${sql.lit(BATCH)} ${engine.skipLocked}
        ) returning business_uid`.execute(trx)
      return rows.length
    },

    counts(db: Connection): Promise<SearchCounts> {
      const failed = sql`searches where failures > 0 and asked = 1`
      return sql<SearchCounts>`
        select
          (select count(*) from (select 1 as one from ${failed} limit ${sql.lit(COUNTED_UP_TO)}) as counted)
            as ${sql.ref('failedSearches')},
          (select case when min(search_at) < ${engine.now()} then ${engine.now()} - min(search_at) end
            from searches where asked = 1) as ${sql.ref('oldestSearchMs')}`.one(db)
    },
  }
}

function asClaim({ business_uid, lease_token, asked, generation, failures }: SearchesTable): SearchClaim {
  return { id: business_uid, leaseToken: lease_token as string, isAsked: asked === 1, generation, failures }
}

/** The due searches of a class, the longest due first: a range of the index `searches_due`. A lease that ran out is due too. */
async function due(engine: Engine, trx: Connection, asked: 0 | 1, limit: number) {
  if (limit <= 0) return []
  return sql<{ business_uid: string; is_needed: number }>`
    select business_uid, case when generation = settled_generation and ${hasSubscription(sql`searches.business_uid`)}
      then 0 else 1 end as is_needed
    from searches where asked = ${sql.lit(asked)} and search_at <= ${engine.now()}
    order by search_at limit ${limit} ${engine.skipLocked}`.execute(trx)
}

const hasSubscription = (business: Sql) =>
  sql`exists (select 1 from subscriptions where subscriptions.business_uid = ${business})`

const COLUMNS = { business: 'text', at: 'integer' } as const
interface RequestRow {
  business: string
  at: number
}

/**
 * A request of a search. One of a business that has a subscription makes none: the reads of that keep it right. A leased row
 * keeps the end of its lease, and its finish sees the new generation.
 */
function requested(by: SearchRequest, { insertFirst, of }: Given<keyof typeof COLUMNS>): Sql {
  const now = sql`excluded.wanted_at`
  const isAgain = by === 'question' ? 0 : 1
  const pause = sql.lit(MIN_SEARCH_INTERVAL_MS)
  // The pause after a failed try stands, whoever sends installs.
  const dueAt = {
    question: sql`searches.search_at`,
    refresh: sql`case when searches.search_at < ${now} then searches.search_at else ${now} end`,
    install: sql`case
      when searches.failures > 0 or searches.search_at < ${now} then searches.search_at
      when searches.searched_at + ${pause} > ${now} then searches.searched_at + ${pause}
      else ${now} end`,
  }[by]
  return sql`
    insert into searches
      (business_uid, asked, search_at, wanted_at, generation, settled_generation, failures)
    ${insertFirst(
      of('business'),
      sql`${of('business')}, ${sql.lit(by === 'install' ? 0 : 1)}, ${of('now')}, ${of('now')}, 1, 0, 0`,
      sql`not ${hasSubscription(of('business'))}`,
    )}
    on conflict (business_uid) do update set
      asked = ${by === 'install' ? sql`searches.asked` : sql`1`},
      generation = searches.generation + ${sql.lit(isAgain)},
      wanted_at = ${
        by === 'install'
          ? sql`case when searches.generation > searches.settled_generation then searches.wanted_at else ${now} end`
          : now
      },
      ${by === 'refresh' ? sql`failure = null, failures = 0,` : sql``}
      search_at = case when searches.lease_token is not null then searches.search_at else ${dueAt} end`
}

/** What a finish changes, apart from the lease. If the search was requested again after the claim, it is due again soon. */
function finished({ now }: Pick<Engine, 'now'>, { generation }: SearchClaim, finish: SearchFinish): Sql {
  if (finish.kind === 'untried') return sql`search_at = ${now()}`
  const nextAt = sql`search_at = case when generation > ${generation} then ${now()} + ${sql.lit(MIN_SEARCH_INTERVAL_MS)}
    else ${now()} + ${Math.round(finish.nextInMs)} end`
  if (finish.kind === 'failed') return sql`${nextAt}, failures = failures + 1, failure = ${finish.failure}`
  return sql`${nextAt}, searched_at = ${now()}, settled_generation = ${generation}, failures = 0, failure = ${finish.failure}`
}
