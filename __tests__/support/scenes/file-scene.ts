import { join } from 'node:path'
import { type Simulator, sampleDelivery } from '../../../lib/testing/index.js'
import { temporaryFolder } from '../clean-up.js'
import { openMarketplace, startPlatform } from '../scene.js'
import { OUR_ITEM } from '../settings.js'

const B1 = 'business-one'

/** A platform without deliveries, and a marketplace on its own file. */
export async function createFileScene(options: Parameters<typeof openMarketplace>[1] = {}) {
  const platform = await startPlatform()
  const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
  return { platform, store, marketplace: openMarketplace(platform, { ...options, store }) }
}

export function notice(subscription_uid: string, business_id = B1) {
  return sampleDelivery('purchasable_subscription/create', {
    business_id,
    subscription_uid,
    purchasable_uid: OUR_ITEM,
  })
}

export function tokensFor(platform: Simulator, business: string): number {
  return platform.requests.filter((each) => each.endpoint === 'token' && each.business_uid === business)
    .length
}
