import { spread } from '../backoff.js'
import { pauseOfHeldBack } from './believe-end.js'
import { ended, stillGone } from './conclude-gone.js'
import { concludeUnread } from './conclude-unread.js'
import type { Conclusion } from './conclusion.js'
import { evidenceInMs } from './end-evidence.js'
import { candidateAfter, nextVerification, type ReadFacts, tryAgain } from './read-facts.js'
import type { Progress } from './read-progress.js'
import { isLastingRefusal, pauseAfterRefusal } from './read-schedule.js'

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
