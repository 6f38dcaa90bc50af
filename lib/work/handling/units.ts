import type { Entry } from '../../store/port/store.js'

/**
 * The entries of a lane that one call of the handlers settles. If the handlers fail, the first is tried again or is dead, and
 * the others stay pending.
 */
export type Unit = readonly [first: Entry, ...others: Entry[]]

/**
 * The unit that begins at a place of a lane: one entry, or of an entitlement all that follow. Its payload is made after all of
 * them were written, so it has them all, and one call is enough.
 */
export function unitAt(entries: readonly Entry[], place: number): Unit | undefined {
  const first = entries[place]
  return first && (first.kind === 'entitlement' ? [first, ...entries.slice(place + 1)] : [first])
}

/** The last entry of a unit. The unit has the same payload as long as it is the last. */
export const lastOf = (unit: Unit): Entry => unit.at(-1) as Entry
