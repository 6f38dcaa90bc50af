import { requireFunction } from './handlers.js'

/** Listeners of one kind. `onError` gets the error of a failed one, and the others are still called. */
export function createListeners<T>(onError: (error: unknown) => void) {
  const listeners = new Set<(value: T) => void>()
  return {
    add(listener: (value: T) => void): () => void {
      requireFunction(listener)
      // A wrapper: one function added twice counts as two listeners, and each removes only itself.
      const own = (value: T) => listener(value)
      listeners.add(own)
      return () => void listeners.delete(own)
    },

    call(value: T) {
      for (const listener of listeners) {
        // A rejected promise must not end the process either.
        const called = (async () => listener(value))()
        called.catch(onError)
      }
    },
  }
}
