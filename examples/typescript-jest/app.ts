import express, { type Express, type Request } from 'express'
import type { Marketplace } from 'marketplace-webhooks'

/** The app over a marketplace: the real one in production, one over the simulator in tests. */
export function createApp(marketplace: Marketplace): Express {
  const app = express()
  app.use('/webhooks/marketplace', marketplace.router)
  app.use(
    '/reports',
    marketplace.requireEntitlement({ businessUid: (req: Request) => req.get('x-business') }),
  )
  app.get('/reports', (_req, res) => {
    res.json({ visitors: 42 })
  })
  return app
}
