import { type Clock, MINUTE } from '../clock.js'
import { type HealthProblem, problemOf } from '../health.js'
import type { StoreCounts } from '../store/store.js'

/** A worker reads what is due within seconds. After a start, or behind many others, it takes longer. */
const LONG_MS = 10 * MINUTE
/** Each measurement of the same due time differs by some milliseconds. */
const MOVED_MS = MINUTE / 60

/**
 * Detects that no worker reads what is due: the longest due read has been due for ten minutes, and during the last ten
 * minutes of this process none of the longest due ones was read. A process that was down begins with many overdue reads,
 * which are no problem while they become fewer. They are one at once when they are so late that answers are `stale`.
 */
export function createOverdueReads(options: { reconcileEveryMs: number; maxStaleMs: number; clock: Clock }) {
  const { maxStaleMs, clock } = options
  const reconcileEveryMs = Math.min(options.reconcileEveryMs, maxStaleMs / 2)
  const staleAfterMs = Math.max(MINUTE, maxStaleMs - reconcileEveryMs)
  /** When the read that was longest due at the last look became due; undefined if none was. */
  let dueAt: number | undefined
  /** When the longest due read was done, or none was due, or this process began. */
  let progressAt = clock.monotonic()

  return {
    opened() {
      progressAt = clock.monotonic()
    },

    problems(counts: Partial<Pick<StoreCounts, 'oldestOverdueMs'>> | null): HealthProblem[] {
      if (!counts) return []
      const now = clock.monotonic()
      const overdueMs = counts.oldestOverdueMs ?? 0
      if (overdueMs === 0) {
        dueAt = undefined
        progressAt = now
        return []
      }
      if (dueAt !== undefined && now - overdueMs > dueAt + MOVED_MS) progressAt = now
      dueAt = now - overdueMs
      const isStuck = overdueMs >= LONG_MS && now - progressAt >= LONG_MS
      if (!isStuck && overdueMs < staleAfterMs) return []
      const minutes = Math.round(overdueMs / MINUTE)
      return [
        problemOf('reads_overdue', `the regular read that is longest due has been due for ${minutes} min`),
      ]
    },
  }
}
