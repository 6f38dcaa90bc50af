import { CAUSES, MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS, URGENCY } from '../port/store.js'
import type { Given, Write } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { type Sql, sql } from '../sql/sql.js'
import { prepare, type RowOf } from '../sql/writes.js'
import {
  BUSINESS_COLUMNS,
  DATE_TOLERANCE_MS,
  mergeRequests,
  NAMED_COLUMNS,
  RECORD_COLUMNS,
  type Requested,
  STORED_COLUMNS,
} from './merge-requests.js'
import { IS_FREE, someOfBusiness } from './subscriptions.js'

export type RefreshRequests = ReturnType<typeof createRefreshRequests>

/** Refresh requests: each adds to the generation of a row, and makes it due as soon as its pause allows a read. */
export function createRefreshRequests(engine: Engine) {
  const requestNamed = prepare(engine, NAMED_COLUMNS, named, { keepsPlan: true })
  const requestStored = prepare(engine, STORED_COLUMNS, (given) => stored(engine, given))
  const requestBusinesses = prepare(engine, BUSINESS_COLUMNS, (given) => businesses(engine, given))
  const announceRecords = prepare(engine, RECORD_COLUMNS, announced)
  const hold = prepare(engine, HELD_COLUMNS, (given) => held(engine, given))

  return {
    /** The writes of requests: for each round one for each kind of request. */
    request(requests: readonly Requested[]): Write[] {
      const { rounds, records } = mergeRequests(requests, Math.floor(engine.clock.now()))
      const writes: Write[] = []
      // Statements of these kinds skip rows that others have locked, or lock theirs in any order.
      const isHoldNeeded =
        records.length > 0 || rounds.some(({ stored, businesses }) => stored.length + businesses.length > 0)
      if (engine.holdNames && isHoldNeeded) writes.push(hold(heldRows(rounds, records)))
      for (const { named, stored, businesses } of rounds) {
        if (named.length > 0) writes.push(requestNamed(named))
        if (stored.length > 0) writes.push(requestStored(stored))
        if (businesses.length > 0) writes.push(requestBusinesses(businesses))
      }
      if (records.length > 0) writes.push(announceRecords(records))
      return writes
    },
  }
}

type Merged = ReturnType<typeof mergeRequests>

/** The subscriptions and businesses of a batch. `named`: a request of the kind `subscription`, which adds its row. */
function heldRows(rounds: Merged['rounds'], records: Merged['records']) {
  const rows = new Map<string, RowOf<typeof HELD_COLUMNS>>()
  for (const { named, stored } of rounds) {
    for (const { uid, business, purchasable } of named)
      if (rows.get(uid)?.named !== 1) rows.set(uid, { uid, business, purchasable, named: 1 })
    for (const { uid } of stored)
      if (!rows.has(uid)) rows.set(uid, { uid, business: null, purchasable: null, named: 0 })
  }
  for (const { uid } of records)
    if (!rows.has(uid)) rows.set(uid, { uid, business: null, purchasable: null, named: 0 })
  const businesses = new Set(rounds.flatMap((round) => round.businesses.map(({ business }) => business)))
  return [
    ...rows.values(),
    ...[...businesses].map((business) => ({ uid: null, business, purchasable: null, named: 0 })),
  ]
}

const HELD_COLUMNS = { uid: 'text', business: 'text', purchasable: 'text', named: 'integer' } as const

/**
 * Locks the rows of a batch one after the other by bytes, and inserts those that `named` adds, so that batches which add
 * and change rows in several statements do not wait for each other. A row inserted here has the generation 0 until its
 * request. Only for PostgreSQL: the join runs row by row, and its `case` must see the locked row.
 */
function held(engine: Engine, { table, of }: Given<keyof typeof HELD_COLUMNS>) {
  return sql`
    with given as materialized (select * from ${table} as rows)
    insert into subscriptions
      (subscription_uid, business_uid, purchasable_uid, generation, settled_generation, requested_at,
        urgency, cause, unread, verifying, lapses, quiet_until_read, created_at)
    select given.uid, ${of('business')}, ${of('purchasable')}, 0, 0, ${of('now')},
      ${sql.lit(URGENCY.reconcile)}, ${sql.lit(CAUSES.indexOf('reconcile'))}, 1, 0, 0, 1, ${of('now')}
    from (
      select uid, max(business) as business, max(purchasable) as purchasable, max(named) as named, max(now) as now
      from (
        select uid, business, purchasable, named, now from given where uid is not null
        union all
        select mine.subscription_uid, null, null, 0, given.now from given
          cross join lateral (${uidsOfBusiness(of('business'))}) as mine
        where given.uid is null
      ) as every
      group by uid order by uid collate "C"
    ) as given
    left join lateral (
      select subscription_uid from subscriptions where subscription_uid = given.uid ${engine.forUpdate}
    ) as row on true
    where case when row.subscription_uid is null then given.named else 0 end = 1
    on conflict (subscription_uid) do update set generation = subscriptions.generation where false`
}

// One statement for each kind of refresh request.

const UNREAD = sql.lit(URGENCY.eventOfUnread)
const isGivenEvent = isEvent(sql`given.cause`)
/**
 * Of a row that is read, `unread` is the class after an event: 0 is `URGENCY.event`, 1 is `URGENCY.eventOfUnread`. One that
 * was never read keeps its class when `refresh` reads its business: anybody can have made it up, so it must not delay the
 * reads of the others.
 */
const urgencyOfGiven = sql`case
  when subscriptions.unread = 1 and not (${isGivenEvent}) then subscriptions.urgency
  else ${urgencyAfterRequest(urgencyOfCause(sql`given.cause`, sql`subscriptions.unread`))} end`
const causeOfGiven = causeAfterRequest(sql`given.cause`)
/** A change that an event announces is written, even if an earlier request for the first read was quiet. */
const quietAfterRequest = sql`case when ${isGivenEvent} then 0 else subscriptions.quiet_until_read end`

const urgencyOfNamed = urgencyAfterRequest(sql`case
  when excluded.urgency = ${UNREAD} and subscriptions.unread = 0 then ${sql.lit(URGENCY.event)}
  else excluded.urgency end`)

/**
 * The first request decides the business of a subscription. A later request with another business makes that one the
 * candidate, which a read tries when the first does not show the subscription. So a forged event costs few reads.
 */
function named({ insert, of }: Given<keyof typeof NAMED_COLUMNS>) {
  return sql`
    insert into subscriptions
      (subscription_uid, business_uid, purchasable_uid, generation, settled_generation, requested_at, owed_since,
        refresh_at, urgency, cause, unread, verifying, lapses, quiet_until_read, update_at, created_at)
    ${insert(sql`${of('uid')}, ${of('business')}, ${of('purchasable')}, ${of('times')}, 0,
      ${of('now')}, ${of('now')}, ${of('now')},
      ${urgencyOfCause(of('cause'), UNREAD)}, ${of('cause')}, 1, 0, 0, ${of('quiet')}, case when ${of('updates')} = 1 then ${of('now')} end, ${of('now')}`)}
    on conflict (subscription_uid) do update set
      generation = subscriptions.generation + excluded.generation,
      requested_at = excluded.requested_at,
      owed_since = coalesce(subscriptions.owed_since, excluded.requested_at),
      failure = null,
      update_at = case when excluded.business_uid = subscriptions.business_uid
        then coalesce(subscriptions.update_at, excluded.update_at) else subscriptions.update_at end,
      -- Quiet only while every request of this kind was: an earlier one may want the change, and a subscription read before
      -- has one.
      quiet_until_read = case when excluded.quiet_until_read = 1 and
        subscriptions.unread = 1 and subscriptions.quiet_until_read = 1 then 1 else 0 end,
      urgency = ${urgencyOfNamed},
      cause = ${causeAfterRequest(sql`excluded.cause`)},
      refresh_at = ${dueAfterRequest({
        now: sql`excluded.requested_at`,
        isByEvent: isEvent(sql`excluded.cause`),
        times: sql`excluded.generation`,
        urgency: urgencyOfNamed,
      })},
      candidate_business_uid = case
        when excluded.business_uid <> subscriptions.business_uid then excluded.business_uid
        else subscriptions.candidate_business_uid end`
}

/** Subscriptions that are read only if the store has them. */
function stored(engine: Engine, { each, of }: Given<keyof typeof STORED_COLUMNS>) {
  return sql`
    update subscriptions set ${REQUESTED}
    from (${each(sql`
      select subscription_uid as uid, ${of('times')} as times, ${of('cause')} as cause, ${of('now')} as now
      from subscriptions where subscription_uid = ${of('uid')} and generation > 0 ${engine.skipLocked}`)}
    ) as given
    where subscriptions.subscription_uid = given.uid`
}

/** What events announce for the subscriptions that were read for the same business. It requests no read. */
function announced({ table }: Given<keyof typeof RECORD_COLUMNS>) {
  return sql`
    update subscriptions set
      end_at = case given.ends when 1 then given.now when 0 then null else subscriptions.end_at end,
      update_at = case when given.updates = 1 then coalesce(subscriptions.update_at, given.now)
        else subscriptions.update_at end
    from ${table} as given
    where subscriptions.subscription_uid = given.uid and subscriptions.business_uid = given.business
      and subscriptions.unread = 0`
}

/**
 * The subscriptions of businesses that a decision takes into account, and their newest install or uninstall: by the date of
 * the platform, or else by its arrival. An uninstall is an update of each that was read, which no install takes back: anybody
 * with the delivery secret can make one up. See docs/decisions/installs-by-their-date.md.
 */
function businesses(engine: Engine, { each, of }: Given<keyof typeof BUSINESS_COLUMNS>) {
  const isLast = sql`given.installed is not null and (given.arrived is not null or (
    (subscriptions.install_at is null or given.at >= subscriptions.install_at
      or subscriptions.install_at > given.wall + ${sql.lit(DATE_TOLERANCE_MS)})
    and (subscriptions.install_arrived_at is null or given.at >= subscriptions.install_arrived_at
      or subscriptions.install_arrived_at > given.wall)))`
  return sql`
    update subscriptions set
      ${REQUESTED},
      uninstalled_at = case when not (${isLast}) then subscriptions.uninstalled_at
        when given.installed = 0 then given.now end,
      update_at = case when given.updates = 1 and subscriptions.unread = 0
        then coalesce(subscriptions.update_at, given.now) else subscriptions.update_at end,
      install_at = case when ${isLast} then coalesce(given.at, subscriptions.install_at) else subscriptions.install_at end,
      install_arrived_at = coalesce(given.arrived, subscriptions.install_arrived_at)
    from (${each(sql`
      select subscription_uid as uid, ${of('installed')} as installed, ${of('times')} as times,
        ${of('cause')} as cause, ${of('now')} as now, ${of('at')} as at,
        ${of('arrived')} as arrived, ${of('updates')} as updates, ${of('wall')} as wall
      from (${uidsOfBusiness(of('business'), engine)}) as mine`)}
    ) as given
    where subscriptions.subscription_uid = given.uid`
}

function uidsOfBusiness(business: Sql, locking?: Pick<Engine, 'skipLocked'>) {
  return someOfBusiness(sql`subscription_uid`, sql`business_uid = ${business} and generation > 0`, locking)
}

// The values that a refresh request gives to the columns of a row of `subscriptions`, as SQL.

/**
 * `refresh_at`, the first case that applies:
 *
 * 1. A leased row is left as it is: its finish sees the new generation. So is a suspect one: no sender may cause the reads
 *    that end the process. An overdue row keeps its place, but one that gets another class is due there from now on
 *    (`leases/look-back.ts`).
 * 2. A pause that ends too far ahead comes from a clock that was set back, so the row is due now.
 * 3. After an event, a row that already waits for a read waits a whole pause from now on, up to `MAX_READ_INTERVAL_MS`
 *    after its last read. `track` and `refresh` make it due at the end of the pause after its last read. If
 *    that pause is over, the next event does not delay the read again. Several events of one batch wait as if the row had
 *    already waited for the first of them.
 * 4. Otherwise the row is due at the end of the pause after its last read, or now.
 */
function dueAfterRequest({
  now,
  isByEvent,
  times,
  urgency,
}: Record<'now' | 'isByEvent' | 'times' | 'urgency', Sql>) {
  const last = sql`subscriptions.not_before + ${sql.lit(MAX_READ_INTERVAL_MS - MIN_READ_INTERVAL_MS)}`
  const pauseFromNow = sql`${now} + ${sql.lit(MIN_READ_INTERVAL_MS)}`
  return sql`case
    when not (${IS_FREE}) then subscriptions.refresh_at
    when subscriptions.refresh_at <= ${now}
      then case when subscriptions.urgency = ${urgency} then subscriptions.refresh_at else ${now} end
    when subscriptions.not_before > ${pauseFromNow} then ${now}
    when ${isByEvent} and (${times} > 1 and subscriptions.not_before > ${now}
        or subscriptions.generation > subscriptions.settled_generation and subscriptions.refresh_at <= ${last})
      then case when ${pauseFromNow} < ${last} then ${pauseFromNow} else ${last} end
    when subscriptions.not_before > ${now} then subscriptions.not_before
    else ${now} end`
}

/** The `urgency`: while an earlier request is open, the lower of the two. */
function urgencyAfterRequest(requested: unknown) {
  return sql`case
    when subscriptions.generation > subscriptions.settled_generation and subscriptions.urgency < ${requested}
      then subscriptions.urgency
    else ${requested} end`
}

/** The urgency by the cause of a request: after an event it is `afterEvent`. */
function urgencyOfCause(cause: Sql, afterEvent: Sql) {
  return sql`case when ${isEvent(cause)} then ${afterEvent} else ${sql.lit(URGENCY.track)} end`
}

/** The `cause`: the stronger one while a read is due or to come. A row that is given up has none that counts. */
function causeAfterRequest(requested: Sql) {
  return sql`case
    when subscriptions.refresh_at is not null and subscriptions.cause < ${requested} then subscriptions.cause
    else ${requested} end`
}

function isEvent(cause: Sql) {
  return sql`${cause} = ${sql.lit(CAUSES.indexOf('event'))}`
}

/** What a request that finds its row in the store changes, from a row of `given`. */
const REQUESTED = sql`
  generation = subscriptions.generation + given.times, requested_at = given.now, failure = null,
  owed_since = coalesce(subscriptions.owed_since, given.now),
  urgency = ${urgencyOfGiven},
  cause = ${causeOfGiven},
  quiet_until_read = ${quietAfterRequest},
  refresh_at = ${dueAfterRequest({
    now: sql`given.now`,
    isByEvent: isGivenEvent,
    times: sql`given.times`,
    urgency: urgencyOfGiven,
  })}`
