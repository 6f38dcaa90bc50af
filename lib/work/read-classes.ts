import { type ClaimReads, type ReadClaim, URGENCY, type Urgency } from '../store/store.js'
import { createReadTurns, type SharedUrgency } from './read-turns.js'

/**
 * Which class of reads the shared loop leases next. The shares of `read-turns.ts` decide, within two limits: the
 * reconcile never takes every slot, and neither do routine reads that wait for a token.
 */
export function createReadClasses(options: {
  concurrency: number
  isWaitingForToken(businessUid: string): boolean
}) {
  const { concurrency, isWaitingForToken } = options
  /** One slot is left to events. */
  const maxRoutine = Math.max(1, concurrency - 1)
  const turns = createReadTurns()
  const running = new Set<ReadClaim>()

  /** `taken`: the classes of reads that the current claim has leased so far. */
  function hasNoSlot(urgency: Urgency, taken: readonly Urgency[] = []): boolean {
    if (urgency === URGENCY.event) return false
    let waiting = 0
    let reconciles = taken.filter((each) => each === URGENCY.reconcile).length
    for (const claim of running) {
      if (claim.urgency === URGENCY.event) continue
      if (claim.urgency === URGENCY.reconcile) reconciles++
      if (isWaitingForToken(claim.subscription.businessUid)) waiting++
    }
    return waiting >= maxRoutine || (urgency === URGENCY.reconcile && reconciles >= maxRoutine)
  }

  return {
    /** The classes to lease from, the preferred first. */
    order: () => turns.order(hasNoSlot),

    /** Chooses the class of each read of one claim, as if the reads leased so far were running. */
    chooser(): NonNullable<ClaimReads['choose']> {
      let tried = turns.copy()
      return (due, taken) => {
        const last = taken.at(-1) as SharedUrgency | undefined
        if (last === undefined) tried = turns.copy()
        else
          tried.taken(
            last,
            tried.order((urgency) => hasNoSlot(urgency, taken.slice(0, -1))),
          )
        return tried.order((urgency) => hasNoSlot(urgency, taken)).find((urgency) => due.includes(urgency))
      }
    },

    begin(claim: ReadClaim) {
      turns.taken(claim.urgency as SharedUrgency, turns.order(hasNoSlot))
      running.add(claim)
    },

    end(claim: ReadClaim) {
      running.delete(claim)
    },
  }
}
