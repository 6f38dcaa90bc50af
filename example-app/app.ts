import express, { type NextFunction, type Request, type Response } from 'express'
// An installed app writes: from 'marketplace-webhooks' and 'marketplace-webhooks/console'
import { type ConsoleOptions, consoleRouter } from '../lib/console/index.js'
import { createMarketplace, type MarketplaceOptions, type PurchaseChange } from '../lib/index.js'

/** An action of the app after a change or an event. A real app would open workspaces and send mail here. */
export type Activity =
  | { kind: 'change'; change: PurchaseChange }
  | { kind: 'installed'; business_uid: string }
  | { kind: 'dead'; name: string; error: string }

/**
 * "Reports", a small paid app: one page of numbers for businesses that have bought the app.
 *
 * | Route | What it does |
 * |---|---|
 * | `POST /webhooks/marketplace/<secret>` | receives the deliveries of the platform |
 * | `GET /reports` | returns the report: 200 if the business may use the app, 402 if not, 503 if the answer is not known yet |
 * | `GET /access` | returns the decision with its reason, for the app's own pages and for support |
 * | `POST /access/refresh` | reads the platform now, and answers like `GET /access` |
 * | `GET /health` | answers the load balancer |
 * | `GET /ops` | the console for support and operators, whom `authorize` admits |
 */
export function createReportsApp(
  options: MarketplaceOptions,
  onActivity: (activity: Activity) => void,
  authorize: ConsoleOptions['authorize'],
) {
  const marketplace = createMarketplace(options)

  // Called at least once for every change, in order for each business. So a real handler must be idempotent.
  marketplace.onPurchaseChange((change) => onActivity({ kind: 'change', change }))
  marketplace.on('application/installed', ({ data }) =>
    onActivity({ kind: 'installed', business_uid: data.business_id }),
  )
  marketplace.onHealthChange(({ status, problems }) => console.warn(`Health is ${status}`, problems))
  marketplace.onHandlerError(({ name, error, retryInMs }) => {
    if (retryInMs === null) onActivity({ kind: 'dead', name, error: String(error) })
  })

  const app = express()
  app.disable('x-powered-by')
  app.use('/webhooks/marketplace', marketplace.router)
  app.get('/health', async (_req, res) => {
    const { status } = await marketplace.health()
    res.status(status === 'failing' ? 503 : 200).json({ status })
  })

  app.use('/ops', consoleRouter(marketplace, { authorize }))

  app.use(signIn)
  app.get('/access', async (_req, res) => {
    res.json(await marketplace.explain(res.locals.businessUid))
  })
  app.post('/access/refresh', async (_req, res) => {
    res.json(await marketplace.businesses.refresh(res.locals.businessUid))
  })
  const paid = marketplace.requireEntitlement({
    businessUid: (req) => req.res.locals.businessUid,
  })
  app.get('/reports', paid, (_req, res) => {
    res.json(reportFor(res.locals.businessUid))
  })

  return { app, marketplace }
}

/**
 * Finds the business of a request. The demo uses a header, so that it can play several businesses. A real app takes the
 * business from its session or a token, never from a value that the client may choose.
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

/** Invented visitors of the last seven days, always the same for the same business. */
function reportFor(businessUid: string) {
  const sum = [...businessUid].reduce((total, letter) => total * 31 + letter.charCodeAt(0), 7)
  const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].map((day, i) => ({
    day,
    visitors: 40 + Math.round(35 * Math.sin(i * 0.9 + (sum % 7))) + ((sum >> i) % 20),
  }))
  return { title: 'Visitors this week', days }
}
