import { type Clock, SECOND } from '../clock.js'
import { messageOf } from '../errors.js'
import type { Store } from '../store/store.js'
import { withDeadline } from '../waiting.js'

/** Whether this process should receive requests now. */
export interface Readiness {
  /** Whether it can accept a delivery and answer `isEntitled`. */
  ready: boolean
  /** Why not, one sentence each. */
  reasons: string[]
}

/** A Kubernetes probe waits 1 s by default. */
const ANSWER_MS = 900

/**
 * Ready means: the store is open and answers a lookup, its last write did not fail, and the marketplace is not closing.
 * Failing handlers, a platform outage and a stuck worker are reported by `health()` only, because other instances could
 * not serve the requests better.
 */
export function createReadiness(options: {
  store: Pick<Store, 'subscriptionsOf' | 'problem'>
  isClosed(): boolean
  clock: Clock
}) {
  const { store, isClosed, clock } = options

  return async function readiness(): Promise<Readiness> {
    const reasons = isClosed() ? ['the marketplace was closed'] : await reasonsOfStore()
    return { ready: reasons.length === 0, reasons }
  }

  async function problemAfterLookup() {
    await store.subscriptionsOf('readiness')
    return store.problem?.()
  }

  async function reasonsOfStore(): Promise<string[]> {
    const late = () => new Error(`the store did not answer within ${ANSWER_MS / SECOND} s`)
    try {
      const problem = await withDeadline(problemAfterLookup(), ANSWER_MS, clock, late)
      return problem ? [String(problem)] : []
    } catch (error) {
      return [messageOf(error)]
    }
  }
}
