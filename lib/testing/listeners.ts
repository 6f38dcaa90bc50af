/** Those who asked to be told of something. */
export interface Listeners<Entry> {
  /** Gives back the way to stop. */
  add(listener: (entry: Entry) => void): () => void
  tell(entry: Entry): void
}

export function createListeners<Entry>(): Listeners<Entry> {
  // Wrapped, so that one function that listens twice is heard twice and stops once.
  const all = new Set<{ hear: (entry: Entry) => void }>()
  return {
    add(hear) {
      const listener = { hear }
      all.add(listener)
      return () => void all.delete(listener)
    },
    tell(entry) {
      for (const { hear } of all) {
        try {
          hear(entry)
        } catch (error) {
          // What a listener throws must not stop the platform, so it surfaces outside of it.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
