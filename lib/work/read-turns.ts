import { URGENCY, type Urgency } from '../store/store.js'

/** The classes that share a loop. `eventOfUnread` has a loop of its own. */
export type SharedUrgency = Exclude<Urgency, typeof URGENCY.eventOfUnread>

/** Reads of each class for one read of the reconcile, while all classes have due reads. No class starves. */
const SHARES = {
  [URGENCY.event]: 64,
  [URGENCY.track]: 8,
  [URGENCY.verification]: 8,
  [URGENCY.reconcile]: 1,
} as const satisfies Record<SharedUrgency, number>
const { event, track, verification, reconcile } = URGENCY
const CLASSES: readonly SharedUrgency[] = [event, track, verification, reconcile]
const FIRST_PASSES = { [event]: 0, [track]: 0, [verification]: 0, [reconcile]: 0 }

/**
 * Decides which class is read next, by stride scheduling: each class has a pass, the lowest pass goes first, and a read
 * raises the pass of its class by the inverse of its share. A class without due reads accumulates no advantage.
 */
export function createReadTurns(from = FIRST_PASSES) {
  const passes = { ...from }

  return {
    /** A copy for a trial: taking from it does not change the original. */
    copy: () => createReadTurns(passes),

    /** The classes in their order, without those that are left out because they have no slot. */
    order: (leftOut: (urgency: SharedUrgency) => boolean): SharedUrgency[] =>
      CLASSES.filter((urgency) => !leftOut(urgency)).sort((a, b) => passes[a] - passes[b]),

    /** A read of this class was leased. The classes before it in `order` had no due read. */
    taken(urgency: SharedUrgency, order: readonly SharedUrgency[]) {
      const now = passes[urgency]
      // No class keeps a lower pass than the one taken.
      for (const each of order) passes[each] = Math.max(passes[each], now)
      passes[urgency] = now + 1 / SHARES[urgency]
    },
  }
}
