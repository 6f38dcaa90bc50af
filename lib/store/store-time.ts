import { type Clock, SECOND } from '../clock.js'

/**
 * Turns times of the store into times of the caller's wall clock, by what each shows at one moment. The difference is
 * kept until it is wrong by more than a second: the time of one entry must not change from one look to the next.
 */
export function createStoreTime(clock: Clock) {
  let aheadMs = 0

  return function offset(storeNow: number | undefined): number {
    if (storeNow === undefined) return aheadMs
    const seen = clock.now() - Number(storeNow)
    if (Math.abs(seen - aheadMs) > SECOND) aheadMs = Math.abs(seen) > SECOND ? seen : 0
    return aheadMs
  }
}

export type StoreTime = ReturnType<typeof createStoreTime>
