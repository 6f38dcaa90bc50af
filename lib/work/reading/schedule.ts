import { HOUR, MINUTE, SECOND } from '../../base/clock.js'
import { MIN_READ_INTERVAL_MS, type ReadClaim } from '../../store/port/store.js'

/** Verifications after an event whose change no read has shown yet: the platform may lag behind its own event. */
export const VERIFY_DELAYS_MS: readonly number[] = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]

/** When a new subscription is read again for waiting callers: shares of `freshness.waitMs`. */
export const EARLY_SHARES: readonly number[] = [0.25, 0.85]

/** Re-reads of a record that is not shown any more, before it counts as gone. */
export const MISSING_RECHECK_MS: readonly number[] = [20 * SECOND, 40 * SECOND]

/** No earlier than this after a request the verifications of a new subscription are over, however often it was read. */
const VERIFIED_MS = VERIFY_DELAYS_MS.reduce((sum, ms) => sum + ms, 0)

/**
 * The next read of a new subscription: at most two early ones for waiting callers, then as every verification. If reads came
 * earlier than their turn, because another business was shown again, one more follows at the end.
 */
export function stepAfter(
  { owed, verified }: { owed: number; verified: number },
  sinceRequestMs: number,
  waitMs: number,
): { inMs: number; next: number } | undefined {
  if (owed === 0) return undefined
  for (let step = verified; step < EARLY_SHARES.length; step++) {
    const inMs = (EARLY_SHARES[step] as number) * waitMs - sinceRequestMs
    if (inMs > 0) return { inMs: Math.max(inMs, MIN_READ_INTERVAL_MS), next: step + 1 }
  }
  const step = Math.max(verified, EARLY_SHARES.length)
  const inMs = VERIFY_DELAYS_MS[step - EARLY_SHARES.length]
  if (inMs !== undefined) return { inMs, next: step + 1 }
  return sinceRequestMs < VERIFIED_MS ? { inMs: VERIFIED_MS - sinceRequestMs, next: step } : undefined
}

/**
 * The pause after a refused read of a subscription that was read before: 2 s, 4 s and so on up to 5 min, then a tenth of
 * the time since the first refusal, at most half an hour. So the app finds that a mistake has been put right after a
 * tenth of the time that it lasted, and a business that is always refused costs two calls an hour until the refusals
 * count as final.
 */
export function pauseAfterRefusal(refusals: number, sinceMs: number): number {
  const atFirst = Math.min(5 * MINUTE, SECOND * 2 ** Math.min(refusals, 30))
  return Math.min(30 * MINUTE, Math.max(atFirst, sinceMs / 10))
}

/** A refusal counts as final after this many tries and this time. */
const REFUSED_TRIES = 12
const REFUSED_OVER_MS = 72 * HOUR

/** Whether the refusals of a subscription count as final. */
export function isLastingRefusal(refusals: number, sinceMs: number): boolean {
  return refusals >= REFUSED_TRIES && sinceMs >= REFUSED_OVER_MS
}

/** A growing interval: half of the time passed so far, at least five minutes. */
export function halfSince(ms: number): number {
  return Math.max(5 * MINUTE, ms / 2)
}

/** The counters of the reader for one subscription. The store keeps them between tries. */
export interface Progress {
  /** The generation that the counters belong to; a further request resets some of them. */
  generation: number
  /** Requests for which no read has shown a change yet. Each announced one. */
  owed: number
  /** The steps of the schedule that are done: verifications, and before the first record the early reads too. */
  verified: number
  /** Reads that the platform did not answer since it last showed a record, or a read was requested. */
  outages: number
  /**
   * Reads since it last showed a record that it refused; also those that it did not show, before the first record and where
   * its end is canceled or evident. With the first time and, before the first record, the last one.
   */
  refusals: number
  refusedSince: number | null
  refusedAt: number | null
  /** Reads that did not show a known record, since it was last shown. Refusals and outages between them change nothing. */
  missing: number
  missingSince: number | null
  goneSince: number | null
  /** Consecutive reads whose evidence for an end was held back. */
  heldBack: number
  /** An older state that the platform repeats, and since when. */
  dissent: { state: string | null; updatedAt: number; since: number } | null
}

const FRESH: Progress = {
  generation: 0,
  owed: 0,
  verified: 0,
  outages: 0,
  refusals: 0,
  refusedSince: null,
  refusedAt: null,
  missing: 0,
  missingSince: null,
  goneSince: null,
  heldBack: 0,
  dissent: null,
}

/** The counters as they were stored. Times in the future become `now`: the wall clock was ahead when they were recorded. */
export function recallProgress(
  { progress: text, generation, createdAt }: Pick<ReadClaim, 'progress' | 'generation' | 'createdAt'>,
  now: number,
): Progress {
  const progress: Progress =
    text === null
      ? FRESH
      : withTimes({ ...FRESH, ...(JSON.parse(text) as Partial<Progress>) }, (time) =>
          Math.min(createdAt + time, now),
        )
  if (progress.generation === generation) return progress
  // A further request announces a further change. The counters of refusals, missing records and dissent stay.
  const owed = progress.owed + generation - progress.generation
  return { ...progress, generation, owed, verified: 0, outages: 0 }
}

/**
 * The counters as JSON. Every counter that is not in `changes` starts anew. Times are stored as those since the creation of the
 * subscription, which the store gives to each process by that one's clock.
 */
export function progressText(
  { generation, createdAt }: Pick<ReadClaim, 'generation' | 'createdAt'>,
  changes: Partial<Progress>,
): string {
  return JSON.stringify(withTimes({ ...FRESH, ...changes, generation }, (time) => time - createdAt))
}

function withTimes(progress: Progress, convert: (time: number) => number): Progress {
  const converted = (time: number | null) => (time === null ? null : convert(time))
  const { dissent } = progress
  return {
    ...progress,
    refusedSince: converted(progress.refusedSince),
    refusedAt: converted(progress.refusedAt),
    missingSince: converted(progress.missingSince),
    goneSince: converted(progress.goneSince),
    dissent: dissent && { ...dissent, since: convert(dissent.since) },
  }
}
