/**
 * Why a business may or may not use the app. `rank`: of several subscriptions the lowest decides. `known`: false when
 * the answer is not in yet, so that a person should be told to come back and not to buy.
 */
export const REASONS = {
  purchased: { rank: 0, entitled: true, known: true, words: 'The app is purchased.' },
  not_read_yet: {
    rank: 1,
    entitled: false,
    known: false,
    words: 'A subscription was announced, and the platform has not shown it yet.',
  },
  stale: {
    rank: 2,
    entitled: false,
    known: false,
    words:
      'The subscription was purchased when last read, but the platform has not confirmed it for too long.',
  },
  not_purchased: {
    rank: 3,
    entitled: false,
    known: true,
    words: 'The platform says that the subscription is not in the state purchased.',
  },
  revoked: {
    rank: 4,
    entitled: false,
    known: true,
    words: 'The business uninstalled the app, and the platform no longer gives access to its subscription.',
  },
  missing: {
    rank: 5,
    entitled: false,
    known: true,
    words: 'The platform does not show the subscription.',
  },
  unreadable: {
    rank: 6,
    entitled: false,
    known: true,
    words: 'A subscription was announced, and the platform refuses to show it to this app.',
  },
  other_app: {
    rank: 7,
    entitled: false,
    known: true,
    words: 'The only subscriptions known are for something else than this app.',
  },
  other_item: {
    rank: 8,
    entitled: false,
    known: true,
    words: 'The only subscriptions known are for other items than the one asked for.',
  },
  unknown_business: {
    rank: 9,
    entitled: false,
    known: true,
    words: 'No subscription of this business has been heard of.',
  },
  invalid_business_uid: {
    rank: 10,
    entitled: false,
    known: true,
    words: 'This is not an identifier of a business.',
  },
  item_unknown: {
    rank: 11,
    entitled: false,
    known: true,
    words: 'The item asked for is not one of app.purchasableUid.',
  },
  store_unavailable: {
    rank: 12,
    entitled: false,
    known: false,
    words: 'What is known of this business cannot be read from the database now.',
  },
  not_recorded: {
    rank: 13,
    entitled: false,
    known: false,
    words: 'What was known of this business at that time is not recorded.',
  },
} as const satisfies Record<string, { rank: number; entitled: boolean; known: boolean; words: string }>

/** Why a business may use the app or may not: see `REASONS`. */
export type Reason = keyof typeof REASONS
