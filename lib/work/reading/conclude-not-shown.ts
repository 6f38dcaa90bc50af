import { spread } from '../../base/backoff.js'
import { pauseOfHeldBack } from './believe-end.js'
import { ended, stillGone } from './conclude-gone.js'
import { evidenceInMs, evidenceOfEnd, MISSING_READS } from './end-evidence.js'
import {
  type Conclusion,
  candidateAfter,
  counters,
  nextVerification,
  type ReadFacts,
  slowingSince,
  tryAgain,
} from './facts.js'
import {
  isLastingRefusal,
  MISSING_RECHECK_MS,
  type Progress,
  pauseAfterRefusal,
  stepAfter,
} from './schedule.js'

/** The platform answers that it has no such record. */
export function concludeMissing(read: ReadFacts): Conclusion {
  const { before, env } = read
  const failure = 'platform_record_missing'
  if (before.gone) return stillGone(read, failure, true)
  if (before.record === null) return concludeUnread(read, failure, true)
  if (env.belief === 'believed') return ended(read, failure)
  const missing = read.progress.missing + 1
  const missingSince = read.progress.missingSince ?? env.now
  // Held back, or canceled: it is read again as after a refusal.
  if (env.belief !== undefined || before.state === 'canceled')
    return concludeRefused(read, failure, { missing, missingSince })
  const inMs = MISSING_RECHECK_MS[Math.min(missing, MISSING_READS - 1) - 1] as number
  return { ...tryAgain(read, failure, inMs, { missing, missingSince }), ...candidateAfter(read, false) }
}

/** The platform refuses the read. A subscription that was read before keeps its state, unless its end is believed. */
export function concludeRefused(
  read: ReadFacts,
  failure: string,
  changes: Partial<Progress> = {},
): Conclusion {
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
