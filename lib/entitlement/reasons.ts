/**
 * Why a business may or may not use the app. `rank`: of several subscriptions the lowest decides. `known`: false while
 * the answer is uncertain; then a page should ask the visitor to come back later, not to buy.
 */
export const REASONS = {
  purchased: { rank: 0, entitled: true, known: true, meaning: 'The app is purchased.' },
  not_read_yet: {
    rank: 1,
    entitled: false,
    known: false,
    meaning: 'A subscription was announced, and the platform has not shown it yet.',
  },
  stale: {
    rank: 2,
    entitled: false,
    known: false,
    meaning:
      'The subscription was purchased when last read, but the platform has not confirmed it for too long.',
  },
  entitled_when_failed: {
    rank: 3,
    entitled: false,
    known: false,
    meaning: "The app's own rule entitledWhen fails, so whether the subscription gives access is not known.",
  },
  denied_by_rule: {
    rank: 4,
    entitled: false,
    known: true,
    meaning: "The subscription is purchased, and the app's own rule entitledWhen denies it.",
  },
  not_purchased: {
    rank: 5,
    entitled: false,
    known: true,
    meaning: 'The platform shows the subscription in another state than purchased.',
  },
  revoked: {
    rank: 6,
    entitled: false,
    known: true,
    meaning: 'The business uninstalled the app, and the platform no longer gives access to its subscription.',
  },
  ended: {
    rank: 7,
    entitled: false,
    known: true,
    meaning: 'The platform refuses to show the subscription any more, and it has ended.',
  },
  missing: {
    rank: 8,
    entitled: false,
    known: true,
    meaning: 'The platform does not show the subscription.',
  },
  unreadable: {
    rank: 9,
    entitled: false,
    known: true,
    meaning: 'A subscription was announced, and the platform refuses to show it to this app.',
  },
  other_app: {
    rank: 10,
    entitled: false,
    known: true,
    meaning: 'All known subscriptions of this business are for other apps.',
  },
  other_item: {
    rank: 11,
    entitled: false,
    known: true,
    meaning: 'All known subscriptions of this business are for other items.',
  },
  unknown_business: {
    rank: 12,
    entitled: false,
    known: true,
    meaning: 'No event and no call has named a subscription of this business.',
  },
  invalid_business_uid: {
    rank: 13,
    entitled: false,
    known: true,
    meaning: 'The given value is not an identifier of a business.',
  },
  item_unknown: {
    rank: 14,
    entitled: false,
    known: true,
    meaning: 'The requested item is not one of app.purchasableUid.',
  },
  store_unavailable: {
    rank: 15,
    entitled: false,
    known: false,
    meaning: 'The database cannot be read now.',
  },
} as const satisfies Record<string, { rank: number; entitled: boolean; known: boolean; meaning: string }>

/** Why a business may use the app or may not: see `REASONS`. */
export type Reason = keyof typeof REASONS
