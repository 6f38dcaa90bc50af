/**
 * Which class of due work is leased next, and which may begin: one rule for reads and for entries. The classes are in the
 * order of their urgency. A class with due work, none of which is leased, gets the next seat that it may have, so that no
 * class starves. The other seats go to the classes in their order. Two rules keep seats free:
 *
 * - What was never read has at most half of the seats, because anybody who knows the delivery secret can make up any
 *   number of subscriptions.
 * - Work that may take long leaves one seat of two or more to the first class, which takes a seat in any case.
 */
export function createClasses<Item extends { urgency: Class }, Class extends number>(options: {
  /** The most urgent first. */
  classes: readonly Class[]
  /** The class of what was never read. */
  unread: Class
  /** Whether all work of a class may take long. */
  isLong?(urgency: Class): boolean
  /** Whether an item may take long. */
  mayTakeLong?(item: Item): boolean
}) {
  const { classes, unread, isLong, mayTakeLong } = options
  const [first] = classes
  /** The classes in the order of their last lease, the longest ago first. */
  let byLastLease = [...classes]

  /** How many of these items are of what was never read, and how many may take long. */
  function heldBy(items: readonly Item[]) {
    const held = { unread: 0, long: 0 }
    for (const item of items) {
      if (item.urgency === unread) held.unread++
      if (isLong?.(item.urgency) || mayTakeLong?.(item)) held.long++
    }
    return held
  }

  /** `ahead`: those of the seats that are no slots, but leases ahead of one. */
  function hasSeat(urgency: Class, held: ReturnType<typeof heldBy>, seats: number, ahead = 0) {
    if (urgency === first) return true
    if (urgency === unread && held.unread >= Math.max(1, Math.floor((seats - ahead) / 2)) + ahead)
      return false
    return held.long < Math.max(1, seats - 1)
  }

  return {
    all: classes,

    /** Whether the item may have one of `seats` beside the others. */
    hasSeat: ({ urgency }: Item, others: readonly Item[], seats: number) =>
      hasSeat(urgency, heldBy(others), seats),

    /**
     * Chooses the class of each lease of one claim, which fills `seats` beside the others. `isWithoutSeat`: work is
     * due that may have none of these seats. `ahead`: how many of the seats are leases ahead of a slot. What was never read
     * may have all of these: they are few while items take long.
     */
    chooser(others: readonly Item[], seats: number, ahead = 0) {
      const leased = new Set(others.map(({ urgency }) => urgency))
      const heldByOthers = heldBy(others)
      const order = byLastLease
      let isWithoutSeat = false
      return {
        choose(due: readonly Class[], taken: readonly Class[]): Class | undefined {
          const held = { ...heldByOthers }
          for (const urgency of taken) {
            if (urgency === unread) held.unread++
            if (isLong?.(urgency)) held.long++
          }
          const free = due.filter((urgency) => hasSeat(urgency, held, seats, ahead))
          isWithoutSeat = free.length === 0 && due.length > 0
          const isFirst = (urgency: Class) =>
            free.includes(urgency) && !leased.has(urgency) && !taken.includes(urgency)
          return order.find(isFirst) ?? free[0]
        },
        isWithoutSeat: () => isWithoutSeat,
      }
    },

    leased({ urgency }: Item) {
      byLastLease = [...byLastLease.filter((each) => each !== urgency), urgency]
    },
  }
}
