import { type Clock, MINUTE } from '../clock.js'
import { type HealthProblem, type ProblemCode, problemOf } from '../health.js'
import type { StoreCounts } from '../store/store.js'

/** Work pending for longer than this has no worker, or the workers are too slow. */
const KINDS = [
  ['oldestPendingMs', 5 * MINUTE, 'entries_overdue', 'the oldest due entry of the journal has been due'],
  ['oldestRequestMs', MINUTE, 'requests_overdue', 'the oldest requested read has been pending'],
  ['oldestOverdueMs', 10 * MINUTE, 'reads_overdue', 'the regular read that is longest due has been due'],
] as const satisfies readonly (readonly [keyof StoreCounts, number, ProblemCode, string])[]

/** The counts that are checked; a store of the app's own may lack some. */
type Counted = Partial<Pick<StoreCounts, (typeof KINDS)[number][0]>>

/**
 * Detects that nobody does what is due, or not fast enough. The worker of a process that was down begins with overdue
 * work. This is no problem while it catches up: within the time that is too long, the longest due work became less late
 * than it ever was since this process began.
 */
export function createOverdueWork({ hasWorker, clock }: { hasWorker: boolean; clock: Clock }) {
  const kinds = KINDS.map(([name, longMs, code, what]) => ({
    ...{ name, longMs, code, what },
    /** The least that it was late; undefined before the first look. */
    leastMs: undefined as number | undefined,
    /** When it was last so little late, or the worker of this process began. */
    progressAt: Number.NEGATIVE_INFINITY,
  }))

  return {
    opened() {
      if (hasWorker) for (const kind of kinds) kind.progressAt = clock.monotonic()
    },

    problems(counts: Counted | null): HealthProblem[] {
      if (!counts) return []
      const now = clock.monotonic()
      return kinds.flatMap((kind) => {
        const { name, longMs, code, what } = kind
        const ms = counts[name] ?? 0
        if (kind.leastMs !== undefined && ms <= kind.leastMs) kind.progressAt = now
        kind.leastMs = Math.min(ms, kind.leastMs ?? ms)
        const isLate = ms >= longMs && now - kind.progressAt >= longMs
        return isLate ? [problemOf(code, `${what} for ${Math.round(ms / MINUTE)} min`)] : []
      })
    },
  }
}
