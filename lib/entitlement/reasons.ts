/** What a support person does now. */
export interface NextStep {
  next: string
  /** The action that `next` asks for, so that a page or a program can offer it. */
  action: 'refresh' | 'track' | 'health' | 'none'
}

interface ReasonRow extends NextStep {
  rank: number
  entitled: boolean
  known: boolean
  meaning: string
  /** A more specific next step, by the `purchase_state` or the `failure` of the subscriptions that decide. */
  nextIf?: Record<string, NextStep>
}

const IF_READS_FAIL = {
  app_credentials_refused: {
    next: 'The platform refuses the credentials of the app: an operator must correct app.clientId and app.clientSecret. Inform the customer that the problem is on our side.',
    action: 'health',
  },
  platform_throttled: {
    next: 'The platform limits the rate of reads. The app continues by itself: try again in a few minutes.',
    action: 'none',
  },
} as const

/**
 * Why a business may or may not use the app. `rank`: of several subscriptions the lowest decides. `known`: false while
 * the answer is uncertain; then a page should ask the visitor to come back later, not to buy. `next`: what a support
 * person does now.
 */
export const REASONS = {
  purchased: {
    rank: 0,
    entitled: true,
    known: true,
    meaning: 'The app is purchased.',
    next: 'The subscription gives access. If the customer has none, ask them to sign out and in again, and check that they use the account of this business.',
    action: 'none',
  },
  not_read_yet: {
    rank: 1,
    entitled: false,
    known: false,
    meaning: 'A subscription was announced or is searched for, and the platform has not shown it yet.',
    next: 'Read again. If the answer does not change, the platform does not show the subscription yet: look at the health of the app, and try again in a few minutes.',
    action: 'refresh',
    nextIf: IF_READS_FAIL,
  },
  stale: {
    rank: 2,
    entitled: false,
    known: false,
    meaning:
      'The subscription was purchased when last read, but the platform has not confirmed it for too long.',
    next: 'Read again. If the answer does not change, the app cannot read the platform: send the failure of the subscription to an operator. Inform the customer that the problem is on our side.',
    action: 'refresh',
    nextIf: IF_READS_FAIL,
  },
  entitled_when_failed: {
    rank: 3,
    entitled: false,
    known: false,
    meaning: "The app's own rule entitledWhen fails, so whether the subscription gives access is not known.",
    next: 'Send the explanation to the developer of the app: the option entitledWhen must be corrected. Inform the customer that the problem is on our side.',
    action: 'none',
  },
  denied_by_rule: {
    rank: 4,
    entitled: false,
    known: true,
    meaning: "The subscription is purchased, and the app's own rule entitledWhen denies it.",
    next: 'Ask the developer of the app which records the option entitledWhen admits, and compare them with the record of the subscription.',
    action: 'none',
  },
  not_purchased: {
    rank: 5,
    entitled: false,
    known: true,
    meaning: 'The platform shows the subscription in another state than purchased.',
    next: 'Ask the customer to check the subscription and its payment on the platform. After the payment, read again.',
    action: 'refresh',
    nextIf: {
      suspended: {
        next: 'The payment failed or has not arrived. Ask the customer to pay on the platform. After the payment, read again.',
        action: 'refresh',
      },
      canceled: {
        next: 'The subscription was canceled. Ask the customer to buy the app again on the platform. Then read again.',
        action: 'refresh',
      },
    },
  },
  revoked: {
    rank: 6,
    entitled: false,
    known: true,
    meaning: 'The business uninstalled the app, and the platform no longer gives access to its subscription.',
    next: 'Ask the customer to install the app again on the platform. Then read again.',
    action: 'refresh',
  },
  ended: {
    rank: 7,
    entitled: false,
    known: true,
    meaning: 'The platform refuses to show the subscription any more, and it has ended.',
    next: 'Ask the customer to buy the app again on the platform. If they still pay for it, read again. If the answer does not change, send the failure of the subscription to an operator.',
    action: 'refresh',
  },
  missing: {
    rank: 8,
    entitled: false,
    known: true,
    meaning: 'The platform does not show the subscription.',
    next: 'Ask the customer for the identifier of the subscription on the platform, and for the name of the account that bought it. If the identifier is another one, track it.',
    action: 'track',
  },
  unreadable: {
    rank: 9,
    entitled: false,
    known: true,
    meaning: 'A subscription was announced, and the platform refuses to show it to this app.',
    next: 'Ask the customer whether the app is still installed for this business. If it is, read again. If the answer does not change, send the failure of the subscription to an operator.',
    action: 'refresh',
    nextIf: {
      platform_record_mismatch: {
        next: 'The subscription belongs to another business. Ask the customer which of their accounts bought the app, and look at that business.',
        action: 'none',
      },
    },
  },
  other_app: {
    rank: 10,
    entitled: false,
    known: true,
    meaning: 'All known subscriptions of this business are for other apps.',
    next: 'Show the customer which item they bought. If it is one of yours, an operator must add it to app.purchasableUid (MARKETPLACE_PURCHASABLE_UID). If they bought two items, ask for the identifier of the other subscription and track it.',
    action: 'track',
  },
  other_item: {
    rank: 11,
    entitled: false,
    known: true,
    meaning: 'All known subscriptions of this business are for other items.',
    next: 'Show the customer which item they bought and which one this requires. If they bought both, ask for the identifier of the other subscription and track it.',
    action: 'track',
  },
  unknown_business: {
    rank: 12,
    entitled: false,
    known: true,
    meaning: 'No event, no call and no search has named a subscription of this business.',
    next: 'Ask the customer for the identifier of the subscription, which the platform shows with the purchase, and track it.',
    action: 'track',
  },
  invalid_business_uid: {
    rank: 13,
    entitled: false,
    known: true,
    meaning: 'The given value is not an identifier of a business.',
    next: 'Copy the identifier of the business or of the subscription from the platform, and paste it again.',
    action: 'none',
  },
  item_unknown: {
    rank: 14,
    entitled: false,
    known: true,
    meaning: 'The requested item is not one of app.purchasableUid.',
    next: 'Correct the spelling of the item in the question. If it is right, an operator must add it to app.purchasableUid (MARKETPLACE_PURCHASABLE_UID).',
    action: 'none',
  },
  store_unavailable: {
    rank: 15,
    entitled: false,
    known: false,
    meaning: 'The database cannot be read now.',
    next: 'The database cannot be read. Call an operator, and show them the health of the app.',
    action: 'health',
  },
} as const satisfies Record<string, ReasonRow>

/** Why a business may use the app or may not: see `REASONS`. */
export type Reason = keyof typeof REASONS

/**
 * The next step for a decision: that of its reason, or of a state or failure that all deciding subscriptions share.
 *
 * @example
 * const { next } = nextStepOf(await marketplace.explain('business-1'))
 */
export function nextStepOf(decision: {
  reason: Reason
  subscriptions: readonly { reason: Reason; purchase_state: string | null; failure: string | null }[]
}): NextStep {
  const { next, action, nextIf = {} }: ReasonRow = REASONS[decision.reason]
  const deciding = decision.subscriptions.filter(({ reason }) => reason === decision.reason)
  const found = Object.keys(nextIf).find((key) =>
    deciding.every(({ purchase_state, failure }) => key === purchase_state || key === failure),
  )
  return (deciding.length > 0 && found !== undefined && nextIf[found]) || { next, action }
}
