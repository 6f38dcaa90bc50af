/**
 * A receiver as a process of its own, to be killed or ended. It loads everything, says so, and waits for its settings,
 * so that the next one can be loaded while the one before is still alive. At SIGTERM it closes and then ends by itself.
 */
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createMarketplace, type Marketplace } from '../../lib/index.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from './settings.js'

export interface ChildSettings {
  store: string
  baseUrl: string
  authUrl: string
  /** False: it only receives. */
  works: boolean
  /** What its handler does with a change. */
  handler: 'returns' | 'never returns'
  closeGraceMs: number
}

process.once('message', (settings: ChildSettings) => begin(settings))
process.send?.({ is: 'loaded', pid: process.pid })

function begin({ store, baseUrl, authUrl, works, handler, closeGraceMs }: ChildSettings) {
  const marketplace = createMarketplace({
    app: { ...CLIENT, purchasableUid: OUR_ITEM },
    platform: { baseUrl, authUrl, timeoutMs: 5_000 },
    deliverySecrets: DELIVERY_SECRET,
    store,
    closeGraceMs,
    worker: works && { pollMs: 50 },
  })
  marketplace.onPurchaseChange(() => (handler === 'returns' ? undefined : new Promise(() => {})))

  const app = express()
    .use('/hooks', marketplace.router)
    .get('/journal', async (_req, res) => void res.json(await entriesOf(marketplace)))
    .get('/decisions', async (req, res) => {
      const businesses = String(req.query.of).split(',')
      res.json(await Promise.all(businesses.map((each) => marketplace.explain(each))))
    })
  const server = app.listen(0, '127.0.0.1', () => {
    process.send?.({ is: 'listening', port: (server.address() as AddressInfo).port })
  })

  process.once('SIGTERM', async () => {
    server.close()
    await marketplace.close()
    server.closeAllConnections()
    process.disconnect?.()
  })
}

/** Every entry of the journal, page by page. */
async function entriesOf({ journal }: Marketplace) {
  const entries = await journal.list({ limit: 1_000 })
  for (let last = entries.at(-1); last; ) {
    const page = await journal.list({ limit: 1_000, before: last.id })
    entries.push(...page)
    last = page.at(-1)
  }
  return entries.map(({ id, kind, status }) => ({ id, kind, status }))
}
