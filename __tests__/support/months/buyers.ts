import type { VirtualClock } from '../machine/virtual-clock.js'
import { nextAct, PAID_AT_ONCE, standingOf } from '../platform/businesses.js'
import type { Random } from '../simulation/random.js'
import type { Deliveries } from './deliveries.js'
import { HOUR, MINUTE } from './durations.js'
import type { Platform, Subscription } from './platform.js'

/** The businesses of a world with faults, each at its own pace. */
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

  const acts = {
    buys: (business: string) => void buy(business, random.chance(PAID_AT_ONCE) ? 'purchased' : 'suspended'),
    pays: (_business: string, uid: string) => void move(uid, 'purchased'),
    'misses a payment': (_business: string, uid: string) => void move(uid, 'suspended'),
    cancels: (_business: string, uid: string) => void move(uid, 'canceled'),
    uninstalls: (business: string) => void uninstall(business),
    returns: (business: string) => void comeBack(business),
  }

  function act(business: string) {
    const last = platform.of(business).at(-1)
    const standing = platform.isRefused(business) ? 'gone' : standingOf(last?.state)
    acts[nextAct(random.next, standing, acts)](business, last?.uid ?? '')
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
