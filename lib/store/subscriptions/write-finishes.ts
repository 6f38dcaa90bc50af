import { REFUSALS } from '../../base/errors.js'
import { CAUSES, MIN_READ_INTERVAL_MS, type ReadClaim, type ReadFinish, URGENCY } from '../port/store.js'
import type { Given } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'
import { prepare, run } from '../sql/writes.js'

/**
 * `written`: the whole result. `too late`: only a failed read, since a newer event decides. False: nothing, since the
 * lease is lost.
 */
export type Finished = 'written' | 'too late' | false

interface Finish {
  claim: ReadClaim
  finish: ReadFinish
}

/** Writes the results of reads to the rows of their subscriptions: one statement for all, compiled once. */
export function createFinishWrites(engine: Pick<Engine, 'compile' | 'given' | 'queriesOf'>) {
  const write = prepare(engine, COLUMNS, written)

  async function writeAll(trx: Connection, rows: readonly ReturnType<typeof rowOf>[]) {
    if (rows.length === 0) return new Set<string>()
    const sorted = [...rows].sort((a, b) => (a.uid < b.uid ? -1 : 1))
    const found = await run<{ subscription_uid: string }>(engine, trx, write(sorted))
    return new Set(found.map((row) => row.subscription_uid))
  }

  /**
   * Returns the outcome of each finish.
   * `erased`: the claims whose business was erased during the read. Of their results nothing is written.
   */
  return async function finish(
    trx: Connection,
    finishes: readonly Finish[],
    erased: ReadonlySet<ReadClaim>,
  ): Promise<Finished[]> {
    const current = finishes.filter(({ claim }) => !erased.has(claim))
    const held = await writeAll(
      trx,
      current.map((each) => rowOf(each, ends(each))),
    )
    const late = finishes.filter((each) => (ends(each) || erased.has(each.claim)) && !held.has(each.claim.id))
    const asFailed = late.map(({ claim, finish: { failure } }) =>
      rowOf({ claim, finish: { settled: false, failure, progress: claim.progress, nextInMs: 0 } }, false),
    )
    const tooLate = await writeAll(trx, asFailed)
    return finishes.map(({ claim }) =>
      held.has(claim.id) ? 'written' : tooLate.has(claim.id) ? 'too late' : false,
    )
  }
}

/** An end rests on the events that the claim saw. One since then may say the opposite, so the next read decides. */
function ends({ claim, finish }: Finish): boolean {
  const { gone = null } = finish.found ?? {}
  return claim.subscription.gone === null && (gone === 'revoked' || gone === 'ended')
}

function rowOf({ claim, finish }: Finish, onlyIfUnrequested: boolean) {
  const { found, settled, failure, progress, nextInMs, candidate } = finish
  const record = found?.record ?? null
  // A refusal is an answer of the platform, so it settles the request.
  const isRefused = REFUSALS.includes(failure ?? '')
  return {
    uid: claim.id,
    token: claim.leaseToken,
    generation: claim.generation,
    only_if_unrequested: flag(onlyIfUnrequested),
    is_found: flag(found !== undefined),
    record: record && JSON.stringify(record),
    business: record?.business_uid?.toWellFormed() ?? null,
    item: record?.purchasable_uid?.toWellFormed() ?? null,
    state: found?.state?.toWellFormed() ?? null,
    gone: found?.gone ?? null,
    is_settled: flag(settled),
    is_answered: flag(settled || isRefused),
    is_shown: flag(settled && failure === null),
    is_refused: flag(isRefused),
    failure,
    progress,
    is_verifying: flag(finish.verifying === true),
    next_urgency: finish.urgency ?? null,
    sets_candidate: flag(candidate !== undefined),
    candidate: candidate ?? null,
    clears_uninstalled: flag(finish.clearUninstalled === true),
    clears_update: flag(finish.clearUpdate === true),
    clears_end: flag(finish.clearEnd === true),
    next_in_ms: nextInMs,
    is_untried: flag(finish.isUntried === true),
    lease_time_behind: claim.leaseTimeBehindMs,
  }
}

function flag(is: boolean): 0 | 1 {
  return is ? 1 : 0
}

function written({ table }: Given) {
  return sql`
    update subscriptions set
      record = case when is_found = 1 then finish.record else subscriptions.record end,
      unread = case when finish.record is null then unread else 0 end,
      quiet_until_read = case when finish.record is null then quiet_until_read else 0 end,
      business_uid = coalesce(finish.business, business_uid),
      candidate_business_uid = case when sets_candidate = 0 or ${REQUESTED_AGAIN} then candidate_business_uid
        else finish.candidate end,
      purchasable_uid = coalesce(finish.item, purchasable_uid),
      state = case when is_found = 1 then finish.state else subscriptions.state end,
      gone = case when is_found = 1 then finish.gone else subscriptions.gone end,
      read_at = case when is_found = 0 then read_at else ${READ_BY} end,
      settled_generation = case when is_settled = 1 then finish.generation else settled_generation end,
      owed_since = case when is_answered = 0 then owed_since when ${REQUESTED_AGAIN} then requested_at end,
      failure = case when ${REQUESTED_AGAIN} then null else finish.failure end,
      progress = finish.progress,
      verifying = is_verifying,
      urgency = case when next_urgency is null or ${REQUESTED_AGAIN} then urgency else next_urgency end,
      cause = case when next_urgency = ${sql.lit(URGENCY.reconcile)} and not ${REQUESTED_AGAIN}
        then ${sql.lit(CAUSES.indexOf('reconcile'))} else cause end,
      uninstalled_at = case when clears_uninstalled = 0 or ${REQUESTED_AGAIN} then uninstalled_at end,
      failing_since = case when is_shown = 1 or (${OTHER_ITEM_ENDS}) then null when ${FAILS} then coalesce(failing_since, now) else failing_since end,
      -- One that has never failed has been served since it exists.
      served_since = case when is_shown = 1 then coalesce(served_since, case when read_at is null then created_at else now end)
        when ${FAILS} then null else served_since end,
      update_at = case when clears_update = 0 or ${REQUESTED_AGAIN} then update_at end,
      end_at = case when clears_end = 0 or ${REQUESTED_AGAIN} then end_at end,
      lease_token = null,
      -- As advance() of lanes: a suspect that was returned untried stays one, without the lapse of its claim.
      suspect = case when is_untried = 1 then suspect else 0 end,
      lapses = case when is_untried = 1 then lapses - suspect else 0 end,
      not_before = now + ${PAUSE},
      refresh_at = case when ${REQUESTED_AGAIN} and is_untried = 0 then now + ${PAUSE} else ${READ_BY} + next_in_ms end
    from ${table} as finish
    where subscriptions.subscription_uid = finish.uid and lease_token = finish.token
      and (only_if_unrequested = 0 or subscriptions.generation = finish.generation)
    returning subscription_uid`
}

/**
 * When the read ended: `now`, but no later than its lease, which is the `refresh_at` of the row. A process or machine that
 * was suspended after its read must not claim a later time.
 */
const ENDED = sql`case when refresh_at < lease_now then refresh_at else lease_now end + lease_time_behind`
const READ_BY = sql`case when ${ENDED} < now then ${ENDED} else now end`

/** A read was requested after the claim, so it may show something newer than this read. */
const REQUESTED_AGAIN = sql`(subscriptions.generation > finish.generation)`
/** A canceled subscription has nothing to lose, so its refusals say nothing about the platform. One that has ended fails since before its end. */
const FAILS = sql`is_refused = 1 and unread = 0 and subscriptions.gone is null
  and (subscriptions.state is null or subscriptions.state <> 'canceled')`
/** A purchase of another item never counted as served. So it does not count as failing once it has ended either. */
const OTHER_ITEM_ENDS = sql`finish.gone is not null and subscriptions.gone is null and subscriptions.state is null`
const PAUSE = sql.lit(MIN_READ_INTERVAL_MS)

const COLUMNS = {
  uid: 'text',
  token: 'text',
  generation: 'integer',
  only_if_unrequested: 'integer',
  is_found: 'integer',
  record: 'text',
  business: 'text',
  item: 'text',
  state: 'text',
  gone: 'text',
  is_settled: 'integer',
  is_answered: 'integer',
  is_shown: 'integer',
  is_refused: 'integer',
  failure: 'text',
  progress: 'text',
  is_verifying: 'integer',
  next_urgency: 'integer',
  sets_candidate: 'integer',
  candidate: 'text',
  clears_uninstalled: 'integer',
  clears_update: 'integer',
  clears_end: 'integer',
  next_in_ms: 'integer',
  is_untried: 'integer',
  lease_time_behind: 'integer',
} as const
