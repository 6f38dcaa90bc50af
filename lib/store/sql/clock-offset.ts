import { type Clock, SECOND } from '../../base/clock.js'

/**
 * Measures how far the caller's wall clock is ahead of the store's time. All times that a store returns are converted by
 * the one measure, so that clocks of two machines are never compared, and all that was written at one moment shows the
 * same time. The measure changes only when it is wrong by more than a second: an answer that was long on its way does not
 * move the times, and clocks that differ by less count as equal.
 */
export function createClockOffset(clock: Clock) {
  let aheadMs = 0

  return function offset(storeNow: number | undefined): number {
    if (storeNow === undefined) return aheadMs
    const measuredMs = Math.round(clock.now() - storeNow)
    if (Math.abs(measuredMs - aheadMs) > SECOND) aheadMs = Math.abs(measuredMs) > SECOND ? measuredMs : 0
    return aheadMs
  }
}

export type ClockOffset = ReturnType<typeof createClockOffset>
