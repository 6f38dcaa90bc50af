import { type HealthProblem, problemOf } from '../../base/health.js'
import type { StoreCounts } from '../../store/port/store.js'
import { isMost } from '../../work/reading/outcomes.js'

/** Fewer may be chance: a delivery that was lost while the app restarted. */
const FEW = 3

/**
 * A problem when most of the recent first records, or most of the recent later changes, came without an event. A
 * registration belongs to one event: without that of updates, purchases are still announced. Changes that an import or a
 * read of all found do not count, nor those of subscriptions that `track` has just added.
 */
export function silenceProblems(counts: Partial<StoreCounts>): HealthProblem[] {
  const { recentChanges = 0, unannouncedChanges = 0 } = counts
  const { recentFirstRecords = 0, unannouncedFirstRecords = 0 } = counts
  const silent = [
    ...mostly(unannouncedFirstRecords, recentFirstRecords, 'first records'),
    ...mostly(unannouncedChanges, recentChanges, 'changes of known subscriptions'),
  ]
  if (silent.length === 0) return []
  return [problemOf('events_missing', `${silent.join(', and ')} came without an event this week`)]
}

function mostly(unannounced: number, recent: number, what: string): string[] {
  if (unannounced < FEW || unannounced * 2 <= recent) return []
  return [`${unannounced} of the last ${recent} ${what}`]
}

/**
 * A problem when the answers of most businesses are stale, or of many more than a thousand, because the others are not
 * counted further. It follows from the rows, so every process reports it at once, also one that was just started or has no
 * worker, and whatever the cause is.
 */
export function staleAnswers({ stale = 0, confirmed = 0 }: Partial<StoreCounts>): HealthProblem[] {
  if (!isMost(stale, stale + confirmed)) return []
  const what = `the answers of ${stale} businesses are stale, and those of ${confirmed} are confirmed`
  return [problemOf('answers_stale', what)]
}
