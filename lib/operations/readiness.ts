import { type Clock, SECOND } from '../clock.js'
import { messageOf } from '../errors.js'
import type { Store } from '../store/store.js'
import { withDeadline } from '../waiting.js'

/** Whether this process should be sent requests now. */
export interface Readiness {
  /** It can accept a delivery and answer `isEntitled`. */
  ready: boolean
  /** Why not, one sentence each. */
  reasons: string[]
}

/** A probe of Kubernetes waits for 1 s unless told otherwise. */
const ANSWER_MS = 900

/**
 * Ready is: the store is open, answers a lookup, and its last write did not fail; the marketplace is not closing. Handlers
 * that fail, a platform that is down and a worker that is stuck are for `health()`: other instances would not do better.
 */
export function createReadiness(options: {
  store: Pick<Store, 'subscriptionsOf' | 'problem'>
  isClosed(): boolean
  clock: Clock
}) {
  const { store, isClosed, clock } = options

  return async function readiness(): Promise<Readiness> {
    const reasons = isClosed() ? ['it was closed'] : await reasonsOfStore()
    return { ready: reasons.length === 0, reasons }
  }

  async function reasonsOfStore(): Promise<string[]> {
    const late = () => new Error(`the store has not answered within ${ANSWER_MS / SECOND} s`)
    try {
      await withDeadline(store.subscriptionsOf('readiness'), ANSWER_MS, clock, late)
      const problem = store.problem?.()
      return problem ? [String(problem)] : []
    } catch (error) {
      return [messageOf(error)]
    }
  }
}
