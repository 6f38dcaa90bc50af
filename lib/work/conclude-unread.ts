import type { Conclusion } from './conclusion.js'
import { candidateAfter, counters, type ReadFacts, slowingSince } from './read-facts.js'
import { stepAfter } from './read-schedule.js'

/**
 * A subscription that was never read and is not shown. The platform may lag behind its own event, so it is read again
 * soon, then less and less often. It is given up only after many refusals over a long time, while the platform served
 * other reads.
 */
export function concludeUnread(read: ReadFacts, failure: string, settled: boolean): Conclusion {
  const { claim, before, progress, env } = read
  const { now, waitMs } = env
  const refusals = progress.refusals + 1
  const refusedSince = progress.refusedSince ?? now
  const step = stepAfter(progress, Math.max(0, now - (before.requestedAt ?? claim.createdAt)), waitMs)
  const verified = step?.next ?? progress.verified
  const isGivenUp = step === undefined && env.belief === 'believed'
  return {
    settled,
    failure,
    progress: counters(
      read,
      isGivenUp ? {} : { ...progress, refusals, refusedSince, refusedAt: now, verified },
    ),
    nextInMs: isGivenUp ? null : (step?.inMs ?? slowingSince(read, refusedSince)),
    verifying: step !== undefined,
    ...candidateAfter(read, step === undefined),
    moves: [],
  }
}
