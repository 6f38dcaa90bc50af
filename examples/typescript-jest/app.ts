import express, { type Express, type Request } from 'express'
import type { Marketplace } from 'marketplace-webhooks'

/**
 * The app over a marketplace: the real one in production, one over the simulator in tests. `businessOf` finds the business
 * of a request: in production from your session, never from a header, a query or a body.
 */
export function createApp(
  marketplace: Marketplace,
  businessOf: (req: Request) => string | undefined,
): Express {
  const app = express()
  app.use('/webhooks/marketplace', marketplace.router)
  app.get('/reports', marketplace.requireEntitlement({ businessUid: businessOf }), (_req, res) => {
    res.set('Cache-Control', 'private, no-store').json({ visitors: 42 })
  })
  return app
}
