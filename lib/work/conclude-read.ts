import { fullJitter, spread } from '../backoff.js'
import { HOUR, MINUTE, SECOND } from '../clock.js'
import type { ReadResult } from '../platform/read-result.js'
import { type SubscriptionRecord, updatedAtMs } from '../record.js'
import { type ReadClaim, type ReadFinish, URGENCY } from '../store/store.js'
import { isOlder, isUpdated, ownerIn } from './compare-records.js'
import { type ConcludeEnvironment, type Conclusion, lossOf, movesTo } from './conclusion.js'
import { type Progress, progressText, recallProgress } from './read-progress.js'
import {
  halfSince,
  MISSING_RECHECK_MS,
  pauseAfterRefusal,
  stepAfter,
  VERIFY_DELAYS_MS,
} from './read-schedule.js'

/**
 * A lag lasts seconds. An answer that the platform repeats for this long counts, even with an older `updated_at`, and
 * even after an uninstall. Not stated by the document; we chose it far above any lag seen.
 */
const LAG_LIMIT_MS = HOUR
/** A record that disappears counts as gone after three reads over a minute. */
const MISSING_READS = 3
const MISSING_OVER_MS = MINUTE
/** A refusal counts as final after this many tries and this time. */
const REFUSED_TRIES = 12
const REFUSED_OVER_MS = 72 * HOUR
const RETRY_BASE_MS = SECOND
const RETRY_CAP_MS = 5 * MINUTE

/**
 * The conclusion from a read's result: a pure function, with a case for each kind of result.
 *
 * The lease makes reads of one subscription follow one another, so of two records with the same `updated_at` the later
 * read wins. An older `updated_at` never replaces a newer one, unless the platform has repeated it for an hour. A
 * subscription that was read once is never given up.
 */
export function concludeRead(claim: ReadClaim, result: ReadResult, env: ConcludeEnvironment): Conclusion {
  const { now, random, reconcileEveryMs, waitMs, stateOf, hasServedSince, ofCandidate } = env
  const { subscription: before, generation, uninstalledAt } = claim
  const progress = recallProgress(claim, now)
  const reconcileInMs = spread(reconcileEveryMs, 0.2, random)
  const slowingFrom = (time: number) => Math.min(reconcileInMs, spread(halfSince(now - time), 0.2, random))

  switch (result.kind) {
    case 'found':
      return isOlder(result.record, before.record) ? shownOlder(result.record) : shown(result.record)
    case 'missing':
      if (before.gone) return stillGone('platform_record_missing', true)
      return before.record === null ? notShownYet('platform_record_missing', true) : disappeared()
    case 'token_refused':
      return uninstalledAt !== null && before.gone !== 'revoked' ? revoked() : refused('token_refused')
    case 'refused':
      return refused(result.code)
    case 'outage':
      return failed(result.code, fullJitter(progress.outages, RETRY_BASE_MS, RETRY_CAP_MS, random), {
        outages: progress.outages + 1,
      })
    case 'throttled':
      return failed('platform_throttled', spread(result.retryAfterMs ?? SECOND, 0.2, random) + SECOND)
    case 'credentials_refused':
      return failed('app_credentials_refused', spread(30 * SECOND, 0.5, random))
  }

  function shown(record: SubscriptionRecord): Conclusion {
    const state = stateOf(record)
    // A record that reappears need not be the change that an event announced.
    const isNews = before.gone === null && (state !== before.state || isUpdated(record, before.record))
    const owed = isNews ? progress.owed - 1 : progress.owed
    const verified = before.record === null ? 0 : progress.verified
    const verifyInMs = owed > 0 ? VERIFY_DELAYS_MS[verified] : undefined
    const isServedLongAfterUninstall = uninstalledAt !== null && now - uninstalledAt >= LAG_LIMIT_MS
    return {
      found: { record, state, gone: null },
      settled: true,
      failure: null,
      progress: remember(verifyInMs === undefined ? {} : { owed, verified: verified + 1 }),
      nextInMs: Math.min(verifyInMs ?? reconcileInMs, reconcileInMs),
      urgency: verifyInMs === undefined ? URGENCY.reconcile : URGENCY.verification,
      candidate: null,
      clearUninstalled: isServedLongAfterUninstall,
      moves: movesTo(before, state, record),
    }
  }

  function shownOlder(record: SubscriptionRecord): Conclusion {
    const insists = { state: stateOf(record), updatedAt: updatedAtMs(record) }
    const { dissent } = progress
    // The same answer, even if unknown fields move or `updated_at` advances.
    const isSame = dissent?.state === insists.state && insists.updatedAt >= dissent.updatedAt
    const since = isSame ? dissent.since : now
    if (now - since >= LAG_LIMIT_MS) return shown(record)
    const verifyInMs = nextVerification()
    return {
      settled: true,
      failure: null,
      progress: remember({
        owed: progress.owed,
        verified: progress.verified + 1,
        dissent: { ...insists, since },
      }),
      nextInMs: Math.min(verifyInMs ?? since + LAG_LIMIT_MS - now, reconcileInMs),
      urgency: URGENCY.verification,
      moves: [],
    }
  }

  /**
   * A subscription that was never read and is not shown. The platform may lag behind its own event, so it is read again
   * soon, then less and less often. It is given up only after many refusals over a long time, while the platform served
   * other reads.
   */
  function notShownYet(code: string, settled: boolean): Conclusion {
    const refusals = progress.refusals + 1
    const refusedSince = progress.refusedSince ?? now
    const step = nextStep()
    const verified = step?.next ?? progress.verified
    const isHopeless = refusals >= REFUSED_TRIES && now - refusedSince >= REFUSED_OVER_MS
    const isGivenUp = isHopeless && step === undefined && hasServedSince(progress.refusedAt ?? refusedSince)
    return {
      settled,
      failure: code,
      progress: remember(isGivenUp ? {} : { ...progress, refusals, refusedSince, refusedAt: now, verified }),
      nextInMs: isGivenUp ? null : (step?.inMs ?? slowingFrom(refusedSince)),
      verifying: step !== undefined,
      ...candidateAfter(step === undefined),
      moves: [],
    }
  }

  /** The platform does not show a record that was read before. */
  function disappeared(): Conclusion {
    const missing = progress.missing + 1
    const missingSince = progress.missingSince ?? now
    if (missing >= MISSING_READS && now - missingSince >= MISSING_OVER_MS) {
      return {
        found: { record: before.record, state: null, gone: 'missing' },
        settled: true,
        failure: 'platform_record_missing',
        // Verified as after an event: a business that paid must not wait a day if the record comes back.
        progress: remember({ owed: 1, verified: 1, goneSince: now }),
        nextInMs: Math.min(VERIFY_DELAYS_MS[0] as number, reconcileInMs),
        urgency: URGENCY.verification,
        ...candidateAfter(true),
        moves: lossOf(before),
      }
    }
    const inMs = MISSING_RECHECK_MS[Math.min(missing, 2) - 1] as number
    return { ...failed('platform_record_missing', inMs, { missing, missingSince }), ...candidateAfter(false) }
  }

  /** The business uninstalled the app, and the platform refuses a token for it: together that revokes. */
  function revoked(): Conclusion {
    return {
      found: { record: before.record, state: null, gone: 'revoked' },
      settled: true,
      failure: 'token_refused',
      progress: remember({ goneSince: now }),
      nextInMs: slowingFrom(now),
      urgency: URGENCY.reconcile,
      ...candidateAfter(true),
      moves: lossOf(before),
    }
  }

  /** Gone, and still not shown. After an event it is read again soon, otherwise less often the longer it is gone. */
  function stillGone(code: string, isConfirmed: boolean): Conclusion {
    const verifyInMs = nextVerification()
    const goneSince = progress.goneSince ?? now
    const { owed, verified } = progress
    return {
      ...(isConfirmed ? { found: { record: before.record, state: null, gone: before.gone } } : {}),
      settled: isConfirmed,
      failure: code,
      progress: remember({ owed, verified: verified + 1, goneSince }),
      nextInMs: Math.min(verifyInMs ?? reconcileInMs, slowingFrom(goneSince)),
      ...(isConfirmed
        ? { urgency: verifyInMs === undefined ? URGENCY.reconcile : URGENCY.verification }
        : {}),
      ...candidateAfter(verifyInMs === undefined),
      moves: [],
    }
  }

  function refused(code: string): Conclusion {
    if (before.gone) return stillGone(code, false)
    if (before.record === null) return notShownYet(code, false)
    const refusals = progress.refusals + 1
    const refusedSince = progress.refusedSince ?? now
    const isLasting = refusals >= REFUSED_TRIES && now - refusedSince >= REFUSED_OVER_MS
    const retryMs = isLasting
      ? reconcileInMs
      : spread(pauseAfterRefusal(refusals, now - refusedSince), 0.2, random)
    // A subscription that an event just named is read soon, even if all reads have been refused for days.
    const inMs = Math.min(nextVerification() ?? retryMs, retryMs, reconcileInMs)
    const verified = progress.verified + 1
    return {
      ...failed(code, inMs, { refusals, refusedSince, verified }),
      ...candidateAfter(nextVerification() === undefined),
    }
  }

  function failed(code: string, inMs: number, changes: Partial<Progress> = {}): Conclusion {
    return {
      settled: false,
      failure: code,
      progress: remember({ ...progress, ...changes }),
      nextInMs: inMs,
      verifying: before.verifying,
      moves: [],
    }
  }

  /** The delay before the next verification; undefined if no event waits for one, or all are done. */
  function nextVerification(): number | undefined {
    return progress.owed > 0 ? VERIFY_DELAYS_MS[progress.verified] : undefined
  }

  function nextStep() {
    return stepAfter(progress, Math.max(0, now - (before.requestedAt ?? claim.createdAt)), waitMs)
  }

  /**
   * The candidate business for the next read. If the record of a known subscription names another business, that is the
   * candidate; for a subscription that was never read such a record is somebody else's. A candidate is dropped when all
   * its tries are used up.
   */
  function candidateAfter(isTheEnd: boolean): Pick<ReadFinish, 'candidate'> {
    const owner = ownerIn(result, before)
    if (owner !== undefined && !ofCandidate) return { candidate: owner }
    const isAnswered = ofCandidate && ['missing', 'refused', 'token_refused'].includes(ofCandidate.kind)
    return isTheEnd && isAnswered ? { candidate: null } : {}
  }

  /** Keeps only the fields in `changes`; every other counter starts anew. */
  function remember(changes: Partial<Progress>): string {
    return progressText(generation, changes)
  }
}
