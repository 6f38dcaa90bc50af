import express from 'express'
import { createMarketplace } from 'marketplace-webhooks'
import { serve } from './serve.mjs'
import { sqliteInUse } from './sqlite-in-use.mjs'

/** This package as the README shows it: default options, worker on, durable SQLite. */
const [, , platformUrl, databasePath, deliverySecret] = process.argv
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: '7c9e6679-7425-40de-944b-e07fc1f90ae7' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: deliverySecret,
  store: `sqlite:${databasePath}`,
})
marketplace.onPurchaseChange(() => {})

const app = express()
app.use('/x', marketplace.router)

const answers = {
  sqlite: sqliteInUse,
  /** Journal entries that still wait for handlers. */
  backlog: async () => (await marketplace.health()).counts?.pending ?? 0,
}
marketplace.start().then(() => serve(app, answers, marketplace.close))
