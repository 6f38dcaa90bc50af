import type { Engine } from './schema.js'
import { type Connection, type Sql, sql } from './sql.js'
import { COUNTED_UP_TO, type Retention, type SubscriptionCounts } from './store.js'

/** Subscriptions without a single good read that are kept; far above what an app has open at once. */
const MAX_NEVER_READ = 100_000

/** How far the served are counted where fewer are refused: a million of them are normal, and no news. */
const SERVED_UP_TO = 1_000

/** Failures that are the platform's answer, in the order of texts. */
const REFUSED = ['platform_record_mismatch', 'platform_refused', 'token_refused'] as const

/** The table `subscriptions` as a whole: counted and pruned, always along an index and no further than told. */
export function createSubscriptionUpkeep(engine: Engine, countedUpTo = COUNTED_UP_TO) {
  return {
    /**
     * Deletes subscriptions never read that were given up, or were of another item, long ago; and of those that the
     * platform would not show the oldest when they are too many: made-up identifiers must not fill the table. One that
     * is real comes back with its next event.
     */
    async prune(trx: Connection, retention: Retention): Promise<number> {
      const madeUp = sql`unread > 0 and (failure is not null or refresh_at is null)`
      const tooMany = await sql<{ cutoff: number }>`
        select requested_at as cutoff from subscriptions where ${madeUp}
        order by requested_at desc limit 1 offset ${MAX_NEVER_READ}`.execute(trx)
      const rows = await sql`
        delete from subscriptions where subscription_uid in (
          select subscription_uid from subscriptions where ${madeUp}
            and requested_at <= ${tooMany[0]?.cutoff ?? -1} and lease_token is null
          order by requested_at limit 500
        )
        -- Said again, of the row as it is when it is locked: a read may have been requested meanwhile.
        and ${madeUp} and lease_token is null
        returning subscription_uid`.execute(trx)
      let old = 0
      for (const unread of [1, 2]) old += await pruneOld(trx, unread, retention)
      return rows.length + old
    },

    async counts(db: Connection): Promise<SubscriptionCounts> {
      const upTo = (rows: Sql) =>
        sql`(select count(*) from (select 1 as one from subscriptions where ${rows} limit ${countedUpTo}) as counted)`
      const owed = sql`owed_since is not null and refresh_at is not null`
      const active = sql`unread = 0 and gone is null and state <> 'canceled'`
      const givenUp = sql`refresh_at is null and unread < 2`
      const rows = await sql<Record<Exclude<keyof SubscriptionCounts, 'active'>, number | null>>`
        select
          ${upTo(sql`subscription_uid >= ''`)} as subscriptions,
          ${upTo(owed)} as requested,
          ${engine.now()} - (select min(owed_since) from subscriptions where ${owed}) as ${sql.ref('oldestRequestMs')},
          ${upTo(givenUp)} as ${sql.ref('givenUp')},
          ${upTo(sql`refresh_at is null and unread = 0`)} as ${sql.ref('knownGivenUp')},
          ${upTo(sql`${active} and failure in (${sql.join(REFUSED.map((code) => sql.lit(code)))})`)}
            as refused`.execute(db)
      const { oldestRequestMs, ...rest } = rows[0] as (typeof rows)[0]
      const refused = Number(rest.refused)
      // As far as it takes to see which of the two are more.
      const servedUpTo = Math.max(Math.min(SERVED_UP_TO, countedUpTo), refused)
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

  /** By ranges of the index, so that very many refused are not walked past to count the others. */
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
      ) and refresh_at is null and unread = ${unread}
      returning subscription_uid`.execute(trx)
    return rows.length
  }
}
