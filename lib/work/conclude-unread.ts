import type { Conclusion } from './conclusion.js'
import { evidenceOfEnd } from './end-evidence.js'
import { candidateAfter, counters, type ReadFacts, slowingSince } from './read-facts.js'
import { stepAfter } from './read-schedule.js'

/**
 * A subscription that was never read and is not shown. The platform may lag behind its own event, so it is read again
 * soon, then less and less often. The answer stays unknown until another business was served meanwhile. It is given up
 * only after many refusals over a long time, while the platform served other reads.
 */
export function concludeUnread(read: ReadFacts, failure: string, settled: boolean): Conclusion {
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
