import express, { type NextFunction, type Request, type Response } from 'express'
// An installed app writes: from 'marketplace-webhooks'
import { createMarketplace, type MarketplaceOptions, type PurchaseChange } from '../lib/index.js'

/** What the app does about what it is told; a real one would open workspaces and send mail here. */
export type Activity =
  | { type: 'change'; change: PurchaseChange }
  | { type: 'installed'; business_uid: string }
  | { type: 'dead'; name: string; error: string }

/**
 * "Reports", a small paid app: one page of numbers, for businesses that have bought it.
 *
 * | route | what it is |
 * |---|---|
 * | `POST /webhooks/marketplace/<secret>` | where the platform delivers |
 * | `GET /reports` | what is sold: 200 when the business is let in, else 402, or 503 when that cannot be known yet |
 * | `GET /access` | the decision with its reason, for the app's own pages and for support |
 * | `POST /access/refresh` | "check again": reads the platform now, and answers as `GET /access` |
 * | `GET /health` | for the load balancer |
 */
export function createReportsApp(options: MarketplaceOptions, onActivity: (activity: Activity) => void) {
  const marketplace = createMarketplace(options)

  // At least once for every change, in order per subscription: whatever is done here must bear being done twice.
  marketplace.onPurchaseChange((change) => onActivity({ type: 'change', change }))
  marketplace.on('application/installed', ({ data }) =>
    onActivity({ type: 'installed', business_uid: data.business_id }),
  )
  marketplace.onDead(({ name, error }) => onActivity({ type: 'dead', name, error }))

  const app = express()
  app.disable('x-powered-by')
  app.use('/webhooks/marketplace', marketplace.router)
  app.get('/health', async (_req, res) => {
    const health = await marketplace.health()
    res.status(health.status === 'failing' ? 503 : 200).json(health)
  })

  app.use(signIn)
  app.get('/access', async (_req, res) => {
    res.json(await marketplace.explain(res.locals.businessUid))
  })
  app.post('/access/refresh', async (_req, res) => {
    res.json(await marketplace.refresh(res.locals.businessUid))
  })
  app.use('/reports', marketplace.requireEntitlement({ businessUid: (req) => req.res.locals.businessUid }))
  app.get('/reports', (_req, res) => {
    res.json(reportFor(res.locals.businessUid))
  })

  return { app, marketplace }
}

/**
 * Who is asking. Here simply a header, so that the demo can play several businesses; a real app takes the business
 * from its session or token, never from what the client may choose.
 */
function signIn(req: Request, res: Response, next: NextFunction): void {
  const businessUid = req.get('x-demo-business')
  if (!businessUid) {
    res.status(401).json({ title: 'sign in first', status: 401 })
    return
  }
  res.locals.businessUid = businessUid
  next()
}

/** Visitors of the last seven days, made up from the name: always the same for the same business. */
function reportFor(businessUid: string) {
  const sum = [...businessUid].reduce((total, letter) => total * 31 + letter.charCodeAt(0), 7)
  const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].map((day, i) => ({
    day,
    visitors: 40 + Math.round(35 * Math.sin(i * 0.9 + (sum % 7))) + ((sum >> i) % 20),
  }))
  return { title: 'Visitors this week', days }
}
