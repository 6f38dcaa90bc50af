import type { DeadEntry } from '../store/store.js'
import type { HandlerFailure as FailureInWorker } from '../work/call-handlers.js'
import { createListeners } from '../work/listeners.js'
import { type HandlerFailure, publicDeath, publicFailure } from './public-entry.js'

/** The app's listeners for failed tries, and for entries that became dead without one. */
export function createOutcomeListeners(onError: (error: unknown) => void) {
  const failures = createListeners<HandlerFailure>(onError)
  return {
    onHandlerError: failures.add,
    died: (entry: DeadEntry) => failures.call(publicDeath(entry)),
    failed: (failure: FailureInWorker) => failures.call(publicFailure(failure)),
  }
}
