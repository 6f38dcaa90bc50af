import { type Clock, SECOND } from '../../base/clock.js'
import { messageOf } from '../../base/errors.js'
import { type HealthProblem, problemOf, statusOf, worstFirst } from '../../base/health.js'
import { withDeadline } from '../../base/waiting.js'
import type { Store, StoreCounts } from '../../store/port/store.js'

/** For a health check. `failing`: take the instance out of rotation. `degraded`: a person should look, by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, those that are `failing` first. Each code occurs once. */
  problems: HealthProblem[]
  /** Null while the store does not answer. */
  counts: StoreCounts | null
}

/** `health()` answers within this time, even if the database never does. */
const HEALTH_MS = 9 * SECOND

/** Returns `health()`: the problems of the store, of its counts, and of the parts. */
export function createHealthCheck(options: {
  store: Pick<Store, 'counts' | 'problem'>
  isClosed(): boolean
  /** The error with which the store did not open; undefined once it is open. */
  whyNotOpen(): unknown
  /** The problems of the other parts; `counts` are those of the store, null while it does not answer. */
  problemsOfParts(counts: StoreCounts | null): HealthProblem[]
  clock: Clock
}) {
  const { store, isClosed, whyNotOpen, problemsOfParts, clock } = options

  /** The counts of the store, and its problem: no answer in time, or the failure of its last write. */
  async function askStore(): Promise<{ counts: StoreCounts | null; ofStore: HealthProblem[] }> {
    try {
      const late = () => new Error('the store does not answer')
      const { counts, problem } = await withDeadline(countsAndProblem(), HEALTH_MS, clock, late)
      return { counts, ofStore: problem ? [problemOf('store_write_failed', String(problem))] : [] }
    } catch (error) {
      return { counts: null, ofStore: [problemOfOpening(whyNotOpen(), error)] }
    }
  }

  async function countsAndProblem() {
    const counts = await store.counts()
    return { counts, problem: await store.problem() }
  }

  return async function health(): Promise<Health> {
    if (isClosed()) {
      const closed = problemOf('closed', 'the marketplace was closed')
      return { status: 'failing', problems: [closed], counts: null }
    }
    const { counts, ofStore } = await askStore()
    const ofCounts = counts ? problemsOfCounts(counts) : []
    const problems = worstFirst([...ofStore, ...problemsOfParts(counts), ...ofCounts])
    return { status: statusOf(problems), problems, counts }
  }
}

/** Why a call of the store failed: the store is not open, or does not answer. */
export function problemOfOpening(whyNotOpen: unknown, error: unknown): HealthProblem {
  return whyNotOpen === undefined
    ? problemOf('store_not_answering', messageOf(error))
    : problemOf('store_not_open', messageOf(whyNotOpen))
}

function problemsOfCounts({ dead, retrying, lapsed }: StoreCounts): HealthProblem[] {
  const problems: HealthProblem[] = []
  if (dead > 0) problems.push(problemOf('entries_dead', `${dead} journal entries are dead`))
  if (retrying > 0)
    problems.push(
      problemOf('entries_retrying', `${retrying} journal entries are tried again because a handler failed`),
    )
  if (lapsed > 0)
    problems.push(
      problemOf(
        'reads_end_process',
        `the process ended each time it read ${lapsed} subscriptions, so their reads are put off`,
      ),
    )
  return problems
}
