import { URGENCY } from '../../store/port/store.js'
import { evidenceOfEnd, GONE_BY } from './end-evidence.js'
import {
  type Conclusion,
  candidateAfter,
  counters,
  lossOf,
  nextVerification,
  type ReadFacts,
  slowingSince,
} from './facts.js'
import { VERIFY_DELAYS_MS } from './schedule.js'

/** The evidence for the end of a known subscription is believed. */
export function ended(read: ReadFacts, failure: string): Conclusion {
  const { before, env, reconcileInMs, progress } = read
  const evidence = evidenceOfEnd(read)
  const gone = evidence === undefined || evidence === 'never shown' ? 'ended' : GONE_BY[evidence]
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
export function stillGone(read: ReadFacts, failure: string, isConfirmed: boolean): Conclusion {
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
