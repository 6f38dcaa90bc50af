import { DAY, HOUR } from '../../base/clock.js'
import { firstDueOf, LANE_TOPICS } from '../lanes/heads.js'
import { ENTRY_STATUSES, type EntryCounts, HANDLED_FOR_MS, JUDGED_CHANGES } from '../port/journal.js'
import { type Cause, COUNTED_UP_TO } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { asideTopics, IS_ASIDE, isNamedWithin } from './is-handled.js'

/** How many of the newest changes are looked at: few, because each is looked at with its payload. */
const LOOKED_AT = 100
/** A handler that no process has had for so long was removed on purpose. */
const MISSED_FOR_MS = 7 * DAY
/** The text by which a first record is found in the JSON of a change. A record cannot contain it: quotes in texts are escaped. */
const FIRST_RECORD = '","from":null,"to":'

/** Counts of the tables `journal` and `lanes`. No statement reads more rows than it counts. */
export function createEntryCounts(engine: Engine) {
  const topicOfRow = sql.ref('topics.topic')
  /** Whether any process with a handler runs. */
  const isAnyHandled = () =>
    sql`((select max(seen_at) from handlers) >= ${engine.leaseNow()} - ${sql.lit(HANDLED_FOR_MS)})`

  return async function counts(db: Connection): Promise<EntryCounts> {
    const numbers = await sql<Record<'pending' | 'retrying' | 'dead' | 'unrecognised', number>>`
      select
        ${counted(sql`status = 'pending'`)} as pending,
        ${counted(sql`status = 'pending' and attempts > 0`, engine.byIndex('journal_retrying'))} as retrying,
        ${counted(sql`status = 'dead'`)} as dead,
        ${counted(sql`status in (${sql.join(ENTRY_STATUSES.map((each) => sql.lit(each)))}) and kind = 'unrecognised'`)}
          as unrecognised`.one(db)
    return {
      ...numbers,
      oldestPendingMs: await oldestPendingMs(db),
      oldestMissedMs: await oldestMissedMs(db),
      ...(await recentChanges(db)),
    }
  }

  /**
   * Changes that a request found are judged an hour later: a page calls `refresh` before the event of a purchase arrives.
   * Those of a subscription that is new to the store are not: `track` adds it without an event. First records are judged
   * apart, because another event announces them. One without an event was found by a search, and is judged an hour later too.
   */
  async function recentChanges(db: Connection) {
    const week = sql`received_at > ${engine.now()} - ${sql.lit(7 * DAY)}`
    const hourAgo = sql`received_at <= ${engine.now()} - ${sql.lit(HOUR)}`
    const newestOf = (cause: Cause, condition: Sql) => sql`select * from (
      select cause, business_uid, subscription_uid, received_at, seq,
        case when payload like ${sql.lit(`%${FIRST_RECORD}%`)} then 1 else 0 end as is_first
      from journal where cause = ${sql.lit(cause)} and ${condition}
      order by received_at desc, seq desc limit ${sql.lit(LOOKED_AT)}
    ) as ${sql.ref(`${cause}s`)}`
    const rows = await sql<Record<'is_first' | 'recent' | 'unannounced', number>>`
      select is_first, count(*) as recent, sum(is_unannounced) as unannounced from (
        select is_first, min(case when cause <> 'event' and not exists (
          select 1 from journal where journal.subscription_uid = changes.subscription_uid and kind = 'event'
            and journal.received_at between changes.received_at and changes.received_at + ${sql.lit(HOUR)}
        ) then 1 else 0 end) as is_unannounced
        from (
          select *, row_number() over (partition by is_first order by received_at desc, seq desc) as place from (
            select * from (
              ${newestOf('event', week)} union all
              ${newestOf('reconcile', week)} union all
              ${newestOf('request', sql`${week} and ${hourAgo}`)}
            ) as newest
            where (cause <> 'request' or not exists (
              select 1 from subscriptions where subscriptions.subscription_uid = newest.subscription_uid
                and created_at > newest.received_at - ${sql.lit(HOUR)}
            )) and (cause <> 'reconcile' or is_first = 0 or ${hourAgo})
            order by received_at desc, seq desc limit ${sql.lit(LOOKED_AT)}
          ) as looked_at
        ) as changes
        where place <= ${sql.lit(JUDGED_CHANGES)}
        group by is_first, business_uid, received_at / ${sql.lit(HOUR)}
      ) as together group by is_first`.execute(db)
    const [later, first] = [0, 1].map((isFirst) => rows.find((row) => row.is_first === isFirst))
    return {
      recentChanges: later?.recent ?? 0,
      unannouncedChanges: later?.unannounced ?? 0,
      recentFirstRecords: first?.recent ?? 0,
      unannouncedFirstRecords: first?.unannounced ?? 0,
    }
  }

  /**
   * How long the lane that is longest due has been due, among those that a process handles; or, while no process handles
   * anything, among those that one handled within the last week. A leased one is due again when its lease runs out, which
   * is a time of leases. The lease of a topic that no process handles may have run out: nobody can take it up.
   */
  async function oldestPendingMs(db: Connection): Promise<number | null> {
    const isExpected = (topic: Sql) => sql`(${isNamedWithin(engine, topic)}
      or (${isNamedWithin(engine, topic, MISSED_FOR_MS)} and not ${isAnyHandled()}))`
    const { age } = await sql<{ age: number | null }>`
      with recursive ${LANE_TOPICS}
      select max(age) as age from (
        select ${engine.now()} - ${firstDueOf(sql`lease_token is null`)} as age from topics
        where topic is not null and ${isExpected(topicOfRow)}
        union all
        select ${engine.leaseNow()} - (
          select due_at from lanes where lease_token is not null and ${isExpected(sql.ref('lanes.topic'))}
          order by due_at limit 1
        ) as age
      ) as ages where age >= 0`.one(db)
    return age
  }

  /** How long the oldest entry has waited whose handler a process had within the last week, and no process has now. */
  async function oldestMissedMs(db: Connection): Promise<number | null> {
    const isMissed = sql`topic is not null and ${isAnyHandled()}
      and ${isNamedWithin(engine, topicOfRow, MISSED_FOR_MS)} and not (${isNamedWithin(engine, topicOfRow)})`
    const inLanes = await sql<{ age: number | null }>`
      with recursive ${LANE_TOPICS}
      select ${engine.now()} - min(${firstDueOf(sql`lease_token is null`)}) as age from topics where ${isMissed}`.one(
      db,
    )
    const aside = await sql<{ age: number | null }>`
      with recursive ${asideTopics(engine)}
      select ${engine.now()} - min((
        select settled_at from journal ${engine.byIndex('journal_aside')}
        where ${IS_ASIDE} and journal.topic = topics.topic order by seq limit 1
      )) as age from topics where ${isMissed}`.one(db)
    const ages = [inLanes, aside].flatMap(({ age }) => (age === null || age < 0 ? [] : age))
    return ages.length === 0 ? null : Math.max(...ages)
  }
}

function counted(condition: Sql, byIndex = sql``): Sql {
  return sql`(select count(*) from (select 1 from journal ${byIndex} where ${condition} limit ${COUNTED_UP_TO}) as counted)`
}
