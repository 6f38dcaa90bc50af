import { createListeners } from '../base/listeners.js'
import type { Hint } from './port/store.js'
import type { Engine } from './sql/engine.js'

/** Passes hints of commits to the listeners of this process and, through the engine, to other processes. */
export function createHints(engine: Pick<Engine, 'announce'>) {
  // The commit stands, whatever a listener throws.
  const { add, call } = createListeners<Hint>(() => {})

  return {
    subscribe: add,
    /** Calls the listeners of this process. */
    notify: call,
    /** Calls the listeners of this process, and sends the hint to the others. */
    announce(hint: Hint) {
      call(hint)
      engine.announce(hint)
    },
  }
}

export type Hints = ReturnType<typeof createHints>
