import { systemClock } from '../../dist/esm/clock.js'
import { createMarketplace } from '../../dist/esm/index.js'
import { storeFor } from '../../dist/esm/store-option.js'
import { businessOf, PURCHASABLE_UID, SECRET } from './deliveries.mjs'
import { answer, settings } from './serve.mjs'

/** Questions to a marketplace over a store of some size. Its store is at hand too, for the bare point read. */
const beganAt = performance.now()
const store = storeFor(settings.store, systemClock)
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: settings.platformUrl, authUrl: settings.platformUrl },
  deliverySecrets: SECRET,
  store,
})
marketplace.onPurchaseChange(() => {})
await marketplace.start()
const startMs = performance.now() - beganAt
/** A prime: businesses far apart, none twice. */
const STEP = 7_919
let asked = 0

function nextBusiness() {
  asked++
  if (asked >= settings.count) throw new Error('every business was asked for: none is cold any more')
  return businessOf(1 + ((asked * STEP) % (settings.count - 1)))
}

async function timed(work) {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
}

const answers = {
  /** ms of a cold `isEntitled` and of the store's own point read, in turns, each of another business. */
  async cold(count) {
    const cold = []
    const pointRead = []
    for (let i = 0; i < count; i++) {
      const [first, second] = [nextBusiness(), nextBusiness()]
      pointRead.push(await timed(() => store.subscriptionsOf(first)))
      cold.push(
        await timed(async () => {
          if (!(await marketplace.isEntitled(second))) throw new Error(`${second} is not entitled`)
        }),
      )
    }
    return { coldMs: median(cold), pointReadMs: median(pointRead) }
  },
  async list(count) {
    const times = []
    for (let i = 0; i < count; i++) times.push(await timed(() => marketplace.journal.list({ limit: 100 })))
    return median(times)
  },
  async health(count) {
    const times = []
    for (let i = 0; i < count; i++) times.push(await timed(() => marketplace.health()))
    return median(times)
  },
}

answer(answers, marketplace.close, { startMs })
