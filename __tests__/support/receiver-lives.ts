import {
  createMarketplace,
  type Marketplace,
  type MarketplaceOptions,
  type PurchaseChange,
} from '../../lib/index.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import type { Store } from '../../lib/store/store.js'
import { createFailingPlatform } from './failing-platform.js'
import { storeOption } from './store-option.js'
import { createVirtualClock } from './virtual-clock.js'

// A killed life is never closed, so it never releases its hold on the process. Here that is the process of the tests.
const { setInterval } = globalThis
globalThis.setInterval = ((callback: () => void, delayMs: number) =>
  setInterval(callback, delayMs).unref()) as typeof setInterval

/**
 * One database, a platform, and the lives of a receiver between them, one after the other, in virtual time. A life ends by `close`, or by
 * `kill`: then none of its code runs any more.
 */
export async function createReceiverLives(options: {
  path: string
  onPurchaseChange(change: PurchaseChange): void
  /** See `createVirtualClock`. */
  dozeMs?: number
  marketplace: Omit<MarketplaceOptions, 'platform' | 'store' | 'clock'>
}) {
  const { path, onPurchaseChange, dozeMs } = options
  let busy = 0
  const clock = createVirtualClock({ isBusy: () => busy > 0, dozeMs })
  const platform = createFailingPlatform(clock)
  let database = await openDatabase()
  let life = begin()

  async function openDatabase(): Promise<Store> {
    const store = createSqlStore(createSqliteEngine({ path, clock: clock.forProcess() }))
    await store.open()
    return store
  }

  function begin(): { marketplace: Marketplace; kill(): void } {
    const own = clock.forProcess()
    let isKilled = false
    const unsubscribes: (() => void)[] = []

    /** Counts as busy until `work` has ended. A life that was killed before never gets the result. */
    async function follow<T>(work: Promise<T>): Promise<T> {
      busy++
      try {
        return await work
      } finally {
        busy--
        if (isKilled) await new Promise(() => {})
      }
    }

    const store = new Proxy(database, {
      get(target, name: keyof Store) {
        if (name === 'close') return async () => {}
        if (name === 'problem') return () => target.problem?.() ?? null
        if (name === 'subscribe') {
          return (listener: Parameters<Store['subscribe']>[0]) => {
            const unsubscribe = target.subscribe((hint) => void (isKilled || listener(hint)))
            unsubscribes.push(unsubscribe)
            return unsubscribe
          }
        }
        const method = target[name] as (...args: unknown[]) => Promise<unknown>
        return (...args: unknown[]) => (isKilled ? new Promise(() => {}) : follow(method(...args)))
      },
    })
    const marketplace = createMarketplace({
      ...options.marketplace,
      store: storeOption(store),
      clock: own,
      platform: { baseUrl: 'https://platform.test', authUrl: 'https://auth.test', fetch: platform.fetch },
    })
    marketplace.onPurchaseChange(onPurchaseChange)
    return {
      marketplace,
      kill() {
        isKilled = true
        own.kill()
        for (const unsubscribe of unsubscribes) unsubscribe()
      },
    }
  }

  return {
    clock,
    platform,
    marketplace: () => life.marketplace,
    /** Every row of a business in the store. */
    rows: (businessUid: string) => database.subscriptionsOf(businessUid),
    async restart(how: 'kill' | 'close') {
      if (how === 'kill') life.kill()
      else {
        const closed = life.marketplace.close()
        await clock.advance(2_000)
        await closed
      }
      if (path !== ':memory:') {
        await database.close()
        database = await openDatabase()
      }
      life = begin()
    },
    async end() {
      life.kill()
      await database.close()
    },
  }
}

export type ReceiverLives = Awaited<ReturnType<typeof createReceiverLives>>
