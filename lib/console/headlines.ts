import type { Reason } from '../index.js'

/** The answer as a headline, for each reason of a decision. A reason without one is a type error. */
export const HEADLINES: Readonly<Record<Reason, string>> = {
  purchased: 'May use the app',
  not_read_yet: 'Not yet: the purchase is being checked',
  stale: 'Not now: not confirmed for too long',
  entitled_when_failed: 'Not known: the rule of the app fails',
  denied_by_rule: 'May not use the app: the rule of the app denies it',
  not_purchased: 'May not use the app',
  revoked: 'May not use the app: uninstalled',
  ended: 'May not use the app: the subscription has ended',
  missing: 'May not use the app: the platform does not show the subscription',
  unreadable: 'May not use the app: the platform refuses to show the subscription',
  other_app: 'May not use the app: bought another item',
  other_item: 'May not use this: bought another item of yours',
  unknown_business: 'Not known here',
  invalid_business_uid: 'This is not an identifier',
  item_unknown: 'The item does not exist',
  store_unavailable: 'There is no answer at the moment',
}
