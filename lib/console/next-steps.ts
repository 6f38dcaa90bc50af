import type { Reason } from '../index.js'

/** What the page offers as a button beside the next step. */
export type StepAction = 'refresh' | 'track' | 'health' | 'none'

/** What the console says about an answer, and what to do. */
export interface NextStep {
  /** The answer as a headline. */
  headline: string
  /** What to do now, in plain words. */
  step: string
  action: StepAction
}

/** The next step for each reason of a decision. A reason without one is a type error. */
export const NEXT_STEPS = {
  purchased: {
    headline: 'May use the app',
    step: 'The subscription is in order, so look elsewhere: have them sign out and in again, and check that they use the account of this business.',
    action: 'none',
  },
  not_read_yet: {
    headline: 'Not yet: being checked',
    step: 'Press Read again. If the answer stays, the platform has not shown the subscription yet: look at Health, and try again in a few minutes.',
    action: 'refresh',
  },
  stale: {
    headline: 'Not now: not confirmed for too long',
    step: 'Press Read again. If the answer stays, the platform cannot be reached: give the failure below to an operator, and tell the customer that it is on our side.',
    action: 'refresh',
  },
  not_purchased: {
    headline: 'May not use the app',
    step: 'Ask them to look at their subscription and its payment on the platform. When they have paid there, press Read again.',
    action: 'refresh',
  },
  revoked: {
    headline: 'May not use the app: uninstalled',
    step: 'Ask them to install the app again on the platform. When they have done so, press Read again.',
    action: 'refresh',
  },
  missing: {
    headline: 'May not use the app: the platform does not show the subscription',
    step: "Ask for the subscription's id as the platform shows it, and for the name of the account that bought it. If the id is another one, track it.",
    action: 'track',
  },
  unreadable: {
    headline: 'May not use the app: the platform refuses to show the subscription',
    step: 'Ask whether the app is still installed for this business. If it is, press Read again; if the answer stays, give the failure below to an operator.',
    action: 'refresh',
  },
  other_app: {
    headline: 'May not use the app: bought something else',
    step: 'Tell them which item they bought. If it is one of yours, an operator adds it to app.purchasableUid. If they bought two, ask for the id of the other subscription and track it.',
    action: 'track',
  },
  other_item: {
    headline: 'May not use this: bought another item of yours',
    step: 'Tell them which item they bought, and which one this needs. If they bought both, ask for the id of the other subscription and track it.',
    action: 'track',
  },
  unknown_business: {
    headline: 'Not known here',
    step: "Ask for the subscription's id, which the platform shows with the purchase, and track it.",
    action: 'track',
  },
  invalid_business_uid: {
    headline: 'This cannot be an identifier',
    step: 'Copy the identifier of the business or of the subscription from the platform, and paste it again.',
    action: 'none',
  },
  item_unknown: {
    headline: 'The item that was asked about does not exist',
    step: 'Give this to the developer of the app: the item in the question is not one of app.purchasableUid.',
    action: 'none',
  },
  store_unavailable: {
    headline: 'Cannot be answered now',
    step: 'The database cannot be read. Call an operator, and show them Health.',
    action: 'health',
  },
  not_recorded: {
    headline: 'Not recorded',
    step: 'The journal does not reach back to that time. Choose a later one.',
    action: 'none',
  },
} as const satisfies Record<Reason, NextStep>

/** Where the state says more than the reason. */
const STEPS_BY_STATE = new Map([
  [
    'suspended',
    'The payment failed or has not come in. Ask them to settle it on the platform. When they have, press Read again.',
  ],
  [
    'canceled',
    'The subscription was canceled. Ask them to buy the app again on the platform, then press Read again.',
  ],
])

/** `states`: the `purchase_state` of each subscription. */
export function nextStepFor(reason: Reason, states: readonly (string | null)[]): NextStep {
  const step: NextStep = NEXT_STEPS[reason]
  const [state, ...others] = new Set(states)
  const byState = reason === 'not_purchased' && others.length === 0 && STEPS_BY_STATE.get(state ?? '')
  return byState ? { ...step, step: byState } : step
}
