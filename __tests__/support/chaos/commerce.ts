import type { Simulator } from '../../../lib/testing/index.js'
import { OTHER_ITEM, OUR_ITEM } from '../settings.js'
import { now, overlaps, type Window } from './clock.js'

/**
 * Businesses that buy, miss payments, pay, cancel, install and uninstall. It also records when each was allowed to use
 * the app.
 */
export function createCommerce(options: { platform: Simulator; businesses: number; random: () => number }) {
  const { platform, random } = options
  const businesses = Array.from({ length: options.businesses }, (_, i) => `business-${i}`)
  const subscriptions = new Map<string, string[]>(businesses.map((business) => [business, []]))
  const allowed = new Map<string, Window[]>(businesses.map((business) => [business, []]))
  /** The businesses that have the app: only these can uninstall it. */
  const present = new Map<string, 'bought' | 'installed'>()
  /** The businesses that uninstalled the app last. */
  const left = new Set<string>()
  let moves = 0

  function pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(random() * items.length)]
  }

  function buy(business: string, purchasable_uid = OUR_ITEM) {
    const payment = random() < 0.75 ? 'succeeded' : 'failed'
    const { uid } = platform.purchase({ business_uid: business, purchasable_uid, payment })
    if (purchasable_uid !== OUR_ITEM) return
    subscriptions.get(business)?.push(uid)
    left.delete(business)
    if (!present.has(business)) present.set(business, 'bought')
  }

  function move(business: string) {
    const living = (subscriptions.get(business) ?? []).filter((uid) => stateOf(uid) !== 'canceled')
    const uid = pick(living)
    const chance = random()
    if (present.has(business) && chance < 0.06) {
      present.delete(business)
      left.add(business)
      return platform.uninstall(business, 'ours')
    }
    if (present.get(business) !== 'installed' && chance < 0.1) {
      present.set(business, 'installed')
      left.delete(business)
      return platform.install(business, 'ours')
    }
    if (chance < 0.13) return buy(business, OTHER_ITEM)
    if (chance < 0.15) return platform.mainSubscription({ business_uid: business })
    if (!uid || (chance < 0.2 && living.length < 3)) return buy(business)
    if (chance < 0.28) return platform.cancel(uid)
    if (chance < 0.35) return platform.touch(uid)
    if (stateOf(uid) === 'suspended') return platform.confirmPayment(uid)
    platform.paymentIssue(uid)
    // Both at once: two identical deliveries that mean two changes.
    if (chance > 0.8) platform.confirmPayment(uid)
  }

  const stateOf = (uid: string) => platform.subscription(uid)?.purchase_state

  function isAllowed(business: string): boolean {
    return (subscriptions.get(business) ?? []).some((uid) => stateOf(uid) === 'purchased')
  }

  return {
    businesses,
    subscriptions,
    isAllowed,

    /** Does one random action of a business. */
    step(business = pick(businesses) as string) {
      moves++
      move(business)
      const windows = allowed.get(business) as Window[]
      const last = windows.at(-1)
      const isOpen = last?.to === Number.POSITIVE_INFINITY
      if (isAllowed(business)) {
        if (!isOpen) windows.push({ from: now(), to: Number.POSITIVE_INFINITY })
      } else if (last && isOpen) last.to = now()
    },

    /** Makes the first purchase of each business. */
    begin() {
      for (const business of businesses) if (random() < 0.7) this.step(business)
    },

    wasAllowedWithin: (business: string, span: Window) =>
      (allowed.get(business) ?? []).some((window) => overlaps(window, span)),
    /** When the business was last allowed to use the app. Infinity: it still is. -Infinity: it never was. */
    lastAllowed: (business: string) => allowed.get(business)?.at(-1)?.to ?? Number.NEGATIVE_INFINITY,
    allowedWindows: (business: string): readonly Window[] => allowed.get(business) ?? [],
    /** Whether the platform refuses its token, because it uninstalled the app. */
    hasLeft: (business: string) => left.has(business),
    moves: () => moves,
  }
}

export type Commerce = ReturnType<typeof createCommerce>
