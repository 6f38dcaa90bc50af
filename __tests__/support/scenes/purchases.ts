import type { Marketplace } from '../../../lib/index.js'
import { type Simulator, sampleDelivery } from '../../../lib/testing/index.js'
import { OUR_ITEM } from '../scene.js'
import { until } from '../until.js'

const B1 = 'business-one'

export async function buy(platform: Simulator, marketplace: Marketplace, business_uid = B1) {
  const subscription = platform.purchase({ business_uid, payment: 'succeeded' })
  await platform.settled()
  await until('the purchase is seen', () => marketplace.isEntitled(business_uid))
  return subscription
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

export function explode(): never {
  throw new Error('a hostile value')
}
