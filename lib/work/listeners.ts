import { requireFunction } from './handlers.js'

/** Listeners of one kind. What one throws, or rejects with, goes to `onError` and keeps nobody else from being called. */
export function createListeners<T>(onError: (error: unknown) => void) {
  const listeners = new Set<(value: T) => void>()
  return {
    add(listener: (value: T) => void): () => void {
      requireFunction(listener)
      // A wrapper, so that one function added twice is two listeners and each removes itself.
      const own = (value: T) => listener(value)
      listeners.add(own)
      return () => void listeners.delete(own)
    },

    call(value: T) {
      for (const listener of listeners) {
        // A promise that rejects, too, must not end the process.
        const called = (async () => listener(value))()
        called.catch(onError)
      }
    },
  }
}
