import { type HealthProblem, problemOf } from '../health.js'
import type { StoreCounts } from '../store/store.js'
import { isMost } from '../work/read-outcomes.js'

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
