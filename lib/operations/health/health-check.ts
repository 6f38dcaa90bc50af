import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import { messageOf } from '../../base/errors.js'
import { type HealthProblem, isFailing, problemOf, statusOf, worstFirst } from '../../base/health.js'
import { withDeadline } from '../../base/waiting.js'
import type { CleanUp, Store, StoreCounts } from '../../store/port/store.js'
import { problemOfTurnedAway } from './problems-of-counts.js'

/** For a health check. `failing`: take the instance out of rotation. `degraded`: a person should look, by day. */
export interface Health {
  /**
   * `ok`: everything works. `degraded`: a person should look, by day. `failing`: this instance cannot store deliveries,
   * or has stopped working.
   */
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, those that are `failing` first. Each code occurs once. */
  problems: HealthProblem[]
  /** Null while the store does not answer. */
  counts: StoreCounts | null
}

/** Whether this process should receive requests now. */
export interface Readiness {
  /** Whether it can accept a delivery and answer `isEntitled`. */
  ready: boolean
  /** Why not, with the codes of `health()`; empty when ready. */
  problems: HealthProblem[]
}

/** `health()` answers within this time, even if the database never does. */
const HEALTH_MS = 9 * SECOND
/** `readiness()` answers within this time: a Kubernetes probe waits 1 s by default. */
const READINESS_MS = 900

/** Returns `health()` and `readiness()`. Neither rejects. */
export function createHealthCheck(options: {
  store: Pick<Store, 'counts' | 'problem' | 'subscriptionsOf' | 'turnedAway' | 'cleanUp'>
  isClosed(): boolean
  /** The error with which the store did not open; undefined once it is open. */
  whyNotOpen(): unknown
  /** The problems of the other parts; `counts` are those of the store, null while it does not answer. */
  problemsOfParts(counts: StoreCounts | null): HealthProblem[]
  /** The problems of recent deliveries. Those that are failing make the process not ready. */
  problemsOfDeliveries(): HealthProblem[]
  clock: Clock
}) {
  const { store, isClosed, whyNotOpen, problemsOfParts, problemsOfDeliveries, clock } = options

  /** The answer of the store, null if there is none in time, and its problem: that, or the failure of its last write. */
  async function ask<T>(
    query: () => Promise<T>,
    ms: number,
    late: string,
  ): Promise<{ answer: T | null; ofStore: HealthProblem[] }> {
    const both = async () => ({ answer: await query(), problem: await store.problem() })
    try {
      const { answer, problem } = await withDeadline(both(), ms, clock, () => new Error(late))
      return { answer, ofStore: problem ? [problemOf('store_write_failed', String(problem))] : [] }
    } catch (error) {
      const why = whyNotOpen()
      const ofStore =
        why === undefined
          ? problemOf('store_not_answering', messageOf(error))
          : problemOf('store_not_open', messageOf(why))
      return { answer: null, ofStore: [ofStore] }
    }
  }

  return {
    /** The problems of the store, of its counts, and of the parts. */
    async health(): Promise<Health> {
      if (isClosed()) return { status: 'failing', problems: [CLOSED], counts: null }
      const late = 'the store does not answer'
      const [{ answer, ofStore }, cleanUp] = await Promise.all([
        ask(
          async () => ({ counts: await store.counts(), turnedAway: await store.turnedAway() }),
          HEALTH_MS,
          late,
        ),
        ask(() => store.cleanUp(), HEALTH_MS, late),
      ])
      const { counts, turnedAway } = answer ?? { counts: null, turnedAway: null }
      const held = problemsOfCleanUp(cleanUp.answer)
      // Then counts take long, and the store answers.
      const isOnlyHeld = held.length > 0 && counts === null
      const problems = worstFirst([
        ...(isOnlyHeld ? cleanUp.ofStore : ofStore),
        ...held,
        ...problemsOfParts(counts),
        ...problemOfTurnedAway(turnedAway),
      ])
      return { status: statusOf(problems), problems, counts }
    },

    /**
     * Ready means: the store is open and answers a lookup, its last write did not fail, deliveries are accepted, and the
     * marketplace is not closing. Failing handlers, a platform outage and a stuck worker are reported by `health()` only,
     * because other instances could not serve the requests better.
     */
    async readiness(): Promise<Readiness> {
      if (isClosed()) return { ready: false, problems: [CLOSED] }
      const late = `the store did not answer within ${READINESS_MS / SECOND} s`
      const { ofStore } = await ask(() => store.subscriptionsOf('readiness'), READINESS_MS, late)
      const problems = [...ofStore, ...problemsOfDeliveries().filter(isFailing)]
      return { ready: problems.length === 0, problems }
    },
  }
}

/** A transaction that is open for so long is no work of seconds, and thousands of dead rows may be kept for it. */
const LONG_TRANSACTION_MS = 5 * MINUTE

/** A problem when the database keeps dead rows for a transaction that has been open for long. */
export function problemsOfCleanUp(cleanUp: CleanUp | null): HealthProblem[] {
  const { deadRows, oldestTransactionMs, oldestTransaction } = cleanUp ?? {}
  if (!oldestTransactionMs || oldestTransactionMs < LONG_TRANSACTION_MS) return []
  const minutes = Math.floor(oldestTransactionMs / MINUTE)
  const message = `the database keeps dead rows (now about ${deadRows}) for ${oldestTransaction}, open for ${minutes} min`
  return [problemOf('transaction_open', message)]
}

const CLOSED = problemOf('closed', 'the marketplace was closed')
