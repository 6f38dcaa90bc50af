import { type ClaimReads, type ReadClaim, URGENCY, type Urgency } from '../../store/port/store.js'

/** The classes in their order, the most urgent first. */
const CLASSES: readonly Urgency[] = Object.values(URGENCY)

/**
 * Which class of reads is leased next, and which may begin. A class with due reads, none of which is leased, goes first
 * if it may have a seat, so that no class starves. The other seats go to the classes in their order. Two rules keep a seat
 * free:
 *
 * - Subscriptions that were never read have at most half of the seats, because anybody who knows the delivery secret
 *   can make up any number of them.
 * - Regular reads, and reads that wait for a token, leave one seat of two or more to events of subscriptions that were
 *   read before. These take a seat in any case.
 */
export function createReadClasses({
  isWaitingForToken,
}: {
  isWaitingForToken(businessUid: string): boolean
}) {
  /** The classes in the order of their last lease, the longest ago first. */
  let byLastLease = [...CLASSES]

  const isUnread = ({ urgency }: Pick<ReadClaim, 'urgency'>) => urgency === URGENCY.eventOfUnread
  const mayTakeLong = ({ urgency, subscription }: ReadClaim) =>
    urgency === URGENCY.reconcile ||
    (urgency !== URGENCY.event && isWaitingForToken(subscription.businessUid))

  function hasSeat(
    urgency: Urgency,
    others: readonly ReadClaim[],
    seats: number,
    taken: readonly Urgency[] = [],
  ) {
    if (urgency === URGENCY.event) return true
    const unread =
      others.filter(isUnread).length + taken.filter((each) => each === URGENCY.eventOfUnread).length
    if (urgency === URGENCY.eventOfUnread && unread >= Math.max(1, Math.floor(seats / 2))) return false
    const long = others.filter(mayTakeLong).length + taken.filter((each) => each === URGENCY.reconcile).length
    return long < Math.max(1, seats - 1)
  }

  return {
    all: CLASSES,

    /** Whether the read may have one of `seats` beside the others. */
    hasSeat: ({ urgency }: ReadClaim, others: readonly ReadClaim[], seats: number) =>
      hasSeat(urgency, others, seats),

    /** Chooses the class of each lease of one claim, which fills `seats` beside the others. */
    chooser(others: readonly ReadClaim[], seats: number): NonNullable<ClaimReads['choose']> {
      const leased = new Set(others.map(({ urgency }) => urgency))
      const order = byLastLease
      return (due, taken) => {
        const free = due.filter((urgency) => hasSeat(urgency, others, seats, taken))
        const isFirst = (urgency: Urgency) =>
          free.includes(urgency) && !leased.has(urgency) && !taken.includes(urgency)
        return order.find(isFirst) ?? free[0]
      }
    },

    leased({ urgency }: ReadClaim) {
      byLastLease = [...byLastLease.filter((each) => each !== urgency), urgency]
    },
  }
}
