import { DAY, HOUR, SECOND } from '../../base/clock.js'
import { storable } from '../../base/record.js'
import { LEASED, newLeaseToken } from '../leases/leases.js'
import { createLookBack, type LookBack } from '../leases/look-back.js'
import {
  type ClaimSearches,
  COUNTED_UP_TO,
  MIN_SEARCH_INTERVAL_MS,
  SEARCH_PAUSE_MS,
  SETTLED_AFTER_MS,
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

/** The most searches that only installs have made, and the most that the app has asked for. */
const MOST = 100_000
/** The time between two looks at how many there are. */
const LOOK_EVERY_MS = 10 * SECOND
/** A search that nobody has wanted for so long is deleted. */
const UNWANTED_MS = 30 * DAY
/** The rows of one transaction of `prune`. */
const BATCH = 500

export type Searches = ReturnType<typeof createSearches>

/**
 * The table `searches`: businesses of which no subscription to the app was read, for which the platform is asked for their
 * subscriptions. `items`: those of the app that has opened the store. docs/states.md has the states.
 */
export function createSearches(
  engine: Engine,
  offsetOf: ClockOffset,
  request: RefreshRequests['request'],
  items: () => readonly string[],
  most = MOST,
) {
  /**
   * Whether a subscription of the business to the app was read: `isOfApp` of `lib/entitlement/decide.ts` in SQL. Anybody with
   * the delivery secret can name others, and one of another item says nothing about the app.
   */
  function hasSubscription(business: Sql) {
    const own = items().map((item) => sql.lit(storable(item)))
    const isOwn = own.length === 0 ? sql`` : sql`and purchasable_uid in (${sql.join(own)})`
    return sql`exists (
      select 1 from subscriptions
      where subscriptions.business_uid = ${business} and unread = 0 ${isOwn}
    )`
  }
  const requests: Record<SearchRequest, (rows: readonly RequestRow[]) => Write> = {
    question: prepare(engine, COLUMNS, (given) => requested('question', hasSubscription, given)),
    refresh: prepare(engine, COLUMNS, (given) => requested('refresh', hasSubscription, given)),
    wait: prepare(engine, COLUMNS, (given) => requested('wait', hasSubscription, given)),
    install: prepare(engine, COLUMNS, (given) => requested('install', hasSubscription, given)),
  }
  const looks = [0, 1].map(() => ({ isFull: false, at: Number.NEGATIVE_INFINITY }))
  const unsearched = { count: 0, at: Number.NEGATIVE_INFINITY }
  const lookBack = createLookBack(engine)

  /** Whether there are as many searches as there may be: those that the app has asked for (1), or the others (0). */
  async function areMost(asked: 0 | 1): Promise<boolean> {
    const now = engine.clock.monotonic()
    const look = looks[asked] as (typeof looks)[number]
    if (now - look.at < LOOK_EVERY_MS) return look.isFull
    look.at = now
    const last = await engine.read((db) =>
      sql`select 1 as one from searches where asked = ${sql.lit(asked)} limit 1 offset ${most - 1}`.execute(
        db,
      ),
    )
    look.isFull = last.length > 0
    return look.isFull
  }

  const recentlyUnsearched = () => (engine.clock.monotonic() - unsearched.at < HOUR ? unsearched.count : 0)

  /** The due searches of a class, the longest due first: a range of the index `searches_due`. */
  async function due(trx: Connection, byInstall: 0 | 1, limit: number, look: LookBack) {
    if (limit <= 0) return []
    const rows = await sql<{ business_uid: string; is_needed: number; due_for: number }>`
      select business_uid, ${engine.now()} - search_at as due_for,
        case when generation = settled_generation and ${hasSubscription(sql`searches.business_uid`)}
          then 0 else 1 end as is_needed
      from searches where ${isDue(engine, byInstall)} and ${look.since(byInstall, LEASED.search.dueAt)}
      order by search_at limit ${limit} ${engine.skipLocked}`.execute(trx)
    look.found(byInstall, Math.max(0, ...rows.map(({ due_for }) => due_for)))
    return rows
  }

  async function nextDue(trx: Connection, limits: Omit<ClaimSearches, 'leaseMs'>, look: LookBack) {
    await failLapsed(trx, look)
    const first = await due(trx, 0, limits.limit, look)
    const most = Math.min(limits.installLimit, limits.limit - first.length)
    return [...first, ...(await due(trx, 1, most, look))]
  }

  /** A search whose lease ran out has failed, and has the pause of a failed one: it may be what ended the process. */
  async function failLapsed(trx: Connection, look: LookBack) {
    const isSeen = look.since('lapsed', LEASED.search.dueAt, engine.leaseNow())
    const { first, longest } = SEARCH_PAUSE_MS
    const doublings = Math.ceil(Math.log2(longest / first))
    await sql`
      update searches set lease_token = null, failures = failures + 1, failure = 'lease_lapsed',
        search_at = ${engine.now()} + case when failures >= ${sql.lit(doublings)} then ${sql.lit(longest)}
          else ${sql.lit(first)} * (1 << failures) end
      where business_uid in (
        select business_uid from searches where ${hasRunOut(engine)} and ${isSeen} order by business_uid ${engine.skipLocked}
      )`.execute(trx)
    look.found('lapsed', 0)
  }

  /**
   * Requests reads of what was found. What was read for the business and has not ended needs none: its reconcile reads it, and
   * each search of a business with another item would announce one more change of that.
   */
  async function track(trx: Connection, businessUid: string, found: readonly string[]) {
    if (found.length === 0) return
    const read = await sql<{ subscription_uid: string }>`
      select subscription_uid from subscriptions where ${engine.isOneOf('subscription_uid', found)}
        and business_uid = ${businessUid} and unread = 0 and gone is null`.execute(trx)
    const isRead = new Set(read.map(({ subscription_uid }) => subscription_uid))
    const unknown = found.filter((subscriptionUid) => !isRead.has(subscriptionUid))
    const tracked = unknown.map((subscriptionUid) => ({
      request: { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: null } as const,
      cause: 'reconcile' as const,
    }))
    await run(engine, trx, ...request(tracked))
  }

  /** Whether a subscription of the business to the app was read, and whether one of the business is among these. */
  async function ownOf(trx: Connection, businessUid: string, found: readonly string[]) {
    const { read, own } = await sql<{ read: number; own: number }>`
      select case when ${hasSubscription(sql`${businessUid}`)} then 1 else 0 end as ${sql.ref('read')},
        case when exists (
          select 1 from subscriptions where ${engine.isOneOf('subscription_uid', found)}
            and business_uid = ${businessUid}
        ) then 1 else 0 end as own`.one(trx)
    return { isRead: read === 1, isOwn: own === 1 }
  }

  return {
    async of(db: Connection, businessUid: string): Promise<Search | undefined> {
      const [row] = await sql<SearchesTable & { store_now: number }>`
        select searches.*, ${engine.now()} as store_now from searches where business_uid = ${businessUid}`.execute(
        db,
      )
      if (!row) return undefined
      const offset = offsetOf(row.store_now)
      return {
        isAnswered: row.settled_generation > 0,
        pending: row.generation > row.settled_generation,
        isAsked: row.asked === 1,
        wantedAt: row.wanted_at + offset,
        answeredAt: row.searched_at === null ? null : row.searched_at + offset,
        nextAt: row.lease_token === null ? row.search_at + offset : null,
        failure: row.failure,
      }
    },

    /** Whether the app may ask for a search of the business: there is one, or there is room for one more. */
    async hasRoom(businessUid: string): Promise<boolean> {
      if (!(await areMost(1))) return true
      const rows = await engine.read((db) =>
        sql`select 1 as one from searches where business_uid = ${businessUid}`.execute(db),
      )
      if (rows.length > 0) return true
      unsearched.count = recentlyUnsearched() + 1
      unsearched.at = engine.clock.monotonic()
      return false
    },

    request: (businessUid: string, by: SearchRequest): Write =>
      requests[by]([{ business: businessUid, at: 0 }]),

    /** The writes of installs of these businesses, sorted by bytes. */
    async installed(businessUids: readonly string[]): Promise<Write[]> {
      if (businessUids.length === 0 || (await areMost(0))) return []
      const sorted = [...new Set(businessUids)].sort(byBytes)
      return [requests.install(sorted.map((business) => ({ business, at: 0 })))]
    },

    /** Whether `claim` would find a search, or a lease that ran out. */
    async areDue(db: Connection, { limit, installLimit }: ClaimSearches): Promise<boolean> {
      const which = [
        hasRunOut(engine),
        ...(limit > 0 ? [isDue(engine, 0)] : []),
        ...(Math.min(limit, installLimit) > 0 ? [isDue(engine, 1)] : []),
      ]
      const each = which.map(
        (condition, i) =>
          sql`select * from (select 1 as one from searches where ${condition} limit 1) as ${sql.ref(`due_${i}`)}`,
      )
      return (await sql`${sql.join(each, ' union all ')}`.execute(db)).length > 0
    },

    async claim(trx: Connection, { limit, installLimit, leaseMs }: ClaimSearches): Promise<SearchClaim[]> {
      const look = lookBack.look()
      const rows = await look.during(nextDue(trx, { limit, installLimit }, look))
      const uidsOf = (isNeeded: boolean) =>
        rows.flatMap((row) => ((row.is_needed === 1) === isNeeded ? row.business_uid : []))
      const needless = uidsOf(false)
      if (needless.length > 0)
        await sql`delete from searches where ${engine.isOneOf('business_uid', needless)}`.execute(trx)
      const needed = uidsOf(true)
      if (needed.length === 0) return []
      const leased = await sql<SearchesTable>`
        update searches set lease_token = ${newLeaseToken()}, search_at = ${engine.leaseNow()} + ${leaseMs}
        where ${engine.isOneOf('business_uid', needed)} returning *`.execute(trx)
      const byUid = new Map(leased.map((row) => [row.business_uid, row]))
      return needed.flatMap((uid) => {
        const row = byUid.get(uid)
        return row ? asClaim(row) : []
      })
    },

    /** False: the lease is lost, and nothing was written. */
    async finish(trx: Connection, claim: SearchClaim, finish: SearchFinish): Promise<boolean> {
      const leased = sql`business_uid = ${claim.id} and lease_token = ${claim.leaseToken}`
      const [row] = await sql<LeasedRow>`
        select generation, settled_generation, asked, doubted_at, ${engine.now()} as store_now
        from searches where ${leased} ${engine.forUpdate}`.execute(trx)
      if (!row) return false
      const write = async (changes: Sql) => {
        await sql`update searches set lease_token = null, ${changes} where ${leased}`.execute(trx)
        return true
      }
      if (finish.kind === 'untried') return write(sql`search_at = ${engine.now()}`)
      const isAgain = row.generation > claim.generation
      const next = (ms: number) =>
        sql`search_at = ${engine.now()} + ${isAgain ? MIN_SEARCH_INTERVAL_MS : Math.round(ms)}`
      if (finish.kind === 'failed')
        return write(sql`${next(finish.nextInMs)}, failures = failures + 1,
          failure = ${isAgain ? null : finish.failure}`)
      await track(trx, claim.id, finish.found)
      const { isRead, isOwn } = await ownOf(trx, claim.id, finish.found)
      const { isSettled, nextInMs } = judge(row, claim, finish, isOwn)
      // Most made-up businesses are refused. One that the app has not asked about needs no answer.
      const isMadeUp = isSettled && finish.failure !== null && row.asked === 0 && !isAgain
      if (isRead || isMadeUp) {
        await sql`delete from searches where ${leased}`.execute(trx)
        return true
      }
      const settled = isSettled
        ? sql`settled_generation = ${claim.generation}, doubted_at = null,
          by_install = ${isAgain ? sql`by_install` : sql`1 - asked`}`
        : sql`doubted_at = coalesce(doubted_at, ${engine.now()})`
      return write(sql`${next(nextInMs)}, searched_at = ${engine.now()}, failures = 0,
        failure = ${finish.failure}, ${settled}`)
    },

    async erase(trx: Connection, businessUid: string): Promise<number> {
      const rows = await sql`
        delete from searches where business_uid = ${businessUid} returning business_uid`.execute(trx)
      return rows.length
    },

    /** Deletes a batch of searches that nobody has wanted for long. Returns their number. */
    async prune(trx: Connection): Promise<number> {
      const rows = await sql`
        delete from searches where business_uid in (
          select business_uid from searches
          where wanted_at < ${engine.now()} - ${sql.lit(UNWANTED_MS)} and (lease_token is null or ${hasRunOut(engine)})
          order by wanted_at limit ${sql.lit(BATCH)} ${engine.skipLocked}
        ) returning business_uid`.execute(trx)
      return rows.length
    },

    async counts(db: Connection): Promise<SearchCounts> {
      const counted = (which: Sql) =>
        sql`(select count(*) from (select 1 as one from searches where ${which} limit ${sql.lit(COUNTED_UP_TO)}) as counted)`
      const counts = await sql<Omit<SearchCounts, 'unsearched'>>`
        select ${counted(sql`asked = 1`)} as ${sql.ref('askedSearches')},
          ${counted(sql`failures > 0 and asked = 1`)} as ${sql.ref('failedSearches')},
          (select ${engine.now()} - search_at from searches where ${isDue(engine, 0)} order by search_at limit 1)
            as ${sql.ref('oldestSearchMs')}`.one(db)
      return { ...counts, unsearched: recentlyUnsearched() }
    },
  }
}

type LeasedRow = Pick<SearchesTable, 'generation' | 'settled_generation' | 'asked' | 'doubted_at'> & {
  store_now: number
}

/**
 * Whether an answer settles the search, and when the next one follows. It may be too early if the platform refuses a token, or
 * shows only what the store has for another business: then it must have been repeated for `SETTLED_AFTER_MS`. A refusal is
 * repeated at the end of that. What was found is being read, so this search comes back soon, after pauses that double.
 */
function judge(
  { settled_generation, doubted_at, store_now }: LeasedRow,
  { generation }: SearchClaim,
  { found, failure, nextInMs }: Extract<SearchFinish, { kind: 'answered' }>,
  isOwn: boolean,
): { isSettled: boolean; nextInMs: number } {
  const isOwed = generation > settled_generation
  const mayBeEarly = isOwed && (failure !== null || (found.length > 0 && !isOwn))
  const doubtedMs = doubted_at === null ? 0 : Math.max(0, store_now - doubted_at)
  if (!mayBeEarly || doubtedMs >= SETTLED_AFTER_MS) return { isSettled: true, nextInMs }
  const againInMs = failure === null ? doubtedMs : SETTLED_AFTER_MS - doubtedMs
  return { isSettled: false, nextInMs: Math.max(MIN_SEARCH_INTERVAL_MS, againInMs) }
}

function asClaim({
  business_uid,
  lease_token,
  by_install,
  generation,
  failures,
}: SearchesTable): SearchClaim {
  return {
    id: business_uid,
    leaseToken: lease_token as string,
    isOfInstall: by_install === 1,
    generation,
    failures,
  }
}

const isDue = ({ now }: Pick<Engine, 'now'>, byInstall: 0 | 1) =>
  sql`by_install = ${sql.lit(byInstall)} and search_at <= ${now()} and lease_token is null`

const hasRunOut = ({ leaseNow }: Pick<Engine, 'leaseNow'>) =>
  sql`(lease_token is not null and ${LEASED.search.dueAt} <= ${leaseNow()})`

const COLUMNS = { business: 'text', at: 'integer' } as const
interface RequestRow {
  business: string
  at: number
}

/**
 * A request of a search. One of a business that has a subscription makes none: the reads of that keep it right. A leased row
 * keeps the end of its lease, and its finish sees the new generation. After a failed try only `refresh` changes anything: the
 * search is owed, and its pause stands, whoever sends installs. An install moves a search into its class only if nobody waits
 * for that.
 */
function requested(
  by: SearchRequest,
  hasSubscription: (business: Sql) => Sql,
  { insertFirst, of }: Given<keyof typeof COLUMNS>,
): Sql {
  const now = sql`excluded.wanted_at`
  const isInstall = by === 'install'
  const isAwaited = sql`(searches.generation > searches.settled_generation or searches.search_at <= ${now})`
  const last = sql`searches.searched_at + ${sql.lit(MIN_SEARCH_INTERVAL_MS)}`
  const soon = sql`case
    when searches.failures > 0 or searches.search_at < ${now} then searches.search_at
    when ${last} > ${now} then ${last}
    else ${now} end`
  const dueAt = {
    question: sql`searches.search_at`,
    refresh: sql`case when searches.search_at < ${now} then searches.search_at else ${now} end`,
    wait: soon,
    install: soon,
  }[by]
  // An overdue one that gets the class of the app's searches is due there from now on: see `leases/look-back.ts`.
  const isNamedNow = isInstall ? sql`1 = 0` : sql`searches.by_install = 1 and searches.search_at < ${now}`
  const times = {
    question: sql`0`,
    refresh: sql`1`,
    wait: sql`case when searches.failures > 0 then 0 else 1 end`,
    install: sql`case when searches.failures > 0 then 0 else 1 end`,
  }[by]
  const [asked, byInstall] = [sql.lit(isInstall ? 0 : 1), sql.lit(isInstall ? 1 : 0)]
  return sql`
    insert into searches
      (business_uid, asked, by_install, search_at, wanted_at, generation, settled_generation, failures)
    ${insertFirst(
      of('business'),
      sql`${of('business')}, ${asked}, ${byInstall}, ${of('now')}, ${of('now')}, 1, 0, 0`,
      sql`not ${hasSubscription(of('business'))}`,
    )}
    on conflict (business_uid) do update set
      asked = ${isInstall ? sql`searches.asked` : sql`1`},
      by_install = ${isInstall ? sql`case when ${isAwaited} then searches.by_install else 1 end` : sql`0`},
      generation = searches.generation + ${times},
      wanted_at = ${
        isInstall
          ? sql`case when searches.generation > searches.settled_generation then searches.wanted_at else ${now} end`
          : now
      },
      ${by === 'refresh' ? sql`failure = null, failures = 0,` : sql``}
      search_at = case when searches.lease_token is not null then searches.search_at
        when ${isNamedNow} then ${now} else ${dueAt} end`
}
