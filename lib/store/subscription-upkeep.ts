import type { Engine } from './engine.js'
import { type Connection, type Sql, sql } from './sql.js'
import { COUNTED_UP_TO, type Retention, type SubscriptionCounts } from './store.js'

/** The most subscriptions that were never read successfully and failed or were given up: far more than an app has at once. */
const MAX_NEVER_READ = 100_000

/** Subscriptions, and active ones, are counted up to this: a higher count is normal, and no news. */
const NORMAL_UP_TO = 1_000

/** Failures by which the platform refuses a read, sorted as texts. */
const REFUSED = ['platform_record_mismatch', 'platform_refused', 'token_refused'] as const

/** Counts and prunes the table `subscriptions`, each along an index and up to a limit. */
export function createSubscriptionUpkeep(engine: Engine, countedUpTo = COUNTED_UP_TO) {
  return {
    /**
     * Deletes subscriptions that were never read: those given up, or of another item, whose retention has ended; and the
     * oldest of those that failed or were given up, when they are more than `MAX_NEVER_READ`. So forged identifiers do
     * not fill the table. A real subscription returns with its next event.
     */
    async prune(trx: Connection, retention: Retention): Promise<number> {
      const unconfirmed = sql`unread > 0 and (failure is not null or refresh_at is null)`
      const tooMany = await sql<{ cutoff: number }>`
        select requested_at as cutoff from subscriptions where ${unconfirmed}
        order by requested_at desc limit 1 offset ${MAX_NEVER_READ}`.execute(trx)
      const rows = await sql`
        delete from subscriptions where subscription_uid in (
          select subscription_uid from subscriptions where ${unconfirmed}
            and requested_at <= ${tooMany[0]?.cutoff ?? -1} and lease_token is null
          order by requested_at limit 500
        )
        -- Repeated for the row as it is when locked: a request may have come meanwhile.
        and ${sql.still(sql`${unconfirmed} and lease_token is null`)}
        returning subscription_uid`.execute(trx)
      let old = 0
      for (const unread of [1, 2]) old += await pruneOld(trx, unread, retention)
      return rows.length + old
    },

    async counts(db: Connection): Promise<SubscriptionCounts> {
      const normalUpTo = Math.min(NORMAL_UP_TO, countedUpTo)
      const upTo = (rows: Sql, most = countedUpTo, among = sql`subscriptions`) =>
        sql`(select count(*) from (select 1 as one from ${among} where ${rows} limit ${most}) as counted)`
      const owed = sql`owed_since is not null and refresh_at is not null`
      const byOwed = sql`subscriptions ${engine.byIndex('subscriptions_owed')}`
      const active = sql`unread = 0 and gone is null and state <> 'canceled'`
      const givenUp = sql`refresh_at is null and unread < 2`
      const rows = await sql<Record<Exclude<keyof SubscriptionCounts, 'active'>, number | null>>`
        select
          ${upTo(sql`subscription_uid >= ''`, normalUpTo)} as subscriptions,
          ${upTo(owed, countedUpTo, byOwed)} as requested,
          ${engine.now()} - (select min(owed_since) from ${byOwed} where ${owed}) as ${sql.ref('oldestRequestMs')},
          ${upTo(givenUp)} as ${sql.ref('givenUp')},
          ${upTo(sql`refresh_at is null and unread = 0`)} as ${sql.ref('knownGivenUp')},
          ${upTo(sql`${active} and failure in (${sql.join(REFUSED.map((code) => sql.lit(code)))})`)}
            as refused`.execute(db)
      const { oldestRequestMs, ...rest } = rows[0] as (typeof rows)[0]
      const refused = Number(rest.refused)
      // Far enough to compare the two.
      const servedUpTo = Math.max(normalUpTo, refused)
      const served = await sql<{ count: number }>`
        select count(*) as count from (
          select one from (${notRefused(active, servedUpTo)}) as ranges limit ${servedUpTo}
        ) as counted`.execute(db)
      const counts = { ...rest, active: Number(served[0]?.count) + refused }
      const numbers = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]))
      const age = oldestRequestMs === null ? null : Math.max(0, Number(oldestRequestMs))
      return { ...(numbers as Omit<SubscriptionCounts, 'oldestRequestMs'>), oldestRequestMs: age }
    },
  }

  /** The active rows that are not refused, as ranges of the index that leave the refused ones out. */
  function notRefused(active: Sql, limit: number) {
    const [first, second, third] = REFUSED.map((code) => sql.lit(code))
    const ranges = [
      sql`failure is null`,
      sql`failure < ${first}`,
      sql`failure > ${first} and failure < ${second}`,
      sql`failure > ${second} and failure < ${third}`,
      sql`failure > ${third}`,
    ].map((range, i) => {
      const rows = sql`select 1 as one from subscriptions where ${active} and ${range} limit ${limit}`
      return sql`select * from (${rows}) as ${sql.ref(`range_${i}`)}`
    })
    return sql.join(ranges, ' union all ')
  }

  async function pruneOld(trx: Connection, unread: number, { deadMs }: Retention): Promise<number> {
    const rows = await sql`
      delete from subscriptions where subscription_uid in (
        select subscription_uid from subscriptions
        where refresh_at is null and unread = ${unread} and requested_at < ${engine.now()} - ${deadMs}
        order by requested_at limit 500
      ) and ${sql.still(sql`refresh_at is null and unread = ${unread}`)}
      returning subscription_uid`.execute(trx)
    return rows.length
  }
}
