import type { Urgency } from '../store/store.js'

/** Of the reads that are due at once in each class: how many for one of the reconcile. None starves. */
const SHARES = { 0: 64, 2: 8, 3: 8, 4: 1 } as const
type Shared = keyof typeof SHARES
const CLASSES: readonly Shared[] = [0, 2, 3, 4]

/**
 * Which class is read next: each class has a pass, which a read of it moves on by the inverse of its share; the lowest
 * goes first (stride scheduling). A class of which nothing is due saves up nothing.
 */
export function createReadTurns() {
  const passes: Record<Shared, number> = { 0: 0, 2: 0, 3: 0, 4: 0 }

  return {
    /** The classes to look in, the first first, without those that are `left out` for want of a slot. */
    order: (leftOut: (urgency: Urgency) => boolean): Urgency[] =>
      CLASSES.filter((urgency) => !leftOut(urgency)).sort((a, b) => passes[a] - passes[b] || a - b),

    /** Looked in `order` and leased a read of this class, so that those before it had none. */
    taken(urgency: Urgency, order: readonly Urgency[]) {
      if (!isShared(urgency)) return
      const now = passes[urgency]
      for (const each of order) {
        if (each === urgency) break
        if (isShared(each)) passes[each] = Math.max(passes[each], now)
      }
      passes[urgency] = now + 1 / SHARES[urgency]
    },
  }
}

function isShared(urgency: Urgency): urgency is Shared {
  return urgency !== 1
}
