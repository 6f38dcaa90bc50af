import { systemClock } from '../../dist/esm/clock.js'
import { createMarketplace } from '../../dist/esm/index.js'
import { storeFor } from '../../dist/esm/store-option.js'
import { businessOf, PURCHASABLE_UID, SECRET } from './deliveries.mjs'
import { answer, settings } from './serve.mjs'

/**
 * Questions to a marketplace over a store of a certain size. Its store is also available, for the plain read of one
 * row.
 */
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
/** A prime: the businesses are far apart, and none comes twice. */
const STEP = 7_919
let asked = 0

function nextBusiness() {
  asked++
  if (asked >= settings.count)
    throw new Error('every business has been asked for, so none is left that is not in memory')
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
  /**
   * The milliseconds of an `isEntitled` that is not in memory, and of the store's own read of a row, in turns, each for
   * another business.
   */
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
