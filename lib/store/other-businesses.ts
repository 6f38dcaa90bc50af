import { MINUTE } from '../clock.js'
import type { Engine } from './engine.js'
import { type Connection, type Sql, sql } from './sql.js'
import { MIN_READ_INTERVAL_MS, type OtherBusinesses, type ReadClaim, type ReadOthers } from './store.js'

/** A read fails with another one if it begins to fail at most this long before it. */
const TOGETHER_MS = 10 * MINUTE
/** A subscription is not read again within this time to find out whether the platform shows it. */
const READ_AGAIN_MS = MINUTE
/** After an outage, a subscription that an event named since is read this much later than the others. */
const NAMED_LATER_MS = MINUTE
/** The rows of an index that one comparison reads at most. */
const COMPARED = 1_000

/** The condition of the index `subscriptions_served`: those that the platform shows. */
export const SERVED = sql`unread = 0 and gone is null and state <> 'canceled' and failing_since is null`
/** The part of the index `subscriptions_failing` with those that count as active. */
export const FAILING = sql`failing_since is not null and gone is null`
/** No event says that the business has left, or the platform has shown its subscription long enough after an uninstall. */
const STAYS = sql`end_at is null and (uninstalled_at is null or read_at > uninstalled_at + ${sql.lit(MINUTE)})`

/**
 * Compares all businesses of the store with one whose reads fail, before it counts as ended. The rows show every read of
 * every instance, and each failing read was written before the first conclusion from it.
 */
export function createOtherBusinesses(engine: Pick<Engine, 'now' | 'skipLocked'>) {
  const { now } = engine
  const since = (failingMs: number) => sql`${now()} - ${Math.trunc(failingMs)}`
  const lastRead = sql`not_before - ${sql.lit(MIN_READ_INTERVAL_MS)}`

  function served(failingMs: number) {
    const isLongAgo = sql`(${lastRead} < ${since(failingMs)} or ${lastRead} < ${since(READ_AGAIN_MS)})`
    return { are: sql`${SERVED} and ${STAYS} and ${isLongAgo}`, order: sql`read_at desc`, dueAt: now() }
  }

  function failing(pauseMs: number) {
    const soon = sql`${now()} + case when ${STAYS} and update_at is null then 0 else ${sql.lit(NAMED_LATER_MS)} end`
    const later = sql`${lastRead} + ${pauseMs}`
    const dueAt = sql`(case when ${later} > ${soon} then ${later} else ${soon} end)`
    return { are: FAILING, order: sql`failing_since desc`, dueAt }
  }

  return {
    async compare(
      db: Connection,
      { subscription: { businessUid } }: ReadClaim,
      failingMs: number,
    ): Promise<OtherBusinesses> {
      const from = sql`${since(failingMs + TOGETHER_MS)}`
      const failing = [sql`gone is null`, ...GONE.map((gone) => sql`gone = ${gone}`)].map(
        (is) => sql`select business_uid from subscriptions
          where failing_since is not null and ${is} and failing_since >= ${from}`,
      )
      const served = some(
        sql`select business_uid, case when served_since <= ${since(failingMs)} then 1 else 0 end as is_steady,
          case when created_at <= ${since(failingMs)}
            and served_since > created_at and served_since > ${since(Math.max(failingMs / 2, TOGETHER_MS))}
            then business_uid end as recovered
          from subscriptions where ${SERVED} and read_at >= ${since(failingMs)}`,
      )
      const active = [
        // One that has not failed yet may fail in the same outage, also if an event says that it has left.
        sql`select business_uid, 1 as counts from subscriptions where ${SERVED} order by read_at desc`,
        sql`select business_uid, case when ${STAYS} then 1 else 0 end as counts from subscriptions where ${FAILING}
          order by failing_since desc`,
      ]
      const isOther = sql`business_uid <> ${businessUid}`
      const rows = await sql<Record<'failing' | 'served' | 'recovered' | 'steady' | 'others', number | null>>`
        select
          (select count(distinct business_uid) from ${union(failing)} as failing where ${isOther}) as failing,
          (select count(distinct business_uid) from ${served} as served where ${isOther}) as served,
          (select count(distinct recovered) from ${served} as served where ${isOther}) as recovered,
          (select max(is_steady) from ${served} as served where ${isOther}) as steady,
          (select count(*) from (
            select 1 as one from ${union(active)} as active where ${isOther} and counts = 1 limit 1
          ) as any_other) as others`.execute(db)
      const [found] = rows
      return {
        failing: Number(found?.failing) + 1,
        served: Number(found?.served),
        recovered: Number(found?.recovered),
        isSteady: Number(found?.steady) > 0,
        exist: Number(found?.others) > 0,
      }
    },

    async makeDue(trx: Connection, claim: ReadClaim, options: ReadOthers): Promise<number> {
      const { businessUid } = claim.subscription
      const { are, order, dueAt } =
        options.which === 'served' ? served(options.failingMs) : failing(options.pauseMs)
      const rows = await sql`
        update subscriptions set refresh_at = ${dueAt} where subscription_uid in (
          select subscription_uid from subscriptions
          where ${are} and business_uid <> ${businessUid} and lease_token is null and refresh_at > ${dueAt}
          order by ${order} limit ${options.limit} ${engine.skipLocked}
        ) returning subscription_uid`.execute(trx)
      return rows.length
    },
  }
}

/** Sorted as the index has them. */
const GONE = ['ended', 'missing', 'revoked']

function some(rows: Sql): Sql {
  return sql`(select * from (${rows} limit ${sql.lit(COMPARED)}) as rows_read)`
}

/** Each part reads a bounded range of its index. */
function union(parts: readonly Sql[]): Sql {
  return sql`(${sql.join(
    parts.map(
      (rows, i) => sql`select * from (${rows} limit ${sql.lit(COMPARED)}) as ${sql.ref(`part_${i}`)}`,
    ),
    ' union all ',
  )})`
}
