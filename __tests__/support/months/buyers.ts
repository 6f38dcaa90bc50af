import type { Random } from '../simulation/random.js'
import type { VirtualClock } from '../virtual-clock.js'
import type { Deliveries } from './deliveries.js'
import { HOUR, MINUTE } from './durations.js'
import type { Platform, Subscription } from './platform.js'

/** Businesses that buy, miss payments, pay, cancel, uninstall and return, each at its own pace. */
export function createBuyers(options: {
  time: VirtualClock
  platform: Platform
  deliveries: Deliveries
  random: Random
}) {
  const { time, platform, deliveries, random } = options
  const businesses = new Set<string>()
  let made = 0
  let areAway = false

  function buy(business: string, state: 'purchased' | 'suspended' = 'purchased') {
    businesses.add(business)
    const bought = platform.set(`s${made++}-${business}`, business, state)
    return { uid: bought.uid, isDelivered: deliveries.purchase(bought, 'created') }
  }

  function move(uid: string, state: Subscription['state']): Promise<boolean> {
    const { business } = platform.subscriptions.get(uid) as Subscription
    return deliveries.purchase(platform.set(uid, business, state), 'update')
  }

  function uninstall(business: string) {
    const isDelivered = platform
      .of(business)
      .filter(({ state }) => state !== 'canceled')
      .map(({ uid }) => move(uid, 'canceled'))
    platform.refuse(business)
    return Promise.all([...isDelivered, deliveries.install(business, 'uninstalled')])
  }

  function comeBack(business: string, tokensAfterMs = 0) {
    platform.refuse(business, tokensAfterMs)
    void deliveries.install(business, 'installed')
    return buy(business)
  }

  function act(business: string) {
    const last = platform.of(business).at(-1)
    if (platform.isRefused(business)) comeBack(business)
    else if (!last || last.state === 'canceled') buy(business, random.chance(0.8) ? 'purchased' : 'suspended')
    else if (last.state === 'suspended') void move(last.uid, 'purchased')
    else if (random.chance(0.15)) void uninstall(business)
    else void move(last.uid, random.chance(0.2) ? 'canceled' : 'suspended')
  }

  function live(business: string) {
    time.after(random.between(10 * MINUTE, 40 * HOUR), () => {
      if (!areAway) act(business)
      live(business)
    })
  }

  return {
    businesses,
    buy,
    move,
    uninstall,
    comeBack,
    /** Makes the business act at random. */
    settle(business: string) {
      businesses.add(business)
      time.after(random.between(0, 6 * HOUR), () => buy(business))
      live(business)
    },
    /** Stops all actions of customers, so that the app's own calls can be counted. */
    rest(isQuiet: boolean) {
      areAway = isQuiet
    },
  }
}

export type Buyers = ReturnType<typeof createBuyers>
