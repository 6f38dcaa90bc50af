import { type Clock, MINUTE, SECOND } from '../clock.js'
import { messageOf } from '../errors.js'
import { mergeProblems, type Problems } from '../health.js'
import type { Store, StoreCounts } from '../store/store.js'
import { withDeadline } from '../waiting.js'

/** For a health check. `failing`: take the instance out of rotation. `degraded`: a person should look, by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, one sentence each. */
  problems: string[]
  /** Null while the store does not answer. */
  counts: StoreCounts | null
}

/** `health()` answers within this time, even if a store of the app's own never does. */
const HEALTH_MS = 9 * SECOND

/** Returns `health()`: the problems of the store, of its counts, and of the parts. */
export function createHealthCheck(options: {
  store: Pick<Store, 'counts' | 'problem'>
  isClosed(): boolean
  /** The error with which the store did not open; undefined once it is open. */
  whyNotOpen(): unknown
  /** The problems of the other parts; `counts` are those of the store. */
  problemsOfParts(counts: StoreCounts): Problems
  clock: Clock
}) {
  const { store, isClosed, whyNotOpen, problemsOfParts, clock } = options

  /** The counts of the store, and its problem: no answer in time, or the failure of its last write. */
  async function askStore(): Promise<{ counts: StoreCounts | null; ofStore: Problems }> {
    try {
      const late = () => new Error('the store does not answer')
      const { counts, problem } = await withDeadline(countsAndProblem(), HEALTH_MS, clock, late)
      return { counts, ofStore: { failing: problem ? [String(problem)] : [], degraded: [] } }
    } catch (error) {
      return { counts: null, ofStore: { failing: [messageOf(whyNotOpen() ?? error)], degraded: [] } }
    }
  }

  async function countsAndProblem() {
    const counts = await store.counts()
    return { counts, problem: await store.problem?.() }
  }

  return async function health(): Promise<Health> {
    if (isClosed()) return { status: 'failing', problems: ['closed'], counts: null }
    const { counts, ofStore } = await askStore()
    const ofParts = counts ? [problemsOfParts(counts), problemsOfCounts(counts)] : []
    const { failing, degraded } = mergeProblems([ofStore, ...ofParts])
    const status = failing.length > 0 ? 'failing' : degraded.length > 0 ? 'degraded' : 'ok'
    return { status, problems: [...failing, ...degraded], counts }
  }
}

/** The counts that are checked; a store of the app's own may lack some. */
type Counted = Partial<
  Record<'dead' | 'retrying', number> & Record<'oldestPendingMs' | 'oldestRequestMs', number | null>
>

/** The problems that the counts show, each with a hint where to look. */
function problemsOfCounts(counts: Counted): Problems {
  const { dead = 0, retrying = 0 } = counts
  const degraded: string[] = []
  if (dead > 0) degraded.push(`${dead} journal entries are dead: see journal.list({ status: 'dead' })`)
  if (retrying > 0)
    degraded.push(
      `${retrying} journal entries are tried again because a handler failed: see their error in journal.list({ status: 'retrying' })`,
    )
  for (const [name, longMs, what] of LONG_PENDING) {
    const ms = counts[name] ?? 0
    if (ms >= longMs) {
      const minutes = Math.round(ms / MINUTE)
      degraded.push(`${what} has been pending for ${minutes} min: is a worker running, and keeping up?`)
    }
  }
  return { failing: [], degraded }
}

/** Work pending for longer than this has no worker, or the workers are too slow. */
const LONG_PENDING = [
  ['oldestPendingMs', 5 * MINUTE, 'the oldest entry of the journal'],
  ['oldestRequestMs', MINUTE, 'the oldest requested read'],
] as const
