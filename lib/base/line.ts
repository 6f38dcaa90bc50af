/** A queue whose entries can also leave from the middle. */
export interface Line<T> {
  readonly size: number
  /** Adds `value` at the end; returns a function that removes it. */
  add(value: T): () => void
  first(): T | undefined
  removeFirst(): void
  values(): T[]
}

interface Link<T> {
  value: T | undefined
  previous: Link<T> | undefined
  next: Link<T> | undefined
}

/**
 * A linked list that cuts the links of a removed entry. With a Set or a Map, every removed entry may stay in memory until
 * the next full collection; see docs/decisions/one-timer-linked-lines.md.
 */
export function createLine<T>(): Line<T> {
  let first: Link<T> | undefined
  let last: Link<T> | undefined
  let size = 0

  function remove(link: Link<T>) {
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
      return () => remove(link)
    },

    first: () => first?.value,

    removeFirst() {
      if (first) remove(first)
    },

    values() {
      const values: T[] = []
      for (let link = first; link; link = link.next) values.push(link.value as T)
      return values
    },
  }
}
