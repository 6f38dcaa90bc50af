import { DAY, MINUTE } from '../../base/clock.js'
import { REFUSALS } from '../../base/errors.js'
import {
  MAX_LAPSES,
  MIN_READ_INTERVAL_MS,
  type OtherBusinesses,
  type ReadClaim,
  type ReadOthers,
} from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { IS_FREE } from './subscriptions.js'

/** A read fails with another one if it begins to fail at most this long before it. */
const TOGETHER_MS = 10 * MINUTE
/** Regular reads find an outage one business after the other, the last one about a day later. */
const LATELY_MS = DAY
/** Subscriptions that ended without an event are read again, for this long, when another one comes back. */
const ENDED_MS = 4 * DAY
/** The count of subscriptions that no read has tested since the failure ends at this number. */
const UNTESTED_COUNTED = 20
/** After an outage, a subscription that an event named since is read this much later than the others. */
const NAMED_LATER_MS = MINUTE
/** The rows of an index that one comparison reads at most. */
const COMPARED = 1_000

/** Neither ended nor over, nor a purchase of another item, which counts neither as served nor as failing. */
const IS_ACTIVE = sql`gone is null and state is not null and not ${isOver(sql`state`, sql`entitles`)}`
/** The condition of the index `subscriptions_served`: those that the platform shows. */
export const SERVED = sql`unread = 0 and ${IS_ACTIVE} and failing_since is null`
/** The part of the index `subscriptions_failing` with those that count as active. */
export const FAILING = sql`failing_since is not null and ${IS_ACTIVE}`
/** The condition of a business that stays: no event announced its end, or a read after the uninstall still found the record. */
const STAYS = sql`end_at is null and (uninstalled_at is null or read_at > uninstalled_at + ${sql.lit(MINUTE)})`

/**
 * A well subscription: served, with no announced end, and with a good last read. The next read of one tests the platform,
 * but not while it is put off because its reads end the process.
 */
const UNTESTED = sql`${SERVED} and ${STAYS} and failure is null and lapses < ${sql.lit(MAX_LAPSES)}`
/** The condition of the index `subscriptions_made_up`. Anybody who knows the delivery secret can add rows to it. */
export const NEVER_READ = sql`unread > 0 and (failure is not null or refresh_at is null)`
/** The platform has said that it does not show the subscription, and no verification of that is left. */
export const IS_DENIED = sql`${NEVER_READ} and (refresh_at is null or (verifying = 0 and failure in (${sql.join(
  REFUSALS.map((code) => sql.lit(code)),
)})))`
/** The platform has not shown it, and that is not a definite no yet. */
const UNDECIDED = sql`${NEVER_READ} and failure is not null and verifying = 1`
/** No event has announced an end or an update. */
const SILENT = sql`update_at is null and end_at is null and uninstalled_at is null`

/**
 * Compares all businesses of the store with one whose reads fail, before it counts as ended. The rows show every read of
 * every instance, and each failing read was written before the first conclusion from it.
 */
export function createOtherBusinesses(engine: Pick<Engine, 'now' | 'skipLocked'>) {
  const since = (failingMs: number) => sql`${engine.now()} - ${Math.trunc(failingMs)}`
  const lastRead = sql`not_before - ${sql.lit(MIN_READ_INTERVAL_MS)}`

  function served(untestedForMs: number): Part[] {
    const are = sql`${UNTESTED} and ${lastRead} < ${since(untestedForMs)}`
    return [{ are, order: sql`read_at`, dueAt: engine.now() }]
  }

  function failing(pauseMs: number): Part[] {
    const later = sql`${lastRead} + ${pauseMs}`
    const latest = (time: Sql) => sql`(case when ${later} > ${time} then ${later} else ${time} end)`
    const named = sql`${engine.now()} + ${sql.lit(NAMED_LATER_MS)}`
    const ended = GONE.map(
      (gone) =>
        sql`failing_since is not null and gone = ${gone} and failing_since >= ${since(ENDED_MS)} and ${SILENT}`,
    )
    const known = [FAILING, ...ended].map((are) => ({
      are,
      order: sql`failing_since desc`,
      dueAt: latest(sql`case when ${STAYS} and update_at is null then ${engine.now()} else ${named} end`),
    }))
    // Customers who bought meanwhile. Forged ones are among them, so they come last. Once others are served, the next
    // read after the verifications makes their no definite, so each is read early only once or twice.
    const newest = sql`requested_at >= coalesce((
      select requested_at from subscriptions where ${NEVER_READ} order by requested_at desc
      limit 1 offset ${sql.lit(COMPARED)}), 0)`
    const bought = {
      are: sql`${UNDECIDED} and ${newest}`,
      order: sql`requested_at desc`,
      dueAt: latest(named),
    }
    return [...known, bought]
  }

  return {
    async compare(
      db: Connection,
      { subscription: { businessUid }, uninstalledAt, endAt }: ReadClaim,
      failingMs: number,
    ): Promise<OtherBusinesses> {
      const failingFrom = (ms: number, which = sql``) =>
        [IS_ACTIVE, ...GONE.map((gone) => sql`gone = ${gone}`)].map(
          (is) => sql`select business_uid, failing_since from subscriptions
            where failing_since is not null and ${is} and failing_since >= ${since(ms)} ${which}`,
        )
      const failing = failingFrom(failingMs + TOGETHER_MS)
      const lately = failingFrom(LATELY_MS, sql`and ${SILENT}`)
      const servedLately = some(
        sql`select business_uid from subscriptions
          where ${SERVED} and read_at >= (select min(failing_since) from ${union(lately)} as lately)`,
      )
      const isAnnounced = uninstalledAt !== null || endAt !== null
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
      const ofLately = isAnnounced
        ? sql`0 as failing_lately, 0 as served_lately`
        : sql`
          (select count(distinct business_uid) from ${union(lately)} as lately where ${isOther}) + 1 as failing_lately,
          (select count(distinct business_uid) from ${servedLately} as served where ${isOther}) as served_lately`
      const found = await sql<Counts>`
        select ${ofLately},
          (select count(distinct business_uid) from (
            select business_uid from subscriptions
            where ${UNTESTED} and read_at < ${since(failingMs)} and ${isOther} limit ${sql.lit(UNTESTED_COUNTED)}
          ) as untested) as untested,
          (select count(distinct business_uid) from ${union(failing)} as failing where ${isOther}) as failing,
          (select count(distinct business_uid) from ${served} as served where ${isOther}) as served,
          (select count(distinct recovered) from ${served} as served where ${isOther}) as recovered,
          (select max(is_steady) from ${served} as served where ${isOther}) as steady,
          (select count(*) from (
            select 1 as one from ${union(active)} as active where ${isOther} and counts = 1 limit 1
          ) as any_other) as others`.one(db)
      return {
        failing: found.failing + 1,
        served: found.served,
        recovered: found.recovered,
        untested: found.untested,
        lately: { failing: found.failing_lately, served: found.served_lately },
        isSteady: found.steady === 1,
        exist: found.others > 0,
      }
    },

    async makeDue(trx: Connection, claim: ReadClaim, options: ReadOthers): Promise<number> {
      const { businessUid } = claim.subscription
      const { limit } = options
      const parts = options.which === 'served' ? served(options.untestedForMs) : failing(options.pauseMs)
      let made = 0
      for (const { are, order, dueAt } of parts) {
        const rows = await sql`
          update subscriptions set refresh_at = ${dueAt} where subscription_uid in (
            select subscription_uid from subscriptions
            where ${are} and business_uid <> ${businessUid} and ${IS_FREE} and refresh_at > ${dueAt}
            order by ${order} limit ${limit - made} ${engine.skipLocked}
          ) returning subscription_uid`.execute(trx)
        made += rows.length
        if (made >= limit) break
      }
      return made
    },
  }
}

/** The subscriptions of an index that become due, in this order, unless they are due earlier. */
interface Part {
  are: Sql
  order: Sql
  dueAt: Sql
}

type Counts = Record<
  'failing' | 'served' | 'recovered' | 'others' | 'untested' | 'failing_lately' | 'served_lately',
  number
> & { steady: 0 | 1 | null }

/** Whether a subscription in this state has nothing to lose: it is canceled, and gives no access by the app's rule either. */
export function isOver(state: Sql, entitles: Sql): Sql {
  return sql`(${state} = 'canceled' and ${entitles} = 0)`
}

/** The values of `gone`, in the order of the index. */
const GONE = ['ended', 'missing', 'revoked']

function some(rows: Sql): Sql {
  return sql`(select * from (${rows} limit ${sql.lit(COMPARED)}) as rows_read)`
}

/** All rows of the parts, each of which reads a bounded range of its index. */
function union(parts: readonly Sql[]): Sql {
  return sql`(${sql.join(
    parts.map(
      (rows, i) => sql`select * from (${rows} limit ${sql.lit(COMPARED)}) as ${sql.ref(`part_${i}`)}`,
    ),
    ' union all ',
  )})`
}
