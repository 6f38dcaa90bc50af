import type { ReadClaim } from '../store/store.js'

/** The counters of the reader for one subscription. The store keeps them between tries. */
export interface Progress {
  /** The generation that the counters belong to; a further request resets some of them. */
  generation: number
  /** Requests for which no read has shown a change yet. Each announced one. */
  owed: number
  /** The steps of the schedule that are done: verifications, and before the first record the early reads too. */
  verified: number
  /** Consecutive reads that the platform did not answer. */
  outages: number
  /** Consecutive reads that it refused or, before the first record, did not show; with the first and the last time. */
  refusals: number
  refusedSince: number | null
  refusedAt: number | null
  /** Consecutive reads that did not show a known record. */
  missing: number
  missingSince: number | null
  goneSince: number | null
  /** Consecutive reads whose evidence for an end was held back. */
  heldBack: number
  /** An older state that the platform repeats, and since when. */
  dissent: { state: string; updatedAt: number; since: number } | null
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

export function recallProgress({ progress: text, generation }: ReadClaim, now: number): Progress {
  const progress: Progress =
    text === null ? FRESH : notAfter(now, { ...FRESH, ...(JSON.parse(text) as Partial<Progress>) })
  if (progress.generation === generation) return progress
  // A further request announces a further change. The counters of refusals, missing records and dissent stay.
  const owed = progress.owed + generation - progress.generation
  return { ...progress, generation, owed, verified: 0, outages: 0 }
}

/** Replaces times in the future by `now`: the wall clock was ahead when they were recorded. */
function notAfter(now: number, progress: Progress): Progress {
  const past = (time: number | null) => (time === null ? null : Math.min(time, now))
  const { dissent } = progress
  return {
    ...progress,
    refusedSince: past(progress.refusedSince),
    refusedAt: past(progress.refusedAt),
    missingSince: past(progress.missingSince),
    goneSince: past(progress.goneSince),
    dissent: dissent && { ...dissent, since: Math.min(dissent.since, now) },
  }
}

/** The counters as JSON. Every counter that is not in `changes` starts anew. */
export function progressText(generation: number, changes: Partial<Progress>): string {
  return JSON.stringify({ ...FRESH, ...changes, generation })
}
