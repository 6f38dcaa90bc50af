import { spread } from '../backoff.js'
import { revoked, stillGone } from './conclude-gone.js'
import { concludeUnread } from './conclude-unread.js'
import type { Conclusion } from './conclusion.js'
import { candidateAfter, nextVerification, type ReadFacts, tryAgain } from './read-facts.js'
import type { Progress } from './read-progress.js'
import { isLastingRefusal, pauseAfterRefusal } from './read-schedule.js'

/** The platform gives no token for the business. After an uninstall that revokes; otherwise it is a refusal. */
export function concludeTokenRefused(read: ReadFacts): Conclusion {
  const { claim, before } = read
  return claim.uninstalledAt !== null && before.gone !== 'revoked'
    ? revoked(read)
    : concludeRefused(read, 'token_refused')
}

/** The platform refuses the read. A subscription that was read before keeps its state. */
export function concludeRefused(
  read: ReadFacts,
  failure: string,
  changes: Partial<Progress> = {},
): Conclusion {
  const { before, progress, env, reconcileInMs } = read
  if (before.gone) return stillGone(read, failure, false)
  if (before.record === null) return concludeUnread(read, failure, false)
  const refusals = progress.refusals + 1
  const refusedSince = progress.refusedSince ?? env.now
  const sinceMs = env.now - refusedSince
  const retryMs = isLastingRefusal(refusals, sinceMs)
    ? reconcileInMs
    : spread(pauseAfterRefusal(refusals, sinceMs), 0.2, env.random)
  const verifyInMs = nextVerification(read)
  // A subscription that an event just named is read soon, even if all reads have been refused for days.
  const inMs = Math.min(verifyInMs ?? retryMs, retryMs, reconcileInMs)
  const counted = { refusals, refusedSince, verified: progress.verified + 1, ...changes }
  return {
    ...tryAgain(read, failure, inMs, counted),
    ...candidateAfter(read, verifyInMs === undefined),
  }
}
