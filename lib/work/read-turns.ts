import type { Urgency } from '../store/store.js'

/** The classes that share a loop; the other has one of its own. */
export type SharedUrgency = Exclude<Urgency, 1>

/** Of the reads that are due at once in each class: how many for one of the reconcile. None starves. */
const SHARES = { 0: 64, 2: 8, 3: 8, 4: 1 } as const satisfies Record<SharedUrgency, number>
const CLASSES: readonly SharedUrgency[] = [0, 2, 3, 4]

/**
 * Which class is read next: each class has a pass, which a read of it moves on by the inverse of its share; the lowest
 * goes first (stride scheduling). A class of which nothing is due saves up nothing.
 */
export function createReadTurns(from: Readonly<Record<SharedUrgency, number>> = { 0: 0, 2: 0, 3: 0, 4: 0 }) {
  const passes = { ...from }

  return {
    /** To try out: what is taken of it counts nowhere else. */
    copy: () => createReadTurns(passes),

    /** The classes to look in, the first first, without those that are `left out` for want of a slot. */
    order: (leftOut: (urgency: SharedUrgency) => boolean): SharedUrgency[] =>
      CLASSES.filter((urgency) => !leftOut(urgency)).sort((a, b) => passes[a] - passes[b]),

    /** Looked in `order` and leased a read of this class, so that those before it had none. */
    taken(urgency: SharedUrgency, order: readonly SharedUrgency[]) {
      const now = passes[urgency]
      // Of those behind it none is lower.
      for (const each of order) passes[each] = Math.max(passes[each], now)
      passes[urgency] = now + 1 / SHARES[urgency]
    },
  }
}
