import { HOUR, MINUTE, SECOND } from '../../base/clock.js'
import { type SubscriptionRecord, updatedAtMs } from '../../base/record.js'
import { URGENCY } from '../../store/port/store.js'
import {
  type Conclusion,
  candidateAfter,
  counters,
  isOlder,
  isUpdated,
  movesTo,
  nextVerification,
  type ReadFacts,
} from './facts.js'
import { VERIFY_DELAYS_MS } from './schedule.js'

/**
 * A lag lasts seconds. An answer that the platform repeats for this long counts, even with an older `updated_at`, and
 * even after an uninstall. Not stated by the document; we chose it far above any lag seen.
 */
const LAG_LIMIT_MS = HOUR
/** The platform's clock and the app's may differ by this. */
const SAME_TIME_MS = MINUTE

/** The platform shows a record. It replaces the stored one, unless its `updated_at` is older. */
export function concludeFound(read: ReadFacts, record: SubscriptionRecord): Conclusion {
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
  const eventAt = claim.cause === 'event' ? before.requestedAt : null
  return claim.updateAt !== null || (eventAt !== null && updatedAtMs(record) < eventAt - SAME_TIME_MS)
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
