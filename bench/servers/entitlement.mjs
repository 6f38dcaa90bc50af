import { LRUCache } from 'lru-cache'
import { createMarketplace } from '../../dist/lib/index.js'
import { businessOf, PURCHASABLE_UID, SECRET, subscriptionOf } from './deliveries.mjs'
import { answer, settings } from './serve.mjs'

/**
 * Compares `isEntitled` with a plain `lru-cache` get, both awaited, over the same businesses, in turns in one process.
 */
const BUSINESSES = 1_000
const CALLS = 200_000

const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID },
  platform: { baseUrl: settings.platformUrl, authUrl: settings.platformUrl },
  reads: { concurrency: 16 },
  deliverySecrets: SECRET,
  store: settings.store,
})
marketplace.onPurchaseChange(() => {})
const cache = new LRUCache({ max: 10_000 })
const businesses = Array.from({ length: BUSINESSES }, (_, i) => businessOf(i))

/**
 * Nanoseconds per call, from CALLS calls. Each function has its own loop, so that V8 optimises each call site for one
 * function only.
 */
const LOOPS = {
  async 'bare-get'() {
    let yes = 0
    for (let i = 0; i < CALLS; i++) if (await cache.get(businesses[i % BUSINESSES])) yes++
    return yes
  },
  async 'is-entitled'() {
    let yes = 0
    for (let i = 0; i < CALLS; i++) if (await marketplace.isEntitled(businesses[i % BUSINESSES])) yes++
    return yes
  },
}

async function prepare() {
  await marketplace.start()
  await Promise.all(
    businesses.map((business_uid, i) => {
      cache.set(business_uid, true)
      return marketplace.subscriptions.track({
        subscriptionUid: subscriptionOf(i),
        businessUid: business_uid,
      })
    }),
  )
  await warm(30_000)
}

/** Cached answers are fresh for some seconds. */
async function warm(timeoutMs = 5_000) {
  const deadline = Date.now() + timeoutMs
  for (const business of businesses) {
    while (!(await marketplace.isEntitled(business))) {
      if (Date.now() > deadline) throw new Error('the businesses could not be read')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

await prepare()
answer(
  {
    async measure(name) {
      await warm()
      const start = process.hrtime.bigint()
      const yes = await LOOPS[name]()
      const ns = Number(process.hrtime.bigint() - start) / CALLS
      if (yes !== CALLS) throw new Error(`${CALLS - yes} answers were no`)
      return ns
    },
  },
  marketplace.close,
)
