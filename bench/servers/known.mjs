import express from 'express'
import pg from 'pg'
import { systemClock } from '../../dist/lib/base/clock.js'
import { createMarketplace } from '../../dist/lib/index.js'
import { createPostgresEngine } from '../../dist/lib/postgres/engine.js'
import { createSqliteEngine } from '../../dist/lib/sqlite/engine.js'
import { createSqlStore } from '../../dist/lib/store/sql-store.js'
import { CREATE_STORE } from '../../dist/lib/store-option.js'
import { businessOf, PURCHASABLE_UID, SECRET, subscriptionOf } from './deliveries.mjs'
import { serve, settings } from './serve.mjs'
import { openSqlite } from './sqlite.mjs'

/**
 * An app with a page and handlers for everything, each of which takes `settings.handlerMs`. `GET /page?business_uid=…` replies with
 * `{ entitled, changedAt, handledAt }`: the answer, and when the last handlers of a change and of an event of the business were called,
 * in ms of the clock that all processes of a machine share. With `settings.most` the store keeps less of what may be made up.
 */
const { platformUrl, store, handlerMs, most } = settings
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: SECRET,
  store: most ? { [CREATE_STORE]: () => createSqlStore(engine(), systemClock, { most }) } : store,
  closeTimeoutMs: 500,
})
const changed = new Map()
const handled = new Map()
const known = new Set()
const now = () => Number(process.hrtime.bigint()) / 1e6

function engine() {
  if (!store.startsWith('postgres'))
    return createSqliteEngine({ path: store.slice('sqlite:'.length), clock: systemClock })
  return createPostgresEngine({
    ...{ connection: store, schema: 'marketplace_webhooks', maxConnections: 10, preparedStatements: true },
    clock: systemClock,
  })
}

function note(calls, business) {
  if (known.has(business)) calls.set(business, now())
  return handlerMs > 0 ? new Promise((resolve) => setTimeout(resolve, handlerMs)) : undefined
}
marketplace.onPurchaseChange(({ business_uid }) => note(changed, business_uid))
marketplace.onAny(({ data }) => note(handled, data.business_id))
marketplace.onUnrecognised(() => note(handled, undefined))
await marketplace.start()

const app = express()
app.use('/x', marketplace.router)
app.get('/page', async (req, res) => {
  const { business_uid: business } = req.query
  const { entitled } = await marketplace.explain(business)
  res.json({ entitled, changedAt: changed.get(business), handledAt: handled.get(business) })
})

async function rows() {
  const count = (table) => `select count(*) as count from ${table}`
  if (!store.startsWith('postgres')) {
    const database = await openSqlite(store.slice('sqlite:'.length))
    const rowsOf = (table) => Number(database.all(count(table))[0].count)
    const found = { entries: rowsOf('journal'), subscriptions: rowsOf('subscriptions') }
    database.close()
    return found
  }
  const client = new pg.Client({ connectionString: store })
  await client.connect()
  const rowsOf = async (table) =>
    Number((await client.query(count(`marketplace_webhooks.${table}`))).rows[0].count)
  const found = { entries: await rowsOf('journal'), subscriptions: await rowsOf('subscriptions') }
  await client.end()
  return found
}

serve(
  app,
  {
    rows,
    /** Reads subscriptions 1 to `count`. Resolves when the answer for each is known. */
    async know(count) {
      for (let number = 1; number <= count; number++) {
        known.add(businessOf(number))
        const [subscriptionUid, businessUid] = [subscriptionOf(number), businessOf(number)]
        await marketplace.subscriptions.track({ subscriptionUid, businessUid })
      }
      await marketplace.settled()
      for (const business of known)
        if (!(await marketplace.explain(business)).known) throw new Error(`${business} was not read`)
    },
    health: () => marketplace.health(),
  },
  () => marketplace.close(),
)
