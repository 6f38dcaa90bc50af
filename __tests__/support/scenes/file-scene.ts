import { join } from 'node:path'
import type { Simulator } from '../../../lib/testing/index.js'
import { temporaryFolder } from '../clean-up.js'
import { openMarketplace, startPlatform } from '../scene.js'

/** A platform without deliveries, and a marketplace on its own file. */
export async function createFileScene(options: Parameters<typeof openMarketplace>[1] = {}) {
  const platform = await startPlatform()
  const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
  return { platform, store, marketplace: openMarketplace(platform, { ...options, store }) }
}

export function tokensFor(platform: Simulator, business: string): number {
  return platform.requests.filter((each) => each.endpoint === 'token' && each.business_uid === business)
    .length
}
