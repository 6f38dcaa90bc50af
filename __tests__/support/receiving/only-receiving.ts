import express5 from 'express'
import type { MarketplaceOptions } from '../../../lib/index.js'
import { openMarketplace, serve, startPlatform } from '../scene.js'

/** A marketplace that only receives. */
export async function receiving(options: Pick<MarketplaceOptions, 'bodyLimitBytes'> = {}) {
  const platform = await startPlatform()
  const marketplace = openMarketplace(platform, { worker: false, freshness: { waitMs: 0 }, ...options })
  await marketplace.start()
  const url = await serve(express5().use(marketplace.router))
  return { marketplace, target: marketplace.webhooks.targetUrl(url) }
}
