import type { DeadEntry as DeadInStore } from '../store/store.js'
import type { HandlerFailure as FailureInWorker } from '../work/call-handlers.js'
import { createListeners } from '../work/listeners.js'
import { type DeadEntry, type HandlerFailure, publicDeath, publicFailure } from './public-entry.js'

/** The app's listeners for dead entries and failed tries. */
export function createOutcomeListeners(onError: (error: unknown) => void) {
  const dead = createListeners<DeadEntry>(onError)
  const failures = createListeners<HandlerFailure>(onError)
  return {
    onDead: dead.add,
    onHandlerError: failures.add,
    died: (entry: DeadInStore) => dead.call(publicDeath(entry)),
    failed: (failure: FailureInWorker) => failures.call(publicFailure(failure)),
  }
}
