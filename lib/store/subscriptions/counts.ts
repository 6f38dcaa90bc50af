import { HOUR, MINUTE } from '../../base/clock.js'
import { REFUSALS } from '../../base/errors.js'
import { COUNTED_UP_TO, MAX_LAPSES, type SubscriptionCounts, URGENCY } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { FAILING, NEVER_READ, SERVED } from './other-businesses.js'

/** The counts of all and of active subscriptions end at this number, because a higher one is not a sign of a problem. */
const NORMAL_UP_TO = 1_000

/** The earliest due time of each class, from the first row of each in the index `subscriptions_due`. */
const EARLIEST_OF_CLASSES = sql.join(
  Object.values(URGENCY).map(
    (urgency) => sql`select min(refresh_at) as due from subscriptions
      where urgency = ${sql.lit(urgency)} and refresh_at is not null`,
  ),
  ' union all ',
)

/** Counts of the table `subscriptions`, each along an index and up to a limit. */
export function createSubscriptionCounts(engine: Engine, countedUpTo = COUNTED_UP_TO) {
  return async function counts(
    db: Connection,
    maxStaleMs = Number.MAX_SAFE_INTEGER,
  ): Promise<SubscriptionCounts> {
    const normalUpTo = Math.min(NORMAL_UP_TO, countedUpTo)
    const upTo = (rows: Sql, most = countedUpTo, among = sql`subscriptions`) =>
      sql`(select count(*) from (select 1 as one from ${among} where ${rows} limit ${most}) as counted)`
    const owed = sql`owed_since is not null and refresh_at is not null`
    const byOwed = sql`subscriptions ${engine.byIndex('subscriptions_owed')}`
    const givenUp = sql`refresh_at is null`
    const { oldestRequestMs, ...counts } = await sql<
      Omit<SubscriptionCounts, keyof BusinessCounts | 'oldestOverdueMs'>
    >`
      select
        ${upTo(sql`subscription_uid >= ''`, normalUpTo)} as subscriptions,
        ${upTo(owed, countedUpTo, byOwed)} as requested,
        ${engine.now()} - (select min(owed_since) from ${byOwed} where ${owed}) as ${sql.ref('oldestRequestMs')},
        ${upTo(givenUp)} as ${sql.ref('givenUp')},
        ${upTo(sql`refresh_at is null and unread = 0`)} as ${sql.ref('knownGivenUp')},
        ${upTo(sql`suspect = 1 and lapses >= ${sql.lit(MAX_LAPSES)} and lease_token is null`)} as lapsed`.one(
      db,
    )
    return {
      ...counts,
      oldestRequestMs: oldestRequestMs === null ? null : Math.max(0, oldestRequestMs),
      oldestOverdueMs: await oldestOverdueMs(db),
      ...(await businessCounts(engine, db, { countedUpTo, normalUpTo, maxStaleMs })),
    }
  }

  async function oldestOverdueMs(db: Connection): Promise<number | null> {
    const { age } = await sql<{ age: number | null }>`
      select ${engine.now()} - min(due) as age from (${EARLIEST_OF_CLASSES}) as first`.one(db)
    return age === null || age < 0 ? null : age
  }
}

type BusinessCounts = Pick<
  SubscriptionCounts,
  | 'active'
  | 'refused'
  | 'hidden'
  | 'withoutToken'
  | 'leaving'
  | 'refusedLately'
  | 'servedMeanwhile'
  | 'stale'
  | 'confirmed'
>

type RefusedCounts = Pick<BusinessCounts, 'refused' | 'hidden' | 'withoutToken' | 'leaving' | 'stale'>

/** A business whose end was announced counts as leaving for this long. After that it counts as refused only. */
const END_AWAITED_MS = 2 * HOUR
/** A record that is missing for less than this may be the end of one business, which is awaited too. */
const MISSING_AWAITED_MS = 2 * MINUTE
/** Failures of this time are judged apart, because reading a thousand businesses again takes a day. */
const LATELY_MS = 10 * MINUTE
/** Of the subscriptions that were never read, anybody with the delivery secret adds some, so only the newest count. */
const NEWEST_COUNTED = 1_000

/**
 * How many businesses the platform serves, how many it refuses, and how many answers are stale: each count reads a bounded
 * part of an index.
 */
async function businessCounts(
  engine: Pick<Engine, 'now'>,
  db: Connection,
  { countedUpTo, normalUpTo, maxStaleMs }: { countedUpTo: number; normalUpTo: number; maxStaleMs: number },
): Promise<BusinessCounts> {
  const since = (ms: number) => sql`failing_since >= ${engine.now()} - ${sql.lit(ms)}`
  const isAnnounced = sql`uninstalled_at is not null or end_at is not null or update_at is not null`
  const isAwaited = sql`((${isAnnounced}) and ${since(END_AWAITED_MS)})
    or (failure = 'platform_record_missing' and ${since(MISSING_AWAITED_MS)})`
  const confirmedSince = sql`${engine.now()} - ${maxStaleMs}`
  const refused = await count(
    db,
    sql`select business_uid, failure, case when ${isAwaited} then 1 else 0 end as is_leaving,
        case when read_at < ${confirmedSince} then 1 else 0 end as is_stale
      from subscriptions where ${FAILING} limit ${countedUpTo}`,
  )
  const active = (await served(db, Math.max(normalUpTo, refused.refused))) + refused.refused
  if (active === 0) return await ofNeverRead(db)
  const stale = (await served(db, countedUpTo, sql`and read_at < ${confirmedSince}`)) + refused.stale
  const confirmed =
    stale === 0
      ? 0
      : (await served(db, normalUpTo, sql`and read_at >= ${confirmedSince}`)) +
        refused.refused -
        refused.stale
  const lately = sql`select business_uid, failing_since from subscriptions
    where ${FAILING} and ${since(LATELY_MS)} and case when ${isAwaited} then 1 else 0 end = 0 limit ${countedUpTo}`
  return { ...refused, active, stale, confirmed, ...(await sinceTheFirst(db, lately, normalUpTo)) }
}

/** How many businesses the platform shows. `andWhen`: a condition on `read_at`. */
async function served(db: Connection, upTo: number, andWhen = sql``): Promise<number> {
  const { count } = await sql<{ count: number }>`
    select count(distinct business_uid) as count from (
      select business_uid from subscriptions where ${SERVED} ${andWhen} limit ${upTo}
    ) as served`.one(db)
  return count
}

/** How many of these businesses there are, and how many others the platform has shown since the first of them failed. */
async function sinceTheFirst(
  db: Connection,
  refused: Sql,
  upTo: number,
): Promise<Pick<BusinessCounts, 'refusedLately' | 'servedMeanwhile'>> {
  const { count, first } = await sql<{ count: number; first: number | null }>`
    select count(distinct business_uid) as count, min(failing_since) as first from (${refused}) as refused`.one(
    db,
  )
  if (first === null) return { refusedLately: 0, servedMeanwhile: 0 }
  const servedMeanwhile = await served(db, Math.max(upTo, count), sql`and read_at >= ${first}`)
  return { refusedLately: count, servedMeanwhile }
}

/** The counts before the first customer: whether the platform refuses whatever events have named. */
async function ofNeverRead(db: Connection): Promise<BusinessCounts> {
  const answered = sql`select business_uid, failure, 0 as is_leaving, 0 as is_stale from (
      select business_uid, failure, unread from subscriptions
      where ${NEVER_READ}
      order by requested_at desc limit ${sql.lit(NEWEST_COUNTED)}
    ) as newest
    where unread = 1 and failure in (${sql.join(REFUSALS.map((code) => sql.lit(code)))})`
  const { refused: active, hidden, ...counts } = await count(db, answered)
  // The platform shows no subscription to whoever asks for one that does not exist: that is no refusal.
  return {
    ...{ ...counts, active, refused: active - hidden, hidden: 0 },
    ...{ refusedLately: 0, servedMeanwhile: 0, confirmed: 0 },
  }
}

function count(db: Connection, rows: Sql): Promise<RefusedCounts> {
  return sql<RefusedCounts>`
    select
      count(*) as refused,
      coalesce(sum(is_hidden), 0) as hidden,
      coalesce(sum(without_token), 0) as ${sql.ref('withoutToken')},
      coalesce(sum(is_leaving), 0) as leaving,
      coalesce(sum(is_stale), 0) as stale
    from (
      select business_uid,
        min(case when failure = 'platform_record_missing' then 1 else 0 end) as is_hidden,
        max(case when failure = 'token_refused' then 1 else 0 end) as without_token,
        min(is_leaving) as is_leaving,
        min(is_stale) as is_stale
      from (${rows}) as answered group by business_uid
    ) as businesses`.one(db)
}
