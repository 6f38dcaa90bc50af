import { type Clock, SECOND } from '../clock.js'

/**
 * Measures how far the caller's wall clock is ahead of the store's time. The result changes only when it is wrong by
 * more than a second, so that the time of an entry is the same in every answer.
 */
export function createStoreTime(clock: Clock) {
  let aheadMs = 0

  return function offset(storeNow: number | undefined): number {
    if (storeNow === undefined) return aheadMs
    const measuredMs = clock.now() - Number(storeNow)
    if (Math.abs(measuredMs - aheadMs) > SECOND) aheadMs = Math.abs(measuredMs) > SECOND ? measuredMs : 0
    return aheadMs
  }
}

export type StoreTime = ReturnType<typeof createStoreTime>
