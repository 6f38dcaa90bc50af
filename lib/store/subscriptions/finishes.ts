import { createBatches } from '../../base/batches.js'
import { REFUSALS } from '../../base/errors.js'
import { auditUid } from '../journal/audit.js'
import type { Journal } from '../journal/journal.js'
import type { Lanes } from '../lanes/lanes.js'
import {
  CAUSES,
  type Hint,
  MIN_READ_INTERVAL_MS,
  type ReadClaim,
  type ReadFinish,
  URGENCY,
} from '../port/store.js'
import type { Given } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { byBytes } from '../sql/lock-order.js'
import type { SubscriptionsTable } from '../sql/schema.js'
import { type Connection, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import { prepare, run } from '../sql/writes.js'
import { quietAmong, withItemChanges } from './found-by-reads.js'
import { isOver } from './other-businesses.js'

/** The reads of one transaction: on SQLite the event loop waits for it (16 with a change each take 3 ms). */
const BATCH = 16

interface Finish {
  claim: ReadClaim
  finish: ReadFinish
}

interface Waiting extends Finish {
  /** The businesses of the finish, sorted by bytes. */
  businesses: string[]
}

/**
 * Writes the results of reads, several in one transaction. With 32 concurrent reads on SQLite that takes two thirds of
 * the CPU of a transaction for each.
 */
export function createReadFinishes(options: {
  engine: Pick<
    Engine,
    | 'holdNames'
    | 'clock'
    | 'compile'
    | 'given'
    | 'queriesOf'
    | 'isOneOf'
    | 'forUpdate'
    | 'announceIn'
    | 'isDataError'
  >
  write: Engine['write']
  insertOfReads: Journal['insertOfReads']
  /** Called in the transaction that writes the first records of subscriptions: nobody has made up what names them. */
  promote: Lanes['promote']
  /** Called in the transaction that writes a record read with this app's token. */
  recordRead(trx: Connection): Promise<void>
  /** Gives a hint to the listeners of this process. */
  notify(hint: Hint): void
  /** Gives it to them and to the other processes. */
  announce(hint: Hint): void
}) {
  const { engine, write, insertOfReads, promote, recordRead, notify, announce } = options
  const finishAll = createFinishWrites(engine)
  /** Claims whose finish failed, perhaps after its commit. */
  const unsure = new WeakSet<ReadClaim>()

  const batches = createBatches<Waiting, Finished>({
    /** A batch has at most one finish of each subscription, because one statement changes a row only once. */
    take() {
      const taken = new Set<string>()
      return ({ claim: { id } }) => {
        if (taken.size >= BATCH || taken.has(id)) return false
        taken.add(id)
        return true
      }
    },
    async write(batch) {
      const sorted = [...batch].sort((a, b) => byBytes(a.claim.id, b.claim.id))
      const finished = await write((trx) => writeAll(trx, sorted))
      return batch.map((each) => finished[sorted.indexOf(each)] as Finished)
    },
    split: (error) => engine.isDataError(error),
  })

  async function writeAll(trx: Transaction, batch: readonly Waiting[]): Promise<Finished[]> {
    // An erasure holds the name while it writes its record. So this transaction sees that record, or is over before it. And
    // what one of two subscriptions changes for a business is seen by the transaction of the other.
    const held = batch.filter(
      ({ businesses, finish }) => businesses.length > 1 || (finish.entitlements ?? []).length > 0,
    )
    const names = [...new Set(held.flatMap(({ businesses }) => businesses))].sort(byBytes)
    const [, quiet] = await Promise.all([
      names.length > 0 && engine.holdNames?.(trx, names),
      quietAmong(engine, trx, batch),
    ])
    const erased = new Set<ReadClaim>()
    for (const { claim, finish } of batch) if (await isErasedSince(trx, claim, finish)) erased.add(claim)
    const finished = await finishAll(trx, batch, erased)
    const written = batch.filter((_, i) => finished[i] === 'written')
    if (written.some(({ finish }) => finish.found)) await recordRead(trx)
    const readOf = ({ claim: { id }, finish: { changes = [], entitlements = [] } }: Waiting) => {
      return { subscriptionUid: id, quiet: quiet.has(id), changes, entitlements }
    }
    const reads = await withItemChanges(engine, trx, written.map(readOf))
    const hints = written.flatMap(({ claim, finish }) => hintsOfNews(claim, finish))
    trx.leave(insertOfReads(trx, reads))
    if (hints.length > 0 && engine.announceIn) trx.leave(engine.announceIn(trx, hints))
    // Last, because it locks the lanes that it finds, and so nothing may wait for a lane after it.
    await promote(
      trx,
      written.flatMap(({ claim: { subscription }, finish: { found } }) =>
        subscription.record === null && found?.record
          ? { subscriptionUid: subscription.subscriptionUid, businessUid: found.record.business_uid }
          : [],
      ),
    )
    return finished
  }

  /** See the port. */
  return async function finishRead(claim: ReadClaim, finish: ReadFinish): Promise<boolean> {
    const businesses = businessesOf(claim, finish)
    const finished = await batches.add({ claim, finish, businesses }).catch((error) => {
      unsure.add(claim)
      throw error
    })
    if (finished === false) {
      // This finish may have been written before another one, and its hints were not sent.
      if (unsure.has(claim))
        for (const businessUid of businesses) notify({ kind: 'decided', businessUid, superseded: true })
      return false
    }
    if (finished === 'too late') {
      announce({ kind: 'requested', businessUid: claim.subscription.businessUid })
      return false
    }
    const superseded = isNews(claim, finish)
    const isSent = engine.announceIn !== undefined && hintsOfNews(claim, finish).length > 0
    for (const businessUid of businesses)
      (isSent ? notify : announce)({ kind: 'decided', businessUid, superseded })
    if (finish.changes?.length || finish.entitlements?.length) announce({ kind: 'journal' })
    return true
  }
}

/** Whether the business that the record names was erased during the read. The subscription is then read again. */
async function isErasedSince(trx: Connection, claim: ReadClaim, { found }: ReadFinish): Promise<boolean> {
  const businessUid = found?.record?.business_uid
  if (businessUid === undefined || businessUid === claim.subscription.businessUid) return false
  const rows = await sql`
    select 1 from journal where business_uid = ${auditUid(businessUid)} and kind = 'action' and name = 'erase'
      and received_at >= ${claim.claimedAt} limit 1`.execute(trx)
  return rows.length > 0
}

/** The businesses of a finish, sorted by bytes: every transaction that holds several names takes them in this order. */
function businessesOf({ subscription }: ReadClaim, { found, changes = [] }: ReadFinish): string[] {
  const uids = [subscription.businessUid, ...changes.map(({ businessUid }) => businessUid)]
  if (found?.record) uids.push(found.record.business_uid)
  return [...new Set(uids)].sort(byBytes)
}

/**
 * The hints that must not be lost once the result is committed: an answer from a read before this one must not be used
 * again. The first read of a subscription replaces no such answer: until then it gave no access.
 */
function hintsOfNews(claim: ReadClaim, finish: ReadFinish): Hint[] {
  if (claim.subscription.record === null || !isNews(claim, finish)) return []
  const news = { kind: 'decided', superseded: true } as const
  return businessesOf(claim, finish).map((businessUid) => ({ ...news, businessUid }))
}

/** Whether the read changed the subscription, so that an earlier decision must not be used again. */
function isNews({ subscription }: ReadClaim, { found }: ReadFinish): boolean {
  if (!found) return false
  return (
    found.gone !== subscription.gone || JSON.stringify(found.record) !== JSON.stringify(subscription.record)
  )
}

/**
 * `written`: the whole result. `stands`: an earlier run of this finish has written it, and PostgreSQL's answer to the commit
 * was lost. `too late`: only a failed read, since a newer request decides, or the business that the
 * record names was erased during the read. False: nothing, since the lease is lost.
 */
type Finished = 'written' | 'stands' | 'too late' | false

/** Writes the results of reads to the rows of their subscriptions: one statement for all, compiled once. */
function createFinishWrites(engine: Pick<Engine, 'compile' | 'given' | 'queriesOf' | 'isOneOf'>) {
  const write = prepare(engine, COLUMNS, written)

  async function writeAll(trx: Connection, rows: readonly ReturnType<typeof rowOf>[]) {
    if (rows.length === 0) return new Set<string>()
    const found = await run<{ subscription_uid: string }>(engine, trx, write(rows))
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
      rowOf(
        { claim, finish: { settled: false, failure, progress: claim.progress, nextInMs: 0 } },
        false,
        TOO_LATE,
      ),
    )
    const tooLate = await writeAll(trx, asFailed)
    const outcomes = finishes.map(
      ({ claim }): Finished => (held.has(claim.id) ? 'written' : tooLate.has(claim.id) ? 'too late' : false),
    )
    if (!outcomes.includes(false)) return outcomes
    const finishedBy = await lastFinishes(trx, finishes)
    return finishes.map(({ claim: { id, leaseToken } }, i) => {
      if (finishedBy.get(id) === leaseToken) return outcomes[i] || 'stands'
      return outcomes[i] || (finishedBy.get(id) === leaseToken + TOO_LATE ? 'too late' : false)
    })
  }

  /** The `finished_by` of their subscriptions: those that have lost their lease may have been written by an earlier run. */
  async function lastFinishes(trx: Connection, finishes: readonly Finish[]) {
    const ids = finishes.map(({ claim }) => claim.id)
    const rows = await sql<Pick<SubscriptionsTable, 'subscription_uid' | 'finished_by'>>`
      select subscription_uid, finished_by from subscriptions where ${engine.isOneOf('subscription_uid', ids)}`.execute(
      trx,
    )
    return new Map(rows.map((row) => [row.subscription_uid, row.finished_by]))
  }
}

/**
 * Whether a finish ends the subscription. It is refused if an event came after the claim, which may say the opposite: once,
 * because with an event during each read no subscription would end, and the next read has begun after the first of them.
 * What has taken back the evidence of the claim always refuses it.
 */
function ends({ claim, finish }: Finish): boolean {
  const { gone = null } = finish.found ?? {}
  return claim.subscription.gone === null && (gone === 'revoked' || gone === 'ended')
}

/** Marks in `finished_by` a finish of which only a failed read was written. */
const TOO_LATE = ' too late'

function rowOf({ claim, finish }: Finish, onlyIfUnrequested: boolean, mark = '') {
  const { found, settled, failure, progress, nextInMs, candidate } = finish
  const nextCause = finish.cause ?? (finish.urgency === URGENCY.reconcile ? 'reconcile' : undefined)
  const record = found?.record ?? null
  // A refusal is an answer of the platform too: the request is owed no longer for want of one (`owed_since`).
  const isRefused = REFUSALS.includes(failure ?? '')
  return {
    uid: claim.id,
    token: claim.leaseToken,
    finished_by: claim.leaseToken + mark,
    generation: claim.generation,
    only_if_unrequested: flag(onlyIfUnrequested),
    was_uninstalled: flag(claim.uninstalledAt !== null),
    had_end: flag(claim.endAt !== null),
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
    next_cause: nextCause === undefined ? null : CAUSES.indexOf(nextCause),
    entitles: flag(finish.entitles ?? claim.subscription.entitles),
    sets_candidate: flag(candidate !== undefined),
    candidate: candidate ?? null,
    clears_uninstalled: flag(finish.clearUninstalled === true),
    clears_update: flag(finish.clearUpdate === true),
    clears_end: flag(finish.clearEnd === true),
    // A share of an option or of an age may have a fraction, and the column has none.
    next_in_ms: nextInMs === null ? null : Math.round(nextInMs),
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
      cause = case when next_cause is null or ${REQUESTED_AGAIN} then cause else next_cause end,
      entitles = finish.entitles,
      uninstalled_at = case when clears_uninstalled = 0 or ${REQUESTED_AGAIN} then uninstalled_at end,
      failing_since = case when is_shown = 1 or (${OTHER_ITEM_ENDS}) or (${ACCESS_HAS_ENDED}) then null
        when ${FAILS} then coalesce(failing_since, now) else failing_since end,
      -- The first record counts since the row exists, whatever failed before it.
      served_since = case when is_shown = 1 then coalesce(served_since, case when read_at is null then created_at else now end)
        when ${FAILS} then null else served_since end,
      update_at = case when clears_update = 0 or ${REQUESTED_AGAIN} then update_at end,
      end_at = case when clears_end = 0 or ${REQUESTED_AGAIN} then end_at end,
      lease_token = null,
      finished_by = finish.finished_by,
      -- As advance() of lanes: a suspect that was returned untried stays one, without the lapse of its claim.
      suspect = case when is_untried = 1 then suspect else 0 end,
      lapses = case when is_untried = 1 then lapses - suspect else 0 end,
      not_before = now + ${PAUSE},
      refresh_at = case when ${REQUESTED_AGAIN} and is_untried = 0 then now + ${PAUSE} else ${READ_BY} + next_in_ms end
    from ${table} as finish
    where subscriptions.subscription_uid = finish.uid and lease_token = finish.token
      and (only_if_unrequested = 0 or subscriptions.generation = finish.generation or (${WAS_TOO_LATE} and ${STANDS}))
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
const WAS_TOO_LATE = sql`subscriptions.finished_by like ${sql.lit(`%${TOO_LATE}`)}`
/** The uninstall and the end that the claim has seen. */
const STANDS = sql`(was_uninstalled = 0 or uninstalled_at is not null) and (had_end = 0 or end_at is not null)`
/** A subscription that is over loses nothing by a refusal, and one that has ended has failed since before its end. */
const FAILS = sql`is_refused = 1 and unread = 0 and subscriptions.gone is null
  and (subscriptions.state is null or not ${isOver(sql`subscriptions.state`, sql`subscriptions.entitles`)})`
/** The access of a canceled subscription may also end while its reads fail: from then on it does not count as failing. */
const ACCESS_HAS_ENDED = sql`finish.gone is null and ${isOver(sql`subscriptions.state`, sql`finish.entitles`)}`
/** A purchase of another item never counted as served. So it does not count as failing once it has ended either. */
const OTHER_ITEM_ENDS = sql`finish.gone is not null and subscriptions.gone is null and subscriptions.state is null`
const PAUSE = sql.lit(MIN_READ_INTERVAL_MS)

const COLUMNS = {
  uid: 'text',
  token: 'text',
  finished_by: 'text',
  generation: 'integer',
  only_if_unrequested: 'integer',
  was_uninstalled: 'integer',
  had_end: 'integer',
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
  next_cause: 'integer',
  entitles: 'integer',
  sets_candidate: 'integer',
  candidate: 'text',
  clears_uninstalled: 'integer',
  clears_update: 'integer',
  clears_end: 'integer',
  next_in_ms: 'integer',
  is_untried: 'integer',
  lease_time_behind: 'integer',
} as const
