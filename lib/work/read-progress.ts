import type { ReadClaim } from '../store/store.js'

/** The reader's memory between tries of one subscription, kept beside it by the store. */
export interface Progress {
  /** The generation the counters below are about; a further request starts them anew. */
  generation: number
  /** Requests that no change has been seen for yet: each promised one, and several may have come together. */
  owed: number
  verified: number
  outages: number
  refusals: number
  refusedSince: number | null
  refusedAt: number | null
  /** Reads in a row that did not show a record we had. */
  missing: number
  missingSince: number | null
  goneSince: number | null
  /** An older state that the platform keeps to, and since when. */
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
  dissent: null,
}

export function recallProgress({ progress: text, generation }: ReadClaim, now: number): Progress {
  const progress: Progress =
    text === null ? FRESH : notAfter(now, { ...FRESH, ...(JSON.parse(text) as Partial<Progress>) })
  if (progress.generation === generation) return progress
  // A further request promises a further change; what the platform has been refusing, hiding or insisting on stays.
  const owed = progress.owed + generation - progress.generation
  return { ...progress, generation, owed, verified: 0, outages: 0 }
}

/** Nothing has lasted since a time to come: that was noted by a wall clock which was ahead, and is right now. */
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

/** What is not named in `changes` is forgotten. */
export function progressText(generation: number, changes: Partial<Progress>): string {
  return JSON.stringify({ ...FRESH, ...changes, generation })
}
