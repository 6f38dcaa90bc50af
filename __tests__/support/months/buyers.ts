import { HOUR, MINUTE } from '../../../lib/base/clock.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { createCommerce } from '../world/commerce.js'
import type { Random } from '../world/random.js'
import type { Deliveries } from './deliveries.js'
import type { Platform } from './platform.js'

/** The businesses of a world with faults, each at its own pace. */
export function createBuyers(options: {
  time: VirtualClock
  platform: Platform
  deliverer: Deliveries
  random: Random
}) {
  const { time, random } = options
  const businesses = createCommerce(options)
  let areAway = false

  function live(business: string) {
    time.after(random.between(10 * MINUTE, 40 * HOUR), () => {
      if (!areAway) businesses.act(business)
      live(business)
    })
  }

  return {
    ...businesses,
    /** Makes the business act at random. */
    settle(business: string) {
      businesses.all.add(business)
      time.after(random.between(0, 6 * HOUR), () => businesses.buy(business))
      live(business)
    },
    /** Stops all actions of customers, so that the app's own calls can be counted. */
    rest(isQuiet: boolean) {
      areAway = isQuiet
    },
  }
}

export type Buyers = ReturnType<typeof createBuyers>
