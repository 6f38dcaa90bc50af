import type { Simulator } from '../../../lib/testing/index.js'
import { nextAct, PAID_AT_ONCE, standingOf } from '../platform/businesses.js'
import { OTHER_ITEM, OUR_ITEM } from '../settings.js'
import { now, overlaps, type Window } from './clock.js'

/** Several businesses act each second, so few of them go: many ends within a minute would look like an outage. */
const WEIGHTS = { uninstalls: 0.05, cancels: 0.06, leaves: 0.02, upgrades: 0.03, 'buys another item': 0.03 }

/** The businesses of a run, and when each was allowed to use the app. */
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
    const payment = random() < PAID_AT_ONCE ? 'succeeded' : 'failed'
    const { uid } = platform.purchase({ business_uid: business, purchasable_uid, payment })
    if (purchasable_uid !== OUR_ITEM) return
    subscriptions.get(business)?.push(uid)
    left.delete(business)
    if (!present.has(business)) present.set(business, 'bought')
  }

  const acts = {
    buys: (business: string) => buy(business),
    upgrades: (business: string) => buy(business),
    'buys another item': (business: string) => buy(business, OTHER_ITEM),
    edits: (_business: string, uid: string) => void platform.touch(uid),
    pays: (_business: string, uid: string) => void platform.confirmPayment(uid),
    cancels: (_business: string, uid: string) => void platform.cancel(uid),
    'misses a payment'(_business: string, uid: string) {
      platform.paymentIssue(uid)
      // Both at once: two identical deliveries that mean two changes.
      if (random() < 0.2) platform.confirmPayment(uid)
    },
    leaves: (business: string) => void platform.mainSubscription({ business_uid: business }),
    uninstalls(business: string) {
      if (!present.delete(business)) return
      left.add(business)
      platform.uninstall(business, 'ours')
    },
    installs(business: string) {
      if (present.get(business) === 'installed') return
      present.set(business, 'installed')
      left.delete(business)
      platform.install(business, 'ours')
    },
    returns(business: string) {
      acts.installs(business)
      acts.buys(business)
    },
  }

  function move(business: string) {
    const all = subscriptions.get(business) ?? []
    const uid = pick(all.filter((each) => stateOf(each) !== 'canceled'))
    const standing = left.has(business) ? 'gone' : standingOf(uid && stateOf(uid))
    acts[nextAct(random, standing, acts, WEIGHTS)](business, uid ?? '')
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
