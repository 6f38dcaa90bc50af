import type { Marketplace } from '../../../lib/index.js'
import { type Simulator, sampleDelivery } from '../../../lib/testing/index.js'
import { OUR_ITEM } from '../scene.js'
import { B1 } from '../settings.js'
import { until } from '../until.js'

export async function buy(platform: Simulator, marketplace: Marketplace, business_uid = B1) {
  const subscription = platform.purchase({ business_uid, payment: 'succeeded' })
  await platform.settled()
  await until('the purchase is seen', () => marketplace.isEntitled(business_uid))
  return subscription
}

/** Buys without a delivery, and lets the app track the purchase. Returns its uid. */
export async function track(
  platform: Pick<Simulator, 'purchase'>,
  { subscriptions }: Pick<Marketplace, 'subscriptions'>,
  business_uid = B1,
): Promise<string> {
  const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
  await subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
  return uid
}

export function notice(data: Record<string, unknown>) {
  return sampleDelivery('purchasable_subscription/update', {
    business_id: B1,
    purchasable_uid: OUR_ITEM,
    ...data,
  })
}

export function readsOf(platform: Simulator, uid: string): number {
  return platform.requests.filter((each) => each.endpoint === 'read' && each.subscription_uid === uid).length
}
