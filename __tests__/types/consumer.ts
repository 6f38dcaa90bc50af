/**
 * An app that uses every public name, with types from the registry. Each TypeScript of the matrix compiles it; it never
 * runs.
 */
import express from 'express'
import {
  appToken,
  createMarketplace,
  ERROR_CODES,
  type ErrorCode,
  MarketplaceError,
  type PurchaseChange,
  postgresStore,
} from 'marketplace-webhooks'
import { consoleRouter, type Person } from 'marketplace-webhooks/console'
import { createSimulator, sampleDelivery } from 'marketplace-webhooks/testing'

export const marketplace = createMarketplace({
  app: { clientId: 'my-app', clientSecret: 'my-client-secret', purchasableUid: 'my-item' },
  platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:2' },
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store: 'sqlite::memory:',
})
marketplace.on('application/installed', ({ name, data }, { attempt }) => {
  const typed: ['application/installed', string, string, number] = [
    name,
    data.business_id,
    data.app_code_name,
    attempt,
  ]
  return typed
})
marketplace.onPurchaseChange((change) => {
  const typed: PurchaseChange = change
  return typed
})
const app = express()
const ada: Person = { name: 'ada', role: 'operator' }
app.use('/ops', consoleRouter(marketplace, { authorize: (req) => (req.session?.user ? ada : null) }))
app.use('/webhooks/marketplace', marketplace.router)
const paid = marketplace.requireEntitlement({ businessUid: (req) => req.session?.business_uid })
app.get('/reports', paid, (_req, res) => void res.json({ visitors: 42 }))
app.use('/downloads', paid)
app.get('/items', paid, (_req, res) => {
  const items: string[] | undefined = res.locals.entitlement?.entitledItems
  const until: string | null | undefined = res.locals.entitlement?.accessUntil
  // @ts-expect-error: the decision has its own types
  const wrong: number = res.locals.entitlement?.entitledItems
  res.json([items, until, wrong])
})
app.use(marketplace.requireEntitlement({ businessUid: () => 1, purchaseUrl: 'https://shop.example/' }))
app.use(marketplace.requireEntitlement({ businessUid: () => 1, purchaseUrl: async (req) => req.query.shop }))
// @ts-expect-error: an address is a text
marketplace.requireEntitlement({ businessUid: () => 1, purchaseUrl: 5 })
app.get('/api/entitlement', marketplace.entitlementRoute({ businessUid: (req) => req.user?.business_uid }))
// @ts-expect-error: a front end gets an answer, also when it is denied
marketplace.entitlementRoute({ businessUid: () => 1, onDenied() {} })
export const listener = marketplace.listener({ path: '/webhooks/marketplace', otherwise: app })
export const entitled: Promise<boolean> = marketplace.isEntitled('business-1')
export const codes = Object.keys(ERROR_CODES) as ErrorCode[]
export const helpOf = (error: unknown): string => (error instanceof MarketplaceError ? error.help : '')
export const platform = createSimulator({ clientId: 'my-app', clientSecret: 'my-client-secret' })
export const state: string = sampleDelivery('purchasable_subscription/updated').data.purchase_state
export const retried = marketplace.subscriptions
  .import([{ subscriptionUid: 1, businessUid: 'business-1' }])
  .then(({ notRead }) => marketplace.subscriptions.import(notRead))
// @ts-expect-error: a line of the app's own needs both identifiers
marketplace.subscriptions.import([{ businessUid: 'business-1' }])
export const replayed = marketplace.journal.replayAll({ status: 'dead', kind: 'change' }, { dryRun: true })
// @ts-expect-error: a replay needs a status
marketplace.journal.replayAll({ name: 'application/installed' })
// @ts-expect-error: an action has no handlers
marketplace.journal.replayAll({ status: 'done', kind: 'action' })
export const token: 'app' = appToken('t').kind
export const grants: string = postgresStore({ connectionString: 'postgres://db/app', schema: 'a' }).grants(
  'b',
)
// @ts-expect-error: a pool alone is no store
createMarketplace({ store: { connect() {}, on() {}, off() {} } })
// @ts-expect-error: an app's token cannot register this event
marketplace.webhooks.register({ event: 'app_subscription/installed', targetUrl: '', token: appToken('t') })
// @ts-expect-error: there is no such option
createMarketplace({ deliverySecret: '' })
