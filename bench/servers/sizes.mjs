import { systemClock } from '../../dist/lib/base/clock.js'
import { createMarketplace } from '../../dist/lib/index.js'
import { CREATE_STORE, storeFor } from '../../dist/lib/store-option.js'
import { medianOf } from '../harness/statistics.mjs'
import { businessOf, PURCHASABLE_UID, SECRET } from './deliveries.mjs'
import { lookMs, medianMs, timed } from './look.mjs'
import { answer, settings } from './serve.mjs'

/**
 * Questions to a marketplace over a store of a certain size. Its store is also available, for single calls.
 */
const beganAt = performance.now()
const store = storeFor(settings.store, systemClock)
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: settings.platformUrl, authUrl: settings.platformUrl },
  deliverySecrets: SECRET,
  // The store that is also called directly.
  store: { [CREATE_STORE]: () => store },
})
marketplace.onPurchaseChange(() => {})
await marketplace.start()
const startMs = performance.now() - beganAt
/** A prime: the businesses are far apart, and none comes twice. */
const STEP = 7_919
let asked = 0
const YEAR_MS = 365 * 24 * 3_600_000
const KEEP_ALL = { eventsMs: YEAR_MS, changesMs: YEAR_MS, actionsMs: YEAR_MS, deadMs: YEAR_MS }

function nextBusiness() {
  asked++
  if (asked >= settings.count)
    throw new Error('every business has been asked for, so none is left that is not in memory')
  return businessOf(1 + ((asked * STEP) % (settings.count - 1)))
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
    return { coldMs: medianOf(cold), pointReadMs: medianOf(pointRead) }
  },
  list: (count) => medianMs(count, () => marketplace.journal.list({ limit: 100 })),
  health: (count) => medianMs(count, () => marketplace.health()),
  look: (count) => lookMs(store, [], count),
  /** The milliseconds of a step of the sweep that finds nothing to delete, and of one that deletes 100 entries. */
  async sweep(count) {
    return {
      sweepMs: await medianMs(count, () => store.prune(KEEP_ALL)),
      deleteMs: await medianMs(count, async () => {
        const { rows } = await store.prune({ ...KEEP_ALL, eventsMs: 0 })
        if (rows !== 100) throw new Error(`a step of the sweep deleted ${rows} entries instead of 100`)
      }),
    }
  },
}

answer(answers, marketplace.close, { startMs })
