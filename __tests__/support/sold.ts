import type { Marketplace, PurchaseChange } from '../../lib/index.js'
import type { Simulator } from '../../lib/testing/index.js'

export interface Line {
  subscription_uid: string
  business_uid: string
}

/** Makes purchases without a delivery to the app. */
export function sell(platform: Simulator, count: number): Line[] {
  return Array.from({ length: count }, (_, i) => {
    const named = { subscription_uid: `subscription-${i}`, business_uid: `business-${i}` }
    platform.purchase({ ...named, payment: 'succeeded' })
    return named
  })
}

export function changesOf(marketplace: Marketplace): PurchaseChange[] {
  const changes: PurchaseChange[] = []
  marketplace.onPurchaseChange((change) => void changes.push(change))
  return changes
}
