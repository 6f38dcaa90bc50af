import type { Marketplace, PurchaseChange } from '../../../lib/index.js'
import type { Simulator } from '../../../lib/testing/index.js'

export interface Line {
  subscriptionUid: string
  businessUid: string
}

/** Makes purchases without a delivery to the app. */
export function sell(platform: Simulator, count: number): Line[] {
  return Array.from({ length: count }, (_, i) => {
    const line = { subscriptionUid: `subscription-${i}`, businessUid: `business-${i}` }
    platform.purchase({
      subscription_uid: line.subscriptionUid,
      business_uid: line.businessUid,
      payment: 'succeeded',
    })
    return line
  })
}

export function changesOf(marketplace: Marketplace): PurchaseChange[] {
  const changes: PurchaseChange[] = []
  marketplace.onPurchaseChange((change) => void changes.push(change))
  return changes
}
