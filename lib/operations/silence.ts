import { type HealthProblem, problemOf } from '../health.js'
import type { StoreCounts } from '../store/store.js'

/** Fewer may be chance: a delivery that was lost while the app restarted. */
const FEW = 3

/**
 * A problem when most of the recent changes came without an event: only the reconcile still finds purchases and ends, up
 * to a day late. Changes that an import or a read of all found do not count, nor those of subscriptions that `track` has
 * just added.
 */
export function silenceProblems(counts: Partial<StoreCounts>): HealthProblem[] {
  const { recentChanges = 0, unannouncedChanges = 0 } = counts
  if (unannouncedChanges < FEW || unannouncedChanges * 2 <= recentChanges) return []
  const message = `${unannouncedChanges} of the last ${recentChanges} changes of this week came without an event`
  return [problemOf('events_missing', message)]
}
