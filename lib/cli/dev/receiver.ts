import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMarketplace, type MarketplaceOptions } from '../../index.js'
import type { DevLog } from './log.js'

/**
 * A small app for `dev`. It receives deliveries, reads, and shows every change, and the answer for a business. Its
 * database is in memory.
 */
export async function startDevReceiver(options: {
  app: MarketplaceOptions['app']
  platform: MarketplaceOptions['platform']
  log: Pick<DevLog, 'answer' | 'change'>
}): Promise<{ target: string; answer(business: string): Promise<void>; close(): Promise<void> }> {
  const { app, platform, log } = options
  const marketplace = createMarketplace({
    app,
    platform,
    deliverySecrets: randomBytes(24).toString('base64url'),
    store: 'sqlite::memory:',
    closeTimeoutMs: 500,
  })
  marketplace.onPurchaseChange(log.change)
  try {
    await marketplace.start()
    const server = createServer(marketplace.listener({ path: '/' }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return {
      target: marketplace.webhooks.targetUrl(`http://127.0.0.1:${port}/`),
      async answer(business) {
        // While the platform is down, the reads are tried again later.
        await marketplace.settled({ timeoutMs: SETTLE_MS }).catch(() => {})
        log.answer(await marketplace.explain(business))
      },
      async close() {
        server.close()
        server.closeAllConnections()
        await marketplace.close()
      },
    }
  } catch (error) {
    await marketplace.close()
    throw error
  }
}

const SETTLE_MS = 3_000
