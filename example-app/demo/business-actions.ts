import type { FullSubscription, Simulator } from '../../lib/testing/index.js'
import { nameOf } from './businesses.js'
import type { Timeline } from './timeline.js'

/** The state of a business on the platform. */
export interface Standing {
  business_uid: string
  /** Its latest subscription to the app. */
  subscription: FullSubscription | undefined
  /** `bought`: it has bought the app, and no install was reported. */
  presence: 'none' | 'bought' | 'installed'
}

interface Action {
  /** The action as a phrase for the timeline. */
  phrase: string
  /** Why the action is not possible now, as a sentence for a person; null when it is possible. */
  whyNot(standing: Standing): string | null
  perform(simulator: Simulator, standing: Standing): void
}

/** The actions of a business on the platform: the transition table of the interface document, and installs. */
export const ACTIONS = {
  buy: {
    phrase: 'buys the app, and the payment succeeds',
    whyNot: whyNotBuy,
    perform: (simulator, standing) =>
      simulator.purchase({ ...newPurchase(simulator, standing), payment: 'succeeded' }),
  },
  buyUnpaid: {
    phrase: 'buys the app, and the payment fails',
    whyNot: whyNotBuy,
    perform: (simulator, standing) =>
      simulator.purchase({ ...newPurchase(simulator, standing), payment: 'failed' }),
  },
  failPayment: {
    phrase: 'misses a payment',
    whyNot: (standing) =>
      stateOf(standing) === 'suspended'
        ? 'The payment has failed already'
        : whyNotIn(standing, ['purchased']),
    perform: (simulator, standing) => simulator.paymentIssue(uidOf(standing)),
  },
  confirmPayment: {
    phrase: 'pays, and the payment is confirmed',
    whyNot: (standing) =>
      stateOf(standing) === 'purchased' ? 'No payment is due' : whyNotIn(standing, ['suspended']),
    perform: (simulator, standing) => simulator.confirmPayment(uidOf(standing)),
  },
  cancel: {
    phrase: 'cancels the subscription',
    whyNot: (standing) => whyNotIn(standing, ['purchased', 'suspended']),
    perform: (simulator, standing) => simulator.cancel(uidOf(standing)),
  },
  install: {
    phrase: 'installs the app',
    whyNot: ({ presence }) => (presence === 'installed' ? 'The app is installed already' : null),
    perform: (simulator, { business_uid }) => simulator.install(business_uid),
  },
  uninstall: {
    phrase: 'uninstalls the app',
    whyNot: ({ presence }) => (presence === 'none' ? 'The app is not there: buy or install it first' : null),
    perform: (simulator, { business_uid }) => simulator.uninstall(business_uid),
  },
} as const satisfies Record<string, Action>

export type ActionName = keyof typeof ACTIONS

export function isActionName(name: string): name is ActionName {
  return Object.hasOwn(ACTIONS, name)
}

/** For every action, why it is not possible now, or null. */
export function whyNotAll(standing: Standing): Record<ActionName, string | null> {
  const rows = Object.entries(ACTIONS).map(([name, { whyNot }]) => [name, whyNot(standing)])
  return Object.fromEntries(rows) as Record<ActionName, string | null>
}

export function stateOf({ subscription }: Standing): string {
  return subscription?.purchase_state ?? 'none'
}

/** Readable identifiers. Those of the platform need not be UUIDs either. */
function newPurchase(simulator: Simulator, { business_uid }: Standing) {
  const count = simulator.subscriptions().filter((each) => each.business_uid === business_uid).length
  return { business_uid, subscription_uid: `${business_uid}-${count + 1}` }
}

function whyNotBuy(standing: Standing): string | null {
  return ['none', 'canceled'].includes(stateOf(standing)) ? null : 'There is a subscription already'
}

function whyNotIn(standing: Standing, states: readonly string[]): string | null {
  const state = stateOf(standing)
  if (states.includes(state)) return null
  return state === 'none' ? 'Nothing has been bought yet' : `The subscription is ${state}`
}

function uidOf({ subscription }: Standing): string {
  return subscription?.uid ?? ''
}

/** What businesses do on the platform, and how each of them stands. */
export function createBusinessActions({ simulator, timeline }: { simulator: Simulator; timeline: Timeline }) {
  const presence = new Map<string, Standing['presence']>()

  function standing(businessUid: string): Standing {
    const subscription = simulator
      .subscriptions()
      .findLast(({ business_uid }) => business_uid === businessUid)
    return { business_uid: businessUid, subscription, presence: presence.get(businessUid) ?? 'none' }
  }

  /** Performs the action, or returns the reason why it is not possible. */
  function perform(name: ActionName, businessUid: string): string | null {
    const { phrase, whyNot, perform } = ACTIONS[name]
    const now = standing(businessUid)
    const why = whyNot(now)
    if (why) return why
    timeline.begin({ kind: 'platform', business_uid: businessUid, text: `${nameOf(businessUid)} ${phrase}` })
    perform(simulator, now)
    if (name === 'install') presence.set(businessUid, 'installed')
    if (name === 'uninstall') presence.delete(businessUid)
    if (name.startsWith('buy') && now.presence === 'none') presence.set(businessUid, 'bought')
    return null
  }

  return { standing, perform }
}
