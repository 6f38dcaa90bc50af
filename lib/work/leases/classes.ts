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
  /** A class whose work may always take long. */
  long?: Class
  /** Whether an item may take long. */
  mayTakeLong?(item: Item): boolean
}) {
  const { classes, unread, long, mayTakeLong = () => false } = options
  const [first] = classes
  /** The classes in the order of their last lease, the longest ago first. */
  let byLastLease = [...classes]

  function hasSeat(urgency: Class, others: readonly Item[], seats: number, taken: readonly Class[] = []) {
    if (urgency === first) return true
    const count = (of: Class | undefined) =>
      others.filter((item) => item.urgency === of).length + taken.filter((each) => each === of).length
    if (urgency === unread && count(unread) >= Math.max(1, Math.floor(seats / 2))) return false
    const busyForLong = others.filter((item) => item.urgency === long || mayTakeLong(item)).length
    return busyForLong + taken.filter((each) => each === long).length < Math.max(1, seats - 1)
  }

  return {
    all: classes,

    /** Whether the item may have one of `seats` beside the others. */
    hasSeat: ({ urgency }: Item, others: readonly Item[], seats: number) => hasSeat(urgency, others, seats),

    /**
     * Chooses the class of each lease of one claim, which fills `seats` beside the others. `isHeldBack`: work is due that
     * may have none of these seats.
     */
    chooser(others: readonly Item[], seats: number) {
      const leased = new Set(others.map(({ urgency }) => urgency))
      const order = byLastLease
      let isHeldBack = false
      return {
        choose(due: readonly Class[], taken: readonly Class[]): Class | undefined {
          const free = due.filter((urgency) => hasSeat(urgency, others, seats, taken))
          isHeldBack = free.length === 0 && due.length > 0
          const isFirst = (urgency: Class) =>
            free.includes(urgency) && !leased.has(urgency) && !taken.includes(urgency)
          return order.find(isFirst) ?? free[0]
        },
        isHeldBack: () => isHeldBack,
      }
    },

    leased({ urgency }: Item) {
      byLastLease = [...byLastLease.filter((each) => each !== urgency), urgency]
    },
  }
}
