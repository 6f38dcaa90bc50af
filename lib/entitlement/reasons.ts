/** What a support person does now. */
export interface NextStep {
  /** What to do, in sentences for a support person. */
  next: string
  /** The action that `next` asks for, so that a page or a program can offer it. */
  action: 'refresh' | 'track' | 'replay' | 'health' | 'none'
  /** A text for the customer, in plain words and without an identifier. */
  customer: string
  /** `replay`: the entry of the journal whose handler failed. */
  entryId?: string
}

/** What the package says of a reason. */
export interface ReasonRow extends NextStep {
  /** Of several subscriptions the one with the lowest rank decides. */
  rank: number
  /** Whether the business may use the app. */
  entitled: boolean
  /** False while the answer is uncertain. */
  known: boolean
  /** The reason in a sentence. */
  meaning: string
  /**
   * More specific next steps, the first of which applies: by the `purchase_state` or the `failure` of the subscriptions that
   * decide, by what the journal shows, or without a subscription by the search for one.
   */
  nextIf?: Record<string, NextStep>
}

const ON_OUR_SIDE = 'The problem is on our side, and we are working on it. Please try again later.'
const NO_ANSWER_YET =
  'Your purchase is being checked, and the marketplace does not answer us at the moment. Please try again in a few minutes. You need not do anything else.'

const LOOK_AT_THE_ENTRY =
  'Send this to an operator, unless you are one: the failed entry has the error. Replay it when the cause is mended.'
const STILL_SET_UP =
  'Your purchase is active, and it is still being set up. Please try again in a few minutes.'
const SETTING_UP_HAS_FAILED =
  'Your purchase is active. Setting it up has failed on our side, and we are working on it.'

/** Who has paid again must not be asked to pay once more: the event of the second purchase may be lost. */
const TRACK_ANOTHER = 'If the platform shows the customer another subscription that is paid, track it.'
const SEND_US_ANOTHER =
  'If the marketplace shows you another subscription that is paid, please send us its identifier instead.'

const PLATFORM_IS_DOWN = {
  next: 'The app cannot read the platform at the moment, and tries again by itself. Read again in a few minutes. If it lasts, send this to an operator, unless you are one: the health of the app shows more. Inform the customer that the problem is not on their side.',
  action: 'health',
  customer: NO_ANSWER_YET,
} as const

const PLATFORM_IS_NOT_UNDERSTOOD = {
  next: 'The app does not understand what the platform answers. Send this to an operator, unless you are one: the address of the platform may be wrong. Inform the customer that the problem is on our side.',
  action: 'health',
  customer: ON_OUR_SIDE,
} as const

const IS_THE_APP_INSTALLED = {
  next: 'The platform gives the app no access to this business. Does it have the app installed? Ask the customer to look on the platform, and to install the app if it is not there. Then read again.',
  action: 'refresh',
  customer:
    'Please look on the marketplace whether the app is installed for your business, and install it if it is not. Then tell us, and we check again.',
} as const

const READS_ARE_LIMITED = {
  next: 'The platform limits how often the app may read, so the app has no answer now. It reads by itself as soon as it may, which can take an hour. Ask nobody to pay before that.',
  action: 'none',
  customer:
    'Your purchase is being checked, and the marketplace lets us ask only later. You need not do anything else.',
} as const

const IF_READS_FAIL = {
  app_credentials_refused: {
    next: 'The platform refuses the app itself: an operator must correct the credentials of the app. Inform the customer that the problem is on our side.',
    action: 'health',
    customer: ON_OUR_SIDE,
  },
  reads_throttled: READS_ARE_LIMITED,
  platform_throttled: READS_ARE_LIMITED,
  token_refused: IS_THE_APP_INSTALLED,
  platform_unreachable: PLATFORM_IS_DOWN,
  platform_timeout: PLATFORM_IS_DOWN,
  platform_failing: PLATFORM_IS_DOWN,
  platform_redirected: PLATFORM_IS_NOT_UNDERSTOOD,
  platform_reply_too_large: PLATFORM_IS_NOT_UNDERSTOOD,
  platform_reply_invalid: PLATFORM_IS_NOT_UNDERSTOOD,
} as const

const IF_SEARCHES_FAIL = {
  ...IF_READS_FAIL,
  find_subscriptions_failed: {
    next: 'The app searches the platform for a purchase, and its search has an error. Send this to an operator, unless you are one: the health of the app shows more. Inform the customer that the problem is on our side.',
    action: 'health',
    customer: ON_OUR_SIDE,
  },
} as const

const ROWS = {
  purchased: {
    rank: 0,
    entitled: true,
    known: true,
    meaning: 'A subscription gives access.',
    next: 'The subscription gives access. If the customer has none, ask them to sign out and in again, and check that they use the account of this business.',
    action: 'none',
    customer:
      'Your purchase is active, and you may use the app. If you cannot, please sign out and in again, with the account of the business that bought the app.',
    nextIf: {
      handler_dead: {
        next: `The purchase is fine; setting it up failed, and the app does not try again by itself. ${LOOK_AT_THE_ENTRY} Inform the customer that the problem is on our side.`,
        action: 'replay',
        customer: SETTING_UP_HAS_FAILED,
      },
      handler_retrying_later: {
        next: `The purchase is fine; setting it up has failed so far, and the app tries again by itself, but not soon: the failed entry shows when. ${LOOK_AT_THE_ENTRY} Inform the customer that the problem is on our side.`,
        action: 'replay',
        customer: SETTING_UP_HAS_FAILED,
      },
      handler_retrying: {
        next: 'The purchase is fine; setting it up has failed so far, and the app tries again by itself. Ask the customer to wait a few minutes. If it still fails then, send this to an operator, unless you are one. Inform the customer that the problem is on our side.',
        action: 'replay',
        customer: STILL_SET_UP,
      },
      handler_overdue: {
        next: 'The purchase is fine; setting it up has waited for more than ten minutes: perhaps no process of the app runs the handler. Send this to an operator, unless you are one: the health of the app shows more. Inform the customer that the problem is on our side.',
        action: 'health',
        customer:
          'Your purchase is active. Setting it up takes too long on our side, and we are working on it.',
      },
      handler_waiting: {
        next: 'The purchase is fine; the app is still setting it up. Ask the customer to wait a few minutes. If it still waits then, send this to an operator, unless you are one.',
        action: 'none',
        customer: STILL_SET_UP,
      },
    },
  },
  not_read_yet: {
    rank: 1,
    entitled: false,
    known: false,
    meaning: 'A subscription was announced or is searched for, and no read has shown it yet.',
    next: 'The app has no answer of the platform so far: perhaps it has not asked yet. Wait a few minutes, then read again. If the answer does not change, send this to an operator, unless you are one: perhaps no worker of the app runs, and its health shows more.',
    action: 'health',
    customer:
      'We ask the marketplace whether you have bought the app. Please try again in a few minutes. You need not do anything else.',
    nextIf: {
      ...IF_SEARCHES_FAIL,
      platform_record_missing: {
        next: 'The platform does not show the subscription yet. If the customer has paid, wait a few minutes: the app reads again by itself, or read again now. Else ask them to pay on the platform.',
        action: 'refresh',
        customer:
          'Your purchase does not show yet. If you have paid, please try again in a few minutes. Otherwise please complete the payment on the marketplace.',
      },
    },
  },
  stale: {
    rank: 2,
    entitled: false,
    known: false,
    meaning:
      'The subscription gave access when last read, but the platform has not confirmed it for too long.',
    next: 'Read again. If the answer does not change, the app cannot read the platform: send this to an operator, unless you are one. Inform the customer that the problem is on our side.',
    action: 'refresh',
    customer: ON_OUR_SIDE,
    nextIf: IF_READS_FAIL,
  },
  entitled_when_failed: {
    rank: 3,
    entitled: false,
    known: false,
    meaning: "The app's own rule entitledWhen fails, so whether the subscription gives access is not known.",
    next: 'Send the explanation to the developer of the app: the option entitledWhen must be corrected. Inform the customer that the problem is on our side.',
    action: 'none',
    customer: ON_OUR_SIDE,
  },
  denied_by_rule: {
    rank: 4,
    entitled: false,
    known: true,
    meaning: "The subscription is purchased, and the app's own rule entitledWhen denies it.",
    next: 'Ask the developer of the app which records the option entitledWhen admits, and compare them with the record of the subscription.',
    action: 'none',
    customer:
      'Your purchase does not include the use of this app as it is now. We look into it, and come back to you.',
  },
  not_purchased: {
    rank: 5,
    entitled: false,
    known: true,
    meaning: 'The platform shows the subscription in another state than purchased.',
    next: `${TRACK_ANOTHER} Else ask them to check the subscription and its payment on the platform. After the payment, read again.`,
    action: 'refresh',
    customer: `Your subscription is not active at the moment. Please check it and its payment on the marketplace. After the payment you have access within a few minutes. ${SEND_US_ANOTHER}`,
    // A state that cannot be read again may have been paid for since.
    nextIf: {
      ...IF_READS_FAIL,
      change_announced: {
        next: 'The platform has just announced a change, and may still show the state before it. If the customer has paid, wait a few minutes: the app reads again by itself, or read again now. Else ask them to pay on the platform. After the payment, read again.',
        action: 'refresh',
        customer:
          'The marketplace has just announced a change of your subscription. If you have paid, please try again in a few minutes. Otherwise please complete the payment on the marketplace.',
      },
      suspended: {
        next: `The payment failed or has not arrived. ${TRACK_ANOTHER} Else ask them to pay on the platform. After the payment, read again.`,
        action: 'refresh',
        customer: `The last payment of your subscription has failed or has not arrived. Please pay on the marketplace. After the payment you have access within a few minutes. ${SEND_US_ANOTHER}`,
      },
      canceled: {
        next: `The subscription was canceled. ${TRACK_ANOTHER} Else ask them to buy the app again on the platform. Then read again.`,
        action: 'refresh',
        customer: `Your subscription was canceled. To use the app again, please buy it again on the marketplace. ${SEND_US_ANOTHER}`,
      },
    },
  },
  revoked: {
    rank: 6,
    entitled: false,
    known: true,
    meaning: 'The business uninstalled the app, and the platform no longer gives access to its subscription.',
    next: `Ask the customer to install the app again on the platform. Then read again. ${TRACK_ANOTHER}`,
    action: 'refresh',
    customer: `The app was uninstalled for your business. To use it again, please install it again on the marketplace. ${SEND_US_ANOTHER}`,
  },
  ended: {
    rank: 7,
    entitled: false,
    known: true,
    meaning: 'The platform refuses to show the subscription any more, and it has ended.',
    next: `${TRACK_ANOTHER} Else ask them to buy the app again on the platform. If they still pay for the one that has ended, read again. If the answer does not change, send this to an operator, unless you are one.`,
    action: 'refresh',
    customer: `Your subscription has ended. To use the app again, please buy it again on the marketplace. If you still pay for it, please tell us. ${SEND_US_ANOTHER}`,
  },
  missing: {
    rank: 8,
    entitled: false,
    known: true,
    meaning: 'The platform does not show the subscription.',
    next: 'Ask the customer for the identifier of the subscription on the platform, and for the name of the account that bought it. If the identifier is another one, track it.',
    action: 'track',
    customer:
      'The marketplace does not show us your subscription. Please send us its identifier, and the name of the account that bought the app.',
  },
  unreadable: {
    rank: 9,
    entitled: false,
    known: true,
    meaning: 'A subscription was announced, and the platform refuses to show it to this app.',
    next: 'Ask the customer whether the app is still installed for this business. If it is, read again. If the answer does not change, send this to an operator, unless you are one.',
    action: 'refresh',
    customer:
      'The marketplace does not show us your subscription. Please look there whether the app is still installed for your business, and tell us.',
    nextIf: {
      token_refused: IS_THE_APP_INSTALLED,
      platform_record_mismatch: {
        next: 'The subscription belongs to another business. Ask the customer which of their accounts bought the app, and look at that business.',
        action: 'none',
        customer:
          'The subscription belongs to another account. Please tell us which of your accounts bought the app.',
      },
    },
  },
  other_app: {
    rank: 10,
    entitled: false,
    known: true,
    meaning: 'All subscriptions of this business that the platform has shown are for other apps.',
    next: 'Show the customer which item they have, and which ones are yours. If theirs is one of yours too, an operator must add it to the items of the app. If they bought two items, ask for the identifier of the other subscription and track it.',
    action: 'track',
    customer:
      'Your purchase is for another product than this app. If you have bought this app too, please send us the identifier of that subscription.',
  },
  other_item: {
    rank: 11,
    entitled: false,
    known: true,
    meaning: 'All subscriptions of this business that the platform has shown are for other items.',
    next: 'Show the customer which item they have and which one this requires. If they bought both, ask for the identifier of the other subscription and track it.',
    action: 'track',
    customer:
      'Your purchase does not include this part of the app. If you have bought it too, please send us the identifier of that subscription.',
  },
  unknown_business: {
    rank: 12,
    entitled: false,
    known: true,
    meaning: 'No subscription of this business is stored.',
    next: 'Ask the customer for the identifier of the subscription, which the platform shows with the purchase, and track it.',
    action: 'track',
    customer:
      'We find no purchase for your business. If you have bought the app, please send us the identifier of the subscription, which the marketplace shows with the purchase.',
    nextIf: {
      ...IF_SEARCHES_FAIL,
      unsearched: {
        next: 'Read again: the app searches the platform for a purchase of this business.',
        action: 'refresh',
        customer: 'We look for your purchase on the marketplace, and come back to you.',
      },
      searched: {
        next: 'The app has searched the platform, which shows no purchase of this business. If the customer has bought just now, read again: the app searches again. Else ask which of their accounts bought the app, and look at that business.',
        action: 'refresh',
        customer:
          'The marketplace shows us no purchase for your business. If you have bought the app, please tell us with which of your accounts.',
      },
    },
  },
  invalid_business_uid: {
    rank: 13,
    entitled: false,
    known: true,
    meaning: 'The given value is not an identifier of a business.',
    next: 'Copy the identifier of the business or of the subscription from the platform, and paste it again.',
    action: 'none',
    customer:
      'Please send us the identifier of your business or of your subscription once more, as the marketplace shows it.',
  },
  item_unknown: {
    rank: 14,
    entitled: false,
    known: true,
    meaning: 'The requested item is not one of app.purchasableUid.',
    next: 'Correct the spelling of the item in the question. If it is right, an operator must add it to the items of the app.',
    action: 'none',
    customer: ON_OUR_SIDE,
  },
  store_unavailable: {
    rank: 15,
    entitled: false,
    known: false,
    meaning: 'The database cannot be read now.',
    next: 'The database cannot be read. Send this to an operator, unless you are one: the health of the app shows more.',
    action: 'health',
    customer: ON_OUR_SIDE,
  },
} as const satisfies Record<string, ReasonRow>

/** Why a business may use the app or may not: see `REASONS`. */
export type Reason = keyof typeof ROWS

/**
 * Why a business may or may not use the app. `rank`: of several subscriptions the lowest decides. `known`: false while
 * the answer is uncertain; then a page should ask the visitor to come back later, not to buy. `next`: what a support
 * person does now. `customer`: what to write to the customer.
 */
export const REASONS: Readonly<Record<Reason, Readonly<ReasonRow>>> = ROWS
