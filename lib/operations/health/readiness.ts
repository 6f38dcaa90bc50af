import { type Clock, SECOND } from '../../base/clock.js'
import { type HealthProblem, isFailing, problemOf } from '../../base/health.js'
import { withDeadline } from '../../base/waiting.js'
import type { Store } from '../../store/port/store.js'
import { problemOfOpening } from './health-check.js'

/** Whether this process should receive requests now. */
export interface Readiness {
  /** Whether it can accept a delivery and answer `isEntitled`. */
  ready: boolean
  /** Why not, with the codes of `health()`; empty when ready. */
  problems: HealthProblem[]
}

/** A Kubernetes probe waits 1 s by default. */
const ANSWER_MS = 900

/**
 * Ready means: the store is open and answers a lookup, its last write did not fail, deliveries are accepted, and the
 * marketplace is not closing. Failing handlers, a platform outage and a stuck worker are reported by `health()` only,
 * because other instances could not serve the requests better.
 */
export function createReadiness(options: {
  store: Pick<Store, 'subscriptionsOf' | 'problem'>
  isClosed(): boolean
  whyNotOpen(): unknown
  /** The problems of recent deliveries. Those that are failing make the process not ready. */
  problemsOfDeliveries(): HealthProblem[]
  clock: Clock
}) {
  const { store, isClosed, whyNotOpen, problemsOfDeliveries, clock } = options

  return async function readiness(): Promise<Readiness> {
    const problems = isClosed()
      ? [problemOf('closed', 'the marketplace was closed')]
      : [...(await problemsOfStore()), ...problemsOfDeliveries().filter(isFailing)]
    return { ready: problems.length === 0, problems }
  }

  async function problemAfterLookup() {
    await store.subscriptionsOf('readiness')
    return store.problem()
  }

  async function problemsOfStore(): Promise<HealthProblem[]> {
    const late = () => new Error(`the store did not answer within ${ANSWER_MS / SECOND} s`)
    try {
      const problem = await withDeadline(problemAfterLookup(), ANSWER_MS, clock, late)
      return problem ? [problemOf('store_write_failed', String(problem))] : []
    } catch (error) {
      return [problemOfOpening(whyNotOpen(), error)]
    }
  }
}
