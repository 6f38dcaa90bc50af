import { MarketplaceError } from './errors.js'

/** Listeners of one kind. `onError` gets what one of them throws or rejects with, and the others are still called. */
export function createListeners<T>(onError: (error: unknown) => void) {
  const listeners = new Set<(value: T) => unknown>()
  return {
    /** Returns a function that removes the listener. */
    add(listener: (value: T) => unknown): () => void {
      requireFunction(listener)
      // A wrapper: one function added twice counts as two listeners, and each removes only itself.
      const own = (value: T) => listener(value)
      listeners.add(own)
      return () => void listeners.delete(own)
    },

    count: () => listeners.size,

    call(value: T) {
      for (const listener of listeners) {
        try {
          const returned = listener(value)
          // A promise that rejects must not end the process.
          if (returned) Promise.resolve(returned).catch(onError)
        } catch (error) {
          onError(error)
        }
      }
    },
  }
}

/** Checks at registration: a value that is not a function would fail at each call. */
export function requireFunction(handler: unknown) {
  if (typeof handler !== 'function')
    throw new MarketplaceError('argument_invalid', 'Cannot register the handler: it is not a function')
}
