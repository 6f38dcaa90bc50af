import type { Engine } from './engine.js'
import type { Hint } from './store.js'

/** Who hears of a commit: the listeners of this process, and other processes through the engine. */
export function createHints(engine: Pick<Engine, 'announce'>) {
  const listeners = new Set<(hint: Hint) => void>()

  /** What is committed stays so, whatever a listener throws. */
  function tell(hint: Hint) {
    for (const listener of listeners) {
      try {
        listener(hint)
      } catch {
        // An error of the listener's own: the others are called all the same.
      }
    }
  }

  return {
    subscribe(listener: (hint: Hint) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    tell,
    announce(hint: Hint) {
      tell(hint)
      engine.announce(hint)
    },
  }
}
