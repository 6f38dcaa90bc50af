import { LRUCache } from 'lru-cache'
import { createMarketplace } from 'marketplace-webhooks'
import { serve } from './serve.mjs'

/** `isEntitled` beside a bare `lru-cache` get, both awaited, over the same businesses, in turns in one process. */
const BUSINESSES = 1_000
const CALLS = 200_000
const ROUNDS = 15
const WARM_UP_ROUNDS = 3

const [, , platformUrl, databasePath, deliverySecret] = process.argv
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: '7c9e6679-7425-40de-944b-e07fc1f90ae7' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: deliverySecret,
  store: `sqlite:${databasePath}`,
})
const cache = new LRUCache({ max: 10_000 })
const businesses = Array.from({ length: BUSINESSES }, (_, i) => `business-${i}`)

/** Nanoseconds for each of CALLS calls. Two functions, so that neither call site ever sees the other's callee. */
async function bareGet() {
  let yes = 0
  const start = process.hrtime.bigint()
  for (let i = 0; i < CALLS; i++) if (await cache.get(businesses[i % BUSINESSES])) yes++
  return perCall(start, yes)
}

async function isEntitled() {
  let yes = 0
  const start = process.hrtime.bigint()
  for (let i = 0; i < CALLS; i++) if (await marketplace.isEntitled(businesses[i % BUSINESSES])) yes++
  return perCall(start, yes)
}

function perCall(start, yes) {
  const ns = Number(process.hrtime.bigint() - start) / CALLS
  if (yes !== CALLS) throw new Error(`${CALLS - yes} answers were no`)
  return ns
}

async function prepare() {
  await marketplace.start()
  await Promise.all(
    businesses.map((business_uid) => {
      cache.set(business_uid, true)
      return marketplace.track({ subscription_uid: `subscription-of-${business_uid}`, business_uid })
    }),
  )
  const deadline = Date.now() + 30_000
  for (const business of businesses) {
    while (!(await marketplace.isEntitled(business))) {
      if (Date.now() > deadline) throw new Error('the businesses could not be read')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function rounds() {
  const measured = []
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const result = {}
    for (const call of round % 2 ? [bareGet, isEntitled] : [isEntitled, bareGet])
      result[call.name] = await call()
    if (round >= WARM_UP_ROUNDS) measured.push(result)
  }
  return measured
}

prepare().then(() => serve(() => {}, { rounds }, marketplace.close))
