/** Listeners to one kind of event. */
export interface Listeners<Entry> {
  /** Returns a function that removes the listener. */
  add(listener: (entry: Entry) => void): () => void
  call(entry: Entry): void
}

export function createListeners<Entry>(): Listeners<Entry> {
  // Wrapped, so that a function added twice is called twice, and each removal removes one.
  const all = new Set<{ listener: (entry: Entry) => void }>()
  return {
    add(listener) {
      const added = { listener }
      all.add(added)
      return () => void all.delete(added)
    },
    call(entry) {
      for (const { listener } of all) {
        try {
          listener(entry)
        } catch (error) {
          // An error of a listener must not stop the platform, so it is thrown in another turn.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
