/** What comes and goes all the time, in the order in which it came. */
export interface Line<T> {
  readonly size: number
  /** Puts it at the end; returns a function that takes it out. */
  add(value: T): () => void
  first(): T | undefined
  values(): T[]
}

interface Link<T> {
  value: T | undefined
  previous: Link<T> | undefined
  next: Link<T> | undefined
}

/**
 * A linked list whose links are cut when they are taken out. Not a Set or a Map: V8 moves a growing one to a new table,
 * and the old table keeps what stood in it and points to the new one. Once an old table has come into the old generation,
 * everything that ever stood in any of them survives until the next full collection: measured, 50 ms for each collection
 * of the young generation instead of 0.3 ms.
 */
export function createLine<T>(): Line<T> {
  let first: Link<T> | undefined
  let last: Link<T> | undefined
  let size = 0

  return {
    get size() {
      return size
    },

    add(value) {
      const link: Link<T> = { value, previous: last, next: undefined }
      if (last) last.next = link
      else first = link
      last = link
      size++
      return () => {
        if (link.value === undefined) return
        link.value = undefined
        size--
        const { previous, next } = link
        if (previous) previous.next = next
        else first = next
        if (next) next.previous = previous
        else last = previous
        link.previous = undefined
        link.next = undefined
      }
    },

    first: () => first?.value,

    values() {
      const values: T[] = []
      for (let link = first; link; link = link.next) values.push(link.value as T)
      return values
    },
  }
}
