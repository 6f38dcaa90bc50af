import type { NewEvent } from '../../lib/store/port/store.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { eventOf as eventOfStore } from './conformance/lab.js'
import { OUR_ITEM } from './settings.js'

/** A delivery that announces a change of one of the app's subscriptions. */
export function notice(business_id: string, subscription_uid: string) {
  return sampleDelivery('purchasable_subscription/update', {
    business_id,
    subscription_uid,
    purchasable_uid: OUR_ITEM,
  })
}

/** A notice of the business that most tests use, unless another one is named. */
export function noticeOf(subscription_uid: string, business_id = 'business-one') {
  return notice(business_id, subscription_uid)
}

/** An event about a subscription, as the store gets it. */
export function eventOf(subscriptionUid: string, businessUid = 'b1'): NewEvent {
  return eventOfStore(subscriptionUid, { businessUid })
}
