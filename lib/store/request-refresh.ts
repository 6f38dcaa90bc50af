import type { Given, Script } from './dialect.js'
import type { Engine } from './engine.js'
import {
  BUSINESS_COLUMNS,
  KNOWN_COLUMNS,
  mergeRequests,
  NAMED_COLUMNS,
  type NamedRow,
  type Requested,
} from './merge-requests.js'
import { dueAfterRequest, urgencyAfterRequest } from './request-sql.js'
import { answered, prepare, prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'

/** Refresh requests: each adds to the generation of a row, and makes it due as soon as its pause allows a read. */
export function createRefreshRequests(engine: Engine) {
  const requestNamed = prepareInsert(engine, NAMED_COLUMNS, named)
  const requestUsual = prepare(engine, NAMED_COLUMNS, usual)
  const requestKnown = prepare(engine, KNOWN_COLUMNS, known)
  const requestBusinesses = prepare(engine, BUSINESS_COLUMNS, businesses)
  const lock = prepare(engine, { uid: 'text', business: 'text' }, locked)

  return {
    /** Writes requests: a statement for each kind of request. */
    *request(requests: readonly Requested[]): Script {
      const { named, known, businesses } = mergeRequests(requests)
      // The statements run one after the other, so two batches could each wait for rows that the other has changed.
      if (engine.holdNames && known.length + businesses.length > 0)
        yield lock([
          ...[...named, ...known].map(({ uid }) => ({ uid, business: null })),
          ...businesses.map(({ business }) => ({ uid: null, business })),
        ])
      const unusual = yield* allButUsual(named)
      if (unusual.length > 0) yield requestNamed(unusual)
      if (known.length > 0) yield requestKnown(known)
      if (businesses.length > 0) yield requestBusinesses(businesses)
    },

    /** Requests a read of one batch of subscriptions of another item, where the item is now one of these. Returns how many. */
    async adopt(trx: Connection, purchasableUids: readonly string[]): Promise<number> {
      const ours =
        purchasableUids.length === 0 ? sql`` : sql`and purchasable_uid in (${sql.join([...purchasableUids])})`
      const rows = await sql`
        update subscriptions set
          generation = 1, requested_at = ${engine.now()}, owed_since = ${engine.now()},
          refresh_at = ${engine.now()}, urgency = 1, unread = 1
        where subscription_uid in (
          select subscription_uid from subscriptions where unread = 2 ${ours} limit 500
        ) and unread = 2
        returning subscription_uid`.execute(trx)
      return rows.length
    },
  }

  /**
   * Writes the usual requests, which are nearly all: those that name a subscription as the store has it. Returns the
   * others. SQLite rewrites the entries of every index that has a column of the update, changed or not, so these get a
   * statement that names few columns.
   */
  function* allButUsual(rows: readonly NamedRow[]): Script<readonly NamedRow[]> {
    if (!engine.rewritesIndexes || rows.length === 0) return rows
    const updated = yield* answered<{ uid: string }>(requestUsual(rows))
    if (updated.length === 0) return rows
    const uids = new Set(updated.map(({ uid }) => uid))
    return rows.filter(({ uid }) => !uids.has(uid))
  }

  function usual({ of }: Given<keyof typeof NAMED_COLUMNS>) {
    return sql`
      update subscriptions set
        generation = generation + ${of('times')}, requested_at = ${of('now')},
        owed_since = coalesce(owed_since, ${of('now')}),
        urgency = ${urgencyAfterRequest(sql`case when ${of('event')} = 1 then unread else 2 end`)},
        quiet_until_read = case when ${of('quiet')} = 1 and unread = 1 then quiet_until_read else 0 end,
        refresh_at = ${dueAfterRequest(of('now'))}
      where subscription_uid = ${of('uid')} and business_uid = ${of('business')}
        and unread < 2 and failure is null and ${of('other')} = 0
      returning subscription_uid as uid`
  }

  function locked({ table }: Given) {
    return sql`
      with given as materialized (select * from ${table} as rows)
      select subscription_uid from subscriptions where subscription_uid in (
        select uid from given where uid is not null
        union
        select subscription_uid from given join subscriptions on business_uid = business
      ) order by subscription_uid ${engine.forUpdate}`
  }

  /**
   * The first request decides the business of a subscription. A later request with another business makes that one the
   * candidate, which a read tries when the first does not show the subscription. So a forged event costs a read and no
   * more. For a row of another item (`unread` = 2) the business is not decided yet.
   */
  function named({ insert, of }: Given<keyof typeof NAMED_COLUMNS>) {
    // A request for another item makes no row due that nothing has requested.
    const isOther = sql`subscriptions.generation + excluded.generation = 0`
    const isFirst = sql`subscriptions.unread = 2`
    return sql`
      insert into subscriptions
        (subscription_uid, business_uid, purchasable_uid, generation, settled_generation, requested_at, owed_since,
          refresh_at, urgency, unread, verifying, lapses, quiet_until_read, created_at)
      ${insert(sql`${of('uid')}, ${of('business')}, ${of('purchasable')}, ${of('times')} * (1 - ${of('other')}), 0,
        ${of('now')}, case when ${of('other')} = 0 then ${of('now')} end, case when ${of('other')} = 0 then ${of('now')} end,
        case when ${of('event')} = 1 then 1 else 2 end, 1 + ${of('other')}, 0, 0, ${of('quiet')}, ${of('now')}`)}
      on conflict (subscription_uid) do update set
        generation = subscriptions.generation +
          case when ${isFirst} or excluded.generation > 0 then excluded.generation else 1 end,
        requested_at = excluded.requested_at,
        owed_since = case when not (${isOther}) then coalesce(subscriptions.owed_since, excluded.requested_at) end,
        failure = null,
        -- Quiet only while every request was: an earlier one may want the change, and a subscription read before has one.
        quiet_until_read = case when excluded.quiet_until_read = 1 and
          (${isFirst} or (subscriptions.unread = 1 and subscriptions.quiet_until_read = 1)) then 1 else 0 end,
        unread = case when subscriptions.unread = 2 and excluded.unread = 1 then 1 else subscriptions.unread end,
        urgency = ${urgencyAfterRequest(sql`case when excluded.urgency = 1 and subscriptions.unread = 0 then 0 else excluded.urgency end`)},
        refresh_at = case when not (${isOther}) then ${dueAfterRequest(sql`excluded.requested_at`)} end,
        business_uid = case when ${isFirst} then excluded.business_uid else subscriptions.business_uid end,
        purchasable_uid = case when ${isFirst} then excluded.purchasable_uid else subscriptions.purchasable_uid end,
        candidate_business_uid = case
          when not (${isFirst}) and excluded.business_uid <> subscriptions.business_uid then excluded.business_uid
          else subscriptions.candidate_business_uid end`
  }

  function known({ table }: Given) {
    return sql`
      update subscriptions set
        generation = subscriptions.generation + given.times, requested_at = given.now, failure = null,
        owed_since = coalesce(subscriptions.owed_since, given.now),
        urgency = ${urgencyAfterRequest(urgencyOfSource)},
        quiet_until_read = ${quietAfterRequest},
        refresh_at = ${dueAfterRequest(sql`given.now`)}
      from ${table} as given
      where subscriptions.subscription_uid = given.uid and subscriptions.unread < 2`
  }

  function businesses({ table }: Given) {
    const isLast = sql`given.installed is not null
      and (subscriptions.install_at is null or given.at >= subscriptions.install_at)`
    return sql`
      update subscriptions set
        generation = subscriptions.generation + given.times, requested_at = given.now, failure = null,
        owed_since = coalesce(subscriptions.owed_since, given.now),
        urgency = ${urgencyAfterRequest(urgencyOfSource)},
        quiet_until_read = ${quietAfterRequest},
        refresh_at = ${dueAfterRequest(sql`given.now`)},
        uninstalled_at = case when not (${isLast}) then subscriptions.uninstalled_at
          when given.installed = 0 then given.now end,
        install_at = case when ${isLast} then given.at else subscriptions.install_at end
      from (
        select business, installed, times, event, now, case when at > now then now else at end as at
        from ${table} as given
      ) as given
      where subscriptions.business_uid = given.business and subscriptions.unread < 2`
  }
}

/** The urgency by the source of the request: for an event 0, or 1 if never read; for `track` and `refresh` 2. */
const urgencyOfSource = sql`case when given.event = 0 then 2 else subscriptions.unread end`
/** A change that an event announces is written, even if an earlier request for the first read was quiet. */
const quietAfterRequest = sql`case when given.event = 1 then 0 else subscriptions.quiet_until_read end`

export type RefreshRequests = ReturnType<typeof createRefreshRequests>
