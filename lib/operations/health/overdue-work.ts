import { type Clock, MINUTE } from '../../base/clock.js'
import { type HealthProblem, type ProblemCode, problemOf } from '../../base/health.js'
import type { StoreCounts } from '../../store/port/store.js'

/** Work pending for longer than this has no worker, or the workers are too slow. */
const KINDS: readonly Kind[] = [
  {
    ...{ age: 'oldestPendingMs', count: 'pending', longMs: 5 * MINUTE, code: 'entries_overdue' },
    what: 'the oldest due entry of the journal has been due',
  },
  {
    ...{ age: 'oldestMissedMs', longMs: 10 * MINUTE, code: 'handlers_missing' },
    what: 'the oldest entry whose handler no process has any more has waited',
  },
  {
    ...{ age: 'oldestRequestMs', count: 'requested', longMs: MINUTE, code: 'requests_overdue' },
    what: 'the oldest requested read has been pending',
  },
  {
    ...{ age: 'oldestSearchMs', longMs: MINUTE, code: 'searches_overdue' },
    what: 'the search for subscriptions that is longest due has been due',
  },
  {
    ...{ age: 'oldestOverdueMs', longMs: 10 * MINUTE, code: 'reads_overdue' },
    what: 'the regular read that is longest due has been due',
  },
]

interface Kind {
  /** The counts of the store: how late the longest due work is, and how much work there is. */
  age: 'oldestPendingMs' | 'oldestMissedMs' | 'oldestRequestMs' | 'oldestSearchMs' | 'oldestOverdueMs'
  count?: 'pending' | 'requested'
  longMs: number
  code: ProblemCode
  what: string
}

/** Kinds whose age is missing have no due work. */
type Counted = Partial<Pick<StoreCounts, Kind['age'] | NonNullable<Kind['count']>>>

/**
 * Detects that nobody does what is due, or not fast enough. The worker of a process that was down begins with overdue
 * work. This is no problem while it catches up: within the time that is too long, the longest due work became less late
 * than it ever was since this process began, or there was less work than ever since it is too late. Many entries that
 * became due together, as by a replay, only become fewer.
 */
export function createOverdueWork({ hasWorker, clock }: { hasWorker: boolean; clock: Clock }) {
  const kinds = KINDS.map((kind) => ({
    ...kind,
    /** The least that it was late; undefined before the first look. */
    leastMs: undefined as number | undefined,
    /** The least work since it is too late, or the work at the last look; undefined before the first one. */
    leastCount: undefined as number | undefined,
    /** The time of the last progress: the work became less late, or less, than ever before; at first, when the worker began. */
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
        const { age, longMs, code, what } = kind
        const ms = counts[age] ?? 0
        const count = (kind.count && counts[kind.count]) ?? 0
        const isLong = ms >= longMs
        const { leastMs, leastCount = count } = kind
        if ((isLong && count < leastCount) || (leastMs !== undefined && ms <= leastMs)) kind.progressAt = now
        kind.leastMs = Math.min(ms, leastMs ?? ms)
        kind.leastCount = isLong ? Math.min(count, leastCount) : count
        return isLong && now - kind.progressAt >= longMs
          ? [problemOf(code, `${what} for ${Math.round(ms / MINUTE)} min`)]
          : []
      })
    },
  }
}
