/** The part of what is taken that each class gets at least while it waits. */
const SHARE = 1 / 8

/**
 * Orders waiting items by their classes, the lowest first. But each class that waits gets its share of what is taken, by
 * weight, so no number of items of one class keeps out those of another.
 */
export function createTurns<Item>(options: { classOf(item: Item): number; weightOf(item: Item): number }) {
  const { classOf, weightOf } = options
  /** For each class that waits, the weight that it should have got beyond what it got. */
  let owed = new Map<number, number>()

  function take(from: Map<number, number>, item: Item) {
    const weight = weightOf(item)
    for (const [kind, before] of from) from.set(kind, before + weight * SHARE)
    const kind = classOf(item)
    from.set(kind, (from.get(kind) ?? 0) - weight)
  }

  return {
    /** The items in the order in which they are to be taken. Those of a class stay in their order. */
    arrange(items: readonly Item[]): Item[] {
      const classes = [...new Set(items.map(classOf))].sort((a, b) => a - b)
      // A class that did not wait is owed nothing.
      owed = new Map(classes.map((kind) => [kind, owed.get(kind) ?? 0]))
      const queues = classes.map((kind) => ({
        kind,
        next: 0,
        items: items.filter((item) => classOf(item) === kind),
      }))
      const later = new Map(owed)
      return items.map(() => {
        const open = queues.filter(({ next, items }) => next < items.length)
        const isDue = ({ kind, next, items }: (typeof queues)[number]) =>
          (later.get(kind) ?? 0) >= weightOf(items[next] as Item)
        const queue = open.find(isDue) ?? open[0]
        const item = queue?.items[queue.next++] as Item
        take(later, item)
        return item
      })
    },

    took: (item: Item) => take(owed, item),

    /** Nothing waits any more. */
    reset: () => owed.clear(),
  }
}
