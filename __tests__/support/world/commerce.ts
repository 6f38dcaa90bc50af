import type { Platform, Subscription } from '../platform/platform.js'
import { OTHER_ITEM, OUR_ITEM } from '../settings.js'
import type { Deliverer } from './deliverer.js'
import type { Random } from './random.js'

/** What a business is to the app: `gone` after an uninstall, else by the state of one of its subscriptions. */
export type Standing = keyof typeof HABITS
export type Act =
  | 'buys'
  | 'upgrades'
  | 'pays'
  | 'misses a payment'
  | 'cancels'
  | 'resumes'
  | 'uninstalls'
  | 'leaves'
  | 'returns'
  | 'installs'
  | 'edits'
  | 'buys another item'

/** What a business of each standing does next, with the weight of each act. */
const HABITS = {
  new: { buys: 1 },
  purchased: {
    'misses a payment': 0.4,
    cancels: 0.2,
    uninstalls: 0.2,
    leaves: 0.08,
    upgrades: 0.1,
    edits: 0.05,
    installs: 0.04,
    'buys another item': 0.05,
  },
  suspended: { pays: 0.7, cancels: 0.1, uninstalls: 0.2, edits: 0.05 },
  canceled: { buys: 0.75, resumes: 0.25 },
  gone: { returns: 1 },
} satisfies Record<string, Partial<Record<Act, number>>>

/** Four of five purchases are paid at once. */
export const PAID_AT_ONCE = 0.8

/** Draws what a business does next, among the acts that its world knows. */
export function nextAct<A extends Act>(
  next: () => number,
  standing: Standing,
  acts: Readonly<Partial<Record<A, unknown>>>,
  weights: Partial<Record<Act, number>> = {},
): A {
  const habits = Object.entries({ ...HABITS[standing] }).flatMap(([act, usual]): [A, number][] =>
    act in acts ? [[act as A, weights[act as A] ?? usual]] : [],
  )
  let rest = next() * habits.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [act, weight] of habits) {
    rest -= weight
    if (rest < 0) return act
  }
  return (habits.at(-1) as [A, number])[0]
}

/** The standing of a business that uses the app, by the state of a subscription. */
export function standingOf(state: string | undefined): Standing {
  if (state === undefined || state === 'none') return 'new'
  return state.startsWith('cancel') ? 'canceled' : (state as 'purchased' | 'suspended')
}

/**
 * The businesses of a world: what they do on the platform, and what the platform then sends. Each world decides when
 * they act.
 */
export function createCommerce(options: {
  platform: Pick<Platform, 'set' | 'of' | 'subscriptions' | 'refuse' | 'isRefused' | 'recordOf'>
  deliverer: Pick<Deliverer, 'purchase' | 'record' | 'install'>
  random: Random
  /** Acts beside those of every world. */
  also?: readonly Act[]
  weights?: Partial<Record<Act, number>>
  /** Which of its subscriptions a business acts on, or none; without it, one that it still has, or the last one. */
  choose?(own: readonly Subscription[]): Subscription | undefined
  /** The probability that the event of a purchase carries the full record. */
  withRecord?: number
}) {
  const { platform, deliverer, random, also = [], weights = {}, choose = stillHas, withRecord = 0 } = options
  const all = new Set<string>()
  let made = 0

  function buy(business: string, state: State = 'purchased', item?: string) {
    all.add(business)
    const bought = platform.set(`s${made++}-${business}`, business, state, item)
    const isFull = withRecord > 0 && random.chance(withRecord)
    const isDelivered = isFull
      ? deliverer.record(bought, platform.recordOf(bought), 'created')
      : deliverer.purchase(bought, 'created')
    return { uid: bought.uid, isDelivered }
  }

  function move(uid: string, state: State): Promise<boolean> {
    const { business } = platform.subscriptions.get(uid) as Subscription
    return deliverer.purchase(platform.set(uid, business, state), 'update')
  }

  /** The platform cancels all of its subscriptions, and refuses its tokens from then on. */
  function uninstall(business: string) {
    const isDelivered = openOf(business).map(({ uid }) => move(uid, 'canceled'))
    platform.refuse(business)
    return Promise.all([...isDelivered, deliverer.install(business, 'uninstalled')])
  }

  function comeBack(business: string, tokensAfterMs = 0) {
    platform.refuse(business, tokensAfterMs)
    void deliverer.install(business, 'installed')
    return buy(business)
  }

  const openOf = (business: string) =>
    platform.of(business).filter(({ state }) => !state.startsWith('cancel'))
  const buysPaidOrNot = (business: string) =>
    void buy(business, random.chance(PAID_AT_ONCE) ? 'purchased' : 'suspended')

  const payments = {
    buys: buysPaidOrNot,
    pays: (_business: string, uid: string) => void move(uid, 'purchased'),
    'misses a payment': (_business: string, uid: string) => void move(uid, 'suspended'),
  }
  const usual = {
    ...payments,
    cancels: (_business: string, uid: string) => void move(uid, 'canceled'),
    uninstalls: (business: string) => void uninstall(business),
    returns: (business: string) => void comeBack(business),
  }
  const unusual = {
    upgrades: buysPaidOrNot,
    'buys another item': (business: string) => void buy(business, 'purchased', OTHER_ITEM),
    /** Another field of the record changes. */
    edits(business: string, uid: string) {
      const { state } = platform.subscriptions.get(uid) as Subscription
      const edited = platform.set(uid, business, state)
      void deliverer.record(edited, platform.recordOf(edited))
    },
    installs: (business: string) => void deliverer.install(business, 'installed'),
  }
  const acts: Partial<Record<Act, (business: string, uid: string) => void>> = { ...usual }
  for (const act of also) acts[act] = unusual[act as keyof typeof unusual]

  function actAmong(possible: typeof acts, business: string, chosen: Subscription | undefined) {
    const standing = platform.isRefused(business) ? 'gone' : standingOf(chosen?.state)
    possible[nextAct(random.next, standing, possible, weights)]?.(business, chosen?.uid ?? '')
  }

  function stillHas(own: readonly Subscription[]): Subscription | undefined {
    const open = own.filter(({ item, state }) => item === OUR_ITEM && !state.startsWith('cancel'))
    return open.length > 1 ? random.pick(open) : (open[0] ?? own.at(-1))
  }

  return {
    all,
    buy,
    move,
    uninstall,
    comeBack,
    /** Lets the business do anything. */
    act: (business: string) => actAmong(acts, business, choose(platform.of(business))),
    /** A payment that succeeds or fails, or a purchase if it has few. */
    pay(business: string, uid?: string) {
      const own = platform.of(business)
      const chosen = uid === undefined ? choose(own) : platform.subscriptions.get(uid)
      if (platform.isRefused(business) || (!chosen && own.length > MOST_BOUGHT_IN_PASSING)) return
      actAmong(payments, business, chosen)
    },
  }
}

/** Flurries of payments must not fill a world with subscriptions. */
const MOST_BOUGHT_IN_PASSING = 3

type State = 'purchased' | 'suspended' | 'canceled'
