import type { Hint } from './port/store.js'
import type { Engine } from './sql/engine.js'

/** Passes hints of commits to the listeners of this process and, through the engine, to other processes. */
export function createHints(engine: Pick<Engine, 'announce'>) {
  const listeners = new Set<(hint: Hint) => void>()

  /** Calls the listeners of this process. */
  function notify(hint: Hint) {
    for (const listener of listeners) {
      try {
        listener(hint)
      } catch {
        // The commit stands, and the other listeners are called, whatever one of them throws.
      }
    }
  }

  return {
    subscribe(listener: (hint: Hint) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    notify,
    /** Calls the listeners of this process, and sends the hint to the others. */
    announce(hint: Hint) {
      notify(hint)
      engine.announce(hint)
    },
  }
}

export type Hints = ReturnType<typeof createHints>
