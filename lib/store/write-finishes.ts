import type { Given, Script } from './dialect.js'
import type { Engine } from './engine.js'
import { answered, prepare } from './script.js'
import { sql } from './sql.js'
import { MIN_READ_INTERVAL_MS, type ReadClaim, type ReadFinish } from './store.js'

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
export function createFinishWrites(engine: Pick<Engine, 'compile' | 'given'>) {
  const write = prepare(engine, COLUMNS, written)

  function* writeAll(rows: readonly ReturnType<typeof rowOf>[]): Script<ReadonlySet<unknown>> {
    if (rows.length === 0) return new Set()
    const sorted = [...rows].sort((a, b) => (a.uid < b.uid ? -1 : 1))
    const found = yield* answered<{ subscription_uid: string }>(write(sorted))
    return new Set(found.map((row) => row.subscription_uid))
  }

  /**
   * Returns the outcome of each finish.
   * `erased`: the claims whose business was erased during the read. Of their results nothing is written.
   */
  return function* finish(finishes: readonly Finish[], erased: ReadonlySet<ReadClaim>): Script<Finished[]> {
    const current = finishes.filter(({ claim }) => !erased.has(claim))
    const held = yield* writeAll(current.map((each) => rowOf(each, revokes(each))))
    const late = finishes.filter(
      (each) => (revokes(each) || erased.has(each.claim)) && !held.has(each.claim.id),
    )
    const asFailed = late.map(({ claim, finish: { failure } }) =>
      rowOf({ claim, finish: { settled: false, failure, progress: claim.progress, nextInMs: 0 } }, false),
    )
    const tooLate = yield* writeAll(asFailed)
    return finishes.map(({ claim }) =>
      held.has(claim.id) ? 'written' : tooLate.has(claim.id) ? 'too late' : false,
    )
  }
}

/** A revocation rests on the uninstall that the claim saw. A request since then may be an install, so the next read decides. */
function revokes({ claim, finish }: Finish): boolean {
  return finish.found?.gone === 'revoked' && claim.subscription.gone !== 'revoked'
}

function rowOf({ claim, finish }: Finish, onlyIfUnrequested: boolean) {
  const { found, settled, failure, progress, nextInMs, candidate } = finish
  const record = found?.record ?? null
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
    is_answered: flag(settled || REFUSALS.includes(failure ?? '')),
    failure,
    progress,
    is_verifying: flag(finish.verifying === true),
    next_urgency: finish.urgency ?? null,
    sets_candidate: flag(candidate !== undefined),
    candidate: candidate ?? null,
    clears_uninstalled: flag(finish.clearUninstalled === true),
    next_in_ms: nextInMs,
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
      -- refresh_at is the end of the lease here. A process that was suspended after its read must not claim a later time.
      read_at = case when is_found = 0 then read_at when refresh_at < now then refresh_at else now end,
      settled_generation = case when is_settled = 1 then finish.generation else settled_generation end,
      owed_since = case when is_answered = 0 then owed_since when ${REQUESTED_AGAIN} then requested_at end,
      failure = case when ${REQUESTED_AGAIN} then null else finish.failure end,
      progress = finish.progress,
      verifying = is_verifying,
      urgency = case when next_urgency is null or ${REQUESTED_AGAIN} then urgency else next_urgency end,
      uninstalled_at = case when clears_uninstalled = 0 or ${REQUESTED_AGAIN} then uninstalled_at end,
      lease_token = null,
      lapses = 0,
      not_before = now + ${PAUSE},
      refresh_at = case when ${REQUESTED_AGAIN} then now + ${PAUSE} else now + next_in_ms end
    from ${table} as finish
    where subscriptions.subscription_uid = finish.uid and lease_token = finish.token
      and (only_if_unrequested = 0 or subscriptions.generation = finish.generation)
    returning subscription_uid`
}

/** Failures that are an answer of the platform, so they settle the request. */
const REFUSALS = ['platform_refused', 'platform_record_mismatch', 'token_refused', 'platform_record_missing']

/** A read was requested after the claim, so it may show something newer than this read. */
const REQUESTED_AGAIN = sql`subscriptions.generation > finish.generation`
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
  failure: 'text',
  progress: 'text',
  is_verifying: 'integer',
  next_urgency: 'integer',
  sets_candidate: 'integer',
  candidate: 'text',
  clears_uninstalled: 'integer',
  next_in_ms: 'integer',
} as const
