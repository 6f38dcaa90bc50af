import { fullJitter, spread } from '../../base/backoff.js'
import { HOUR, MINUTE, SECOND } from '../../base/clock.js'
import { type SubscriptionRecord, updatedAtMs } from '../../base/record.js'
import type { ReadResult } from '../../platform/read-result.js'
import { type ReadClaim, URGENCY } from '../../store/port/store.js'
import { pauseOfHeldBack } from './believe-end.js'
import { evidenceInMs, evidenceOfEnd, GONE_BY, MISSING_READS, mayEnd } from './end-evidence.js'
import {
  type ConcludeEnvironment,
  type Conclusion,
  candidateAfter,
  counters,
  isOlder,
  isUpdated,
  lossOf,
  movesTo,
  nextVerification,
  type ReadFacts,
  readFacts,
  slowingSince,
  tryAgain,
} from './facts.js'
import {
  isLastingRefusal,
  MISSING_RECHECK_MS,
  type Progress,
  pauseAfterRefusal,
  stepAfter,
  VERIFY_DELAYS_MS,
} from './schedule.js'

const RETRY_BASE_MS = SECOND
const RETRY_CAP_MS = 5 * MINUTE

/**
 * The conclusion from a read's result: a pure function, with a case for each kind of result. `end-evidence.ts` has the
 * table of ends.
 *
 * The lease makes reads of one subscription follow one another, so of two records with the same `updated_at` the later
 * read wins. An older `updated_at` never replaces a newer one, unless the platform has repeated it for an hour. A
 * subscription that was read once is never given up.
 */
export function concludeRead(claim: ReadClaim, result: ReadResult, env: ConcludeEnvironment): Conclusion {
  const read = readFacts(claim, result, env)
  const { random } = env
  switch (result.kind) {
    case 'found':
      return concludeFound(read, result.record)
    case 'missing':
      return concludeMissing(read)
    case 'token_refused':
      return concludeRefused(read, 'token_refused')
    case 'refused':
      return concludeRefused(read, result.code)
    case 'outage': {
      const { outages } = read.progress
      const inMs = fullJitter(outages, RETRY_BASE_MS, RETRY_CAP_MS, random)
      return tryAgain(read, result.code, inMs, { outages: outages + 1 })
    }
    case 'throttled': {
      const inMs = spread(result.retryAfterMs ?? SECOND, 0.2, random) + SECOND
      return tryAgain(read, 'platform_throttled', inMs)
    }
    case 'credentials_refused':
      // Longer than all reads pause here (`outcomes.ts`): after that others are tried first.
      return tryAgain(read, 'app_credentials_refused', spread(30 * SECOND, 0.5, random))
  }
}

/**
 * A lag lasts seconds. An answer that the platform repeats for this long counts, even with an older `updated_at`, and
 * even after an uninstall. Not stated by the document; we chose it far above any lag seen.
 */
const LAG_LIMIT_MS = HOUR
/** The platform's clock and the app's may differ by this. */
const SAME_TIME_MS = MINUTE

/** The platform shows a record. It replaces the stored one, unless its `updated_at` is older. */
function concludeFound(read: ReadFacts, record: SubscriptionRecord): Conclusion {
  return isOlder(record, read.before.record) ? keepNewer(read, record) : replace(read, record)
}

function replace(read: ReadFacts, record: SubscriptionRecord): Conclusion {
  const { before, progress, reconcileInMs, claim, env } = read
  const state = env.stateOf(record)
  // Two records need not be the change that an event announced: one that reappears, and a first one that may be the state
  // before the event, because the `created` was lost.
  const mayBeBefore = before.record === null && progress.owed === 1 && isOfBefore(read, record)
  const isNews =
    before.gone === null && !mayBeBefore && (state !== before.state || isUpdated(record, before.record))
  const owed = isNews ? progress.owed - 1 : progress.owed
  const verified = before.record === null || before.gone !== null ? 0 : progress.verified
  const verifyInMs = owed > 0 ? VERIFY_DELAYS_MS[verified] : undefined
  const { uninstalledAt, updateAt, endAt } = claim
  const isLongAgo = (time: number | null) => time !== null && env.now - time >= LAG_LIMIT_MS
  // An uninstall that the platform does not confirm is refuted in time, and not at the next reconcile.
  const refutedInMs =
    uninstalledAt === null || isLongAgo(uninstalledAt)
      ? reconcileInMs
      : Math.max(SECOND, LAG_LIMIT_MS - (env.now - uninstalledAt))
  return {
    found: { record, state, gone: null },
    settled: true,
    failure: null,
    progress: counters(read, verifyInMs === undefined ? {} : { owed, verified: verified + 1 }),
    nextInMs: Math.min(verifyInMs ?? reconcileInMs, refutedInMs, reconcileInMs),
    urgency:
      verifyInMs === undefined && refutedInMs === reconcileInMs ? URGENCY.reconcile : URGENCY.verification,
    ...(record.business_uid === claim.candidateBusinessUid
      ? { candidate: null }
      : candidateAfter(read, false)),
    clearUninstalled: isLongAgo(uninstalledAt),
    // The read may lag behind the event. So an update counts until its change was shown, and an end that a record showed
    // counts until the last verification.
    clearUpdate: owed <= 0 || isLongAgo(updateAt),
    clearEnd: verifyInMs === undefined || isLongAgo(endAt),
    moves: movesTo(before, state, record),
  }
}

/** Whether a record may be older than the event that requested it: after an `update`, or by its date. */
function isOfBefore({ claim, before }: ReadFacts, record: SubscriptionRecord): boolean {
  const eventAt = (claim.cause === 'event' ? before.requestedAt : null) ?? Number.NEGATIVE_INFINITY
  return claim.updateAt !== null || updatedAtMs(record) < eventAt - SAME_TIME_MS
}

/** An older record is a lag: the stored one stays, until the platform has repeated the older one for an hour. */
function keepNewer(read: ReadFacts, record: SubscriptionRecord): Conclusion {
  const { progress, reconcileInMs, env } = read
  const { dissent, owed, verified } = progress
  const insists = { state: env.stateOf(record), updatedAt: updatedAtMs(record) }
  // The same answer, even if unknown fields move or `updated_at` advances.
  const isSame = dissent?.state === insists.state && insists.updatedAt >= dissent.updatedAt
  const since = isSame ? dissent.since : env.now
  if (env.now - since >= LAG_LIMIT_MS) return replace(read, record)
  return {
    settled: true,
    failure: null,
    progress: counters(read, { owed, verified: verified + 1, dissent: { ...insists, since } }),
    nextInMs: Math.min(nextVerification(read) ?? since + LAG_LIMIT_MS - env.now, reconcileInMs),
    urgency: URGENCY.verification,
    moves: [],
  }
}

/** The platform answers that it has no such record. */
function concludeMissing(read: ReadFacts): Conclusion {
  const { before, env } = read
  const failure = 'platform_record_missing'
  if (before.gone) return stillGone(read, failure, true)
  if (before.record === null) return concludeUnread(read, failure, true)
  const missing = read.progress.missing + 1
  const missingSince = read.progress.missingSince ?? env.now
  // Believed, held back, or over anyway: the same follows as after a refusal.
  if (env.belief !== undefined || !mayEnd(read))
    return concludeRefused(read, failure, { missing, missingSince })
  const inMs = MISSING_RECHECK_MS[Math.min(missing, MISSING_READS - 1) - 1] as number
  return { ...tryAgain(read, failure, inMs, { missing, missingSince }), ...candidateAfter(read, false) }
}

/** The platform refuses the read. A subscription that was read before keeps its state, unless its end is believed. */
function concludeRefused(read: ReadFacts, failure: string, changes: Partial<Progress> = {}): Conclusion {
  const { before, progress, env, reconcileInMs } = read
  if (before.gone) return stillGone(read, failure, false)
  if (before.record === null) return concludeUnread(read, failure, false)
  if (env.belief === 'believed') return ended(read, failure)
  const refusals = progress.refusals + 1
  const refusedSince = progress.refusedSince ?? env.now
  const sinceMs = env.now - refusedSince
  const heldBack = env.belief === undefined ? 0 : progress.heldBack + 1
  const retryMs = isLastingRefusal(refusals, sinceMs)
    ? reconcileInMs
    : spread(pauseAfterRefusal(refusals, sinceMs), 0.2, env.random)
  const heldBackMs = heldBack === 0 ? undefined : pauseOfHeldBack(heldBack)
  const verifyInMs = nextVerification(read)
  // A subscription that an event just named is read soon, even if all reads have been refused for days.
  const inMs = Math.min(
    heldBackMs ?? retryMs,
    verifyInMs ?? retryMs,
    retryMs,
    reconcileInMs,
    evidenceInMs(read),
  )
  const counted = { refusals, refusedSince, heldBack, verified: progress.verified + 1, ...changes }
  return {
    ...tryAgain(read, failure, inMs, counted),
    ...candidateAfter(read, verifyInMs === undefined),
  }
}

/**
 * A subscription that was never read and is not shown. The platform may lag behind its own event, so it is read again
 * soon, then less and less often. The answer stays unknown until another business was served meanwhile. It is given up
 * only after many refusals over a long time, while the platform served other reads.
 */
function concludeUnread(read: ReadFacts, failure: string, settled: boolean): Conclusion {
  const { claim, before, progress, env } = read
  const { now, waitMs } = env
  const refusals = progress.refusals + 1
  const refusedSince = progress.refusedSince ?? now
  const step = stepAfter(progress, Math.max(0, now - (before.requestedAt ?? claim.createdAt)), waitMs)
  const verified = step?.next ?? progress.verified
  const isOver = step === undefined
  const isGivenUp = isOver && env.belief === 'believed' && evidenceOfEnd(read) === 'never shown'
  // The verifications are over, and the platform may refuse everybody.
  const isHeldBack = before.verifying && (env.belief === 'many' || env.belief === 'unproven')
  return {
    settled,
    failure,
    progress: counters(
      read,
      isGivenUp ? {} : { ...progress, refusals, refusedSince, refusedAt: now, verified },
    ),
    nextInMs: isGivenUp ? null : (step?.inMs ?? slowingSince(read, refusedSince)),
    verifying: !isOver || isHeldBack,
    ...candidateAfter(read, isOver && !isHeldBack),
    moves: [],
  }
}

/** The evidence for the end of a known subscription is believed. */
function ended(read: ReadFacts, failure: string): Conclusion {
  const { before, env, reconcileInMs, progress } = read
  // Nothing but evidence is believed, and all evidence for the end of a known subscription is in the table.
  const gone = GONE_BY[evidenceOfEnd(read) as keyof typeof GONE_BY]
  const owed = Math.max(1, progress.owed)
  return {
    found: { record: before.record, state: null, gone },
    settled: true,
    failure,
    // Verified as after an event: a business that paid must not wait a day if the record comes back.
    progress: counters(read, { owed, verified: 1, goneSince: env.now }),
    nextInMs: Math.min(VERIFY_DELAYS_MS[0] as number, reconcileInMs),
    urgency: URGENCY.verification,
    ...candidateAfter(read, false),
    moves: lossOf(before),
  }
}

/**
 * Gone, and still not shown. After an event it is read again soon, otherwise less often the longer it is gone.
 * `isConfirmed`: the platform has answered that it has no record; it did not only refuse the read.
 */
function stillGone(read: ReadFacts, failure: string, isConfirmed: boolean): Conclusion {
  const { before, progress, env, reconcileInMs } = read
  const verifyInMs = nextVerification(read)
  const goneSince = progress.goneSince ?? env.now
  const confirmed = {
    found: { record: before.record, state: null, gone: before.gone },
    urgency: verifyInMs === undefined ? URGENCY.reconcile : URGENCY.verification,
  }
  return {
    ...(isConfirmed ? confirmed : {}),
    settled: isConfirmed,
    failure,
    progress: counters(read, { owed: progress.owed, verified: progress.verified + 1, goneSince }),
    nextInMs: Math.min(verifyInMs ?? reconcileInMs, slowingSince(read, goneSince)),
    ...candidateAfter(read, verifyInMs === undefined),
    moves: [],
  }
}
