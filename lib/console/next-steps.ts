import type { Reason } from '../index.js'

/** The button that the page highlights for the next step. */
export type StepAction = 'refresh' | 'track' | 'health' | 'none'

/** The texts of the console for an answer: a headline, and what to do. */
export interface NextStep {
  /** The answer as a headline. */
  headline: string
  /** What to do now. */
  step: string
  action: StepAction
}

/** The next step for each reason of a decision. A reason without one is a type error. */
export const NEXT_STEPS = {
  purchased: {
    headline: 'May use the app',
    step: 'The subscription gives access. Ask the customer to sign out and in again, and check that they use the account of this business.',
    action: 'none',
  },
  not_read_yet: {
    headline: 'Not yet: the purchase is being checked',
    step: 'Press Read again. If the answer does not change, the platform does not show the subscription yet: look at Health, and try again in a few minutes.',
    action: 'refresh',
  },
  stale: {
    headline: 'Not now: not confirmed for too long',
    step: 'Press Read again. If the answer does not change, the app cannot read the platform: send the failure below to an operator. Inform the customer that the problem is on our side.',
    action: 'refresh',
  },
  entitled_when_failed: {
    headline: 'Not known: the rule of the app fails',
    step: 'Send the explanation below to the developer of the app: the option entitledWhen must be corrected. Inform the customer that the problem is on our side.',
    action: 'none',
  },
  denied_by_rule: {
    headline: 'May not use the app: the rule of the app denies it',
    step: "The subscription is purchased, and the app's option entitledWhen denies it. Ask the developer of the app which records the rule admits.",
    action: 'none',
  },
  not_purchased: {
    headline: 'May not use the app',
    step: 'Ask the customer to check the subscription and its payment on the platform. After the payment, press Read again.',
    action: 'refresh',
  },
  revoked: {
    headline: 'May not use the app: uninstalled',
    step: 'Ask the customer to install the app again on the platform. Then press Read again.',
    action: 'refresh',
  },
  ended: {
    headline: 'May not use the app: the subscription has ended',
    step: 'Ask the customer to buy the app again on the platform. If they still pay for it, press Read again. If the answer does not change, send the failure below to an operator.',
    action: 'refresh',
  },
  missing: {
    headline: 'May not use the app: the platform does not show the subscription',
    step: 'Ask the customer for the identifier of the subscription on the platform, and for the name of the account that bought it. If the identifier is another one, track it.',
    action: 'track',
  },
  unreadable: {
    headline: 'May not use the app: the platform refuses to show the subscription',
    step: 'Ask the customer whether the app is still installed for this business. If it is, press Read again. If the answer does not change, send the failure below to an operator.',
    action: 'refresh',
  },
  other_app: {
    headline: 'May not use the app: bought another item',
    step: 'Show the customer which item they bought. If it is one of yours, an operator must add it to app.purchasableUid. If they bought two items, ask for the identifier of the other subscription and track it.',
    action: 'track',
  },
  other_item: {
    headline: 'May not use this: bought another item of yours',
    step: 'Show the customer which item they bought and which one this requires. If they bought both, ask for the identifier of the other subscription and track it.',
    action: 'track',
  },
  unknown_business: {
    headline: 'Not known here',
    step: 'Ask the customer for the identifier of the subscription, which the platform shows with the purchase, and track it.',
    action: 'track',
  },
  invalid_business_uid: {
    headline: 'This is not an identifier',
    step: 'Copy the identifier of the business or of the subscription from the platform, and paste it again.',
    action: 'none',
  },
  item_unknown: {
    headline: 'The item does not exist',
    step: 'Send this to the developer of the app: the item in the question is not one of app.purchasableUid.',
    action: 'none',
  },
  store_unavailable: {
    headline: 'There is no answer at the moment',
    step: 'The database cannot be read. Call an operator, and show them Health.',
    action: 'health',
  },
} as const satisfies Record<Reason, NextStep>

/** Next steps for states that are more specific than the reason. */
const STEPS_BY_STATE = new Map([
  [
    'suspended',
    'The payment failed or has not arrived. Ask the customer to pay on the platform. After the payment, press Read again.',
  ],
  [
    'canceled',
    'The subscription was canceled. Ask the customer to buy the app again on the platform. Then press Read again.',
  ],
])

/** `states`: the `purchase_state` of each subscription. */
export function nextStepFor(reason: Reason, states: readonly (string | null)[]): NextStep {
  const step: NextStep = NEXT_STEPS[reason]
  const [state, ...others] = new Set(states)
  const byState = reason === 'not_purchased' && others.length === 0 && STEPS_BY_STATE.get(state ?? '')
  return byState ? { ...step, step: byState } : step
}
