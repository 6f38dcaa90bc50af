import { fullJitter, spread } from '../backoff.js'
import { DAY, HOUR, MINUTE, SECOND } from '../clock.js'
import type { ReadResult } from '../platform/client.js'
import { type SubscriptionRecord, updatedAtMs } from '../record.js'
import type { ReadClaim, ReadFinish } from '../store/store.js'

export interface Conclusion extends Omit<ReadFinish, 'change'> {
  /** Set when the effective purchase_state moved. */
  moved?: { from: string | null; to: string | null; record: SubscriptionRecord | null }
}

/** Re-reads while an event promised a change that no read has shown yet: a read may lag behind its event. */
export const VERIFY_DELAYS_MS = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]
/**
 * A lag lasts seconds; what the platform has said for this long is its answer, even against an `updated_at` that runs
 * backward, and even against an uninstall. Not stated by the document; we chose it far above any lag seen.
 */
const LAG_LIMIT_MS = HOUR
/** A record that disappears is believed gone after three reads over a minute. */
const MISSING_READS = 3
const MISSING_OVER_MS = MINUTE
const MISSING_RECHECK_MS = [20 * SECOND, 40 * SECOND]
/** A refusal counts as the platform's last word after both. */
const REFUSED_TRIES = 12
const REFUSED_OVER_MS = 72 * HOUR
const RETRY_BASE_MS = SECOND
const RETRY_CAP_MS = 5 * MINUTE

/** The reader's memory between tries of one subscription, kept beside it by the store. */
interface Progress {
  /** The generation the counters below speak of; a further event starts them anew. */
  generation: number
  /** Events that no change has been seen for yet: each promised one, and several may have come together. */
  owed: number
  verified: number
  outages: number
  refusals: number
  refusedSince: number | null
  /** Reads in a row that did not show a record we had. */
  missing: number
  missingSince: number | null
  /** An older record that the platform shows again and again, and since when. */
  dissent: { record: string; since: number } | null
}

/**
 * What a read's result means for a subscription: pure, and a table by the result's kind.
 *
 * Reads of one subscription follow one another (its lease), so of two records with the same `updated_at` the later read
 * is the later truth. An older `updated_at` never replaces a newer one, unless the platform has kept to it for an hour.
 */
export function concludeRead(
  claim: ReadClaim,
  result: ReadResult,
  env: {
    now: number
    random: () => number
    reconcileEveryMs: number
    /** The purchase_state a record stands for. */
    stateOf(record: SubscriptionRecord): string
  },
): Conclusion {
  const { now, random, reconcileEveryMs, stateOf } = env
  const { subscription: before, wanted, uninstalledAt } = claim
  const progress = recall(claim)
  const reconcileInMs = spread(reconcileEveryMs, 0.2, random)

  switch (result.kind) {
    case 'found':
      return isOlder(result.record, before.record) ? shownOlder(result.record) : shown(result.record)
    case 'missing':
      return before.record === null || before.gone ? stillMissing() : disappeared()
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
    // What comes back after it was gone need not be the change that an event promised.
    const isNews = before.gone === null && (state !== before.state || isUpdated(record, before.record))
    const owed = isNews ? Math.max(0, progress.owed - 1) : progress.owed
    const verifyInMs = owed > 0 ? VERIFY_DELAYS_MS[progress.verified] : undefined
    const isServedLongAfterUninstall = uninstalledAt !== null && now - uninstalledAt >= LAG_LIMIT_MS
    return {
      found: { record, state, gone: null, confirmed: true },
      settled: true,
      failure: null,
      progress: remember(verifyInMs === undefined ? {} : { owed, verified: progress.verified + 1 }),
      nextInMs: Math.min(verifyInMs ?? reconcileInMs, reconcileInMs),
      clearUninstalled: isServedLongAfterUninstall,
      ...movedTo(state, record),
    }
  }

  function shownOlder(record: SubscriptionRecord): Conclusion {
    const text = JSON.stringify(record)
    const since = progress.dissent?.record === text ? progress.dissent.since : now
    if (now - since >= LAG_LIMIT_MS) return shown(record)
    const verifyInMs = nextVerification()
    return {
      settled: true,
      failure: null,
      progress: remember({
        owed: progress.owed,
        verified: progress.verified + 1,
        dissent: { record: text, since },
      }),
      nextInMs: Math.min(verifyInMs ?? since + LAG_LIMIT_MS - now, reconcileInMs),
    }
  }

  /** No record, and there was none before (or it is gone already). */
  function stillMissing(): Conclusion {
    const verifyInMs = nextVerification()
    const isHopeless =
      before.record === null && now - (before.requestedAt ?? claim.createdAt) >= REFUSED_OVER_MS
    return {
      ...(before.gone
        ? { found: { record: before.record, state: null, gone: before.gone, confirmed: true } }
        : {}),
      settled: true,
      failure: 'platform_record_missing',
      progress: remember({ owed: progress.owed, verified: progress.verified + 1 }),
      nextInMs: isHopeless ? null : Math.min(verifyInMs ?? reconcileInMs, reconcileInMs),
    }
  }

  /** A record we had is not shown. */
  function disappeared(): Conclusion {
    const missing = progress.missing + 1
    const missingSince = progress.missingSince ?? now
    if (missing >= MISSING_READS && now - missingSince >= MISSING_OVER_MS) {
      return {
        found: { record: before.record, state: null, gone: 'missing', confirmed: true },
        settled: true,
        failure: 'platform_record_missing',
        // Looked at again as after an event: who paid must not wait a day for a record that comes back.
        progress: remember({ owed: 1, verified: 1 }),
        nextInMs: Math.min(VERIFY_DELAYS_MS[0] as number, reconcileInMs),
        ...movedTo(null, before.record),
      }
    }
    return failed('platform_record_missing', MISSING_RECHECK_MS[Math.min(missing, 2) - 1] as number, {
      missing,
      missingSince,
    })
  }

  /** Uninstalled, and the platform no longer gives us a token for the business: together that ends it. */
  function revoked(): Conclusion {
    return {
      found: { record: before.record, state: null, gone: 'revoked', confirmed: true },
      settled: true,
      failure: 'token_refused',
      progress: remember({}),
      nextInMs: reconcileInMs,
      ...movedTo(null, before.record),
    }
  }

  function refused(code: string): Conclusion {
    const refusals = progress.refusals + 1
    const refusedSince = progress.refusedSince ?? now
    if (refusals >= REFUSED_TRIES && now - refusedSince >= REFUSED_OVER_MS) {
      return { settled: false, failure: code, progress: remember({}), nextInMs: null }
    }
    // What was never read may be made up, and what is revoked is answered: neither is worth a call every few minutes.
    const capMs = before.gone ? DAY : before.record === null ? HOUR : RETRY_CAP_MS
    return failed(code, fullJitter(refusals, RETRY_BASE_MS, capMs, random), { refusals, refusedSince })
  }

  function failed(code: string, inMs: number, changes: Partial<Progress> = {}): Conclusion {
    return { settled: false, failure: code, progress: remember({ ...progress, ...changes }), nextInMs: inMs }
  }

  /** The delay before the next verification; undefined when no event is waiting for one, or all have been made. */
  function nextVerification(): number | undefined {
    return progress.owed > 0 ? VERIFY_DELAYS_MS[progress.verified] : undefined
  }

  function movedTo(state: string | null, record: SubscriptionRecord | null): Pick<Conclusion, 'moved'> {
    return state === before.state ? {} : { moved: { from: before.state, to: state, record } }
  }

  /** A good read forgets everything but what `changes` names. */
  function remember(changes: Partial<Progress>): string {
    return JSON.stringify({ ...FRESH, generation: wanted, ...changes })
  }
}

const FRESH: Progress = {
  generation: 0,
  owed: 0,
  verified: 0,
  outages: 0,
  refusals: 0,
  refusedSince: null,
  missing: 0,
  missingSince: null,
  dissent: null,
}

function recall(claim: ReadClaim): Progress {
  const progress: Progress = claim.progress === null ? FRESH : { ...FRESH, ...JSON.parse(claim.progress) }
  if (progress.generation === claim.wanted) return progress
  // A further event promises a further change; what the platform has been refusing, hiding or insisting on stays.
  const owed = progress.owed + claim.wanted - progress.generation
  return { ...progress, generation: claim.wanted, owed, verified: 0, outages: 0 }
}

/** By `updated_at` where both have one: fields may come and move without a change. */
function isUpdated(record: SubscriptionRecord, before: SubscriptionRecord | null): boolean {
  if (before === null) return true
  const [now, then] = [updatedAtMs(record), updatedAtMs(before)]
  return Number.isNaN(now) || Number.isNaN(then)
    ? JSON.stringify(record) !== JSON.stringify(before)
    : now !== then
}

/** By `updated_at`; a missing or unreadable one says nothing about age. */
function isOlder(record: SubscriptionRecord, than: SubscriptionRecord | null): boolean {
  return than !== null && updatedAtMs(record) < updatedAtMs(than)
}
