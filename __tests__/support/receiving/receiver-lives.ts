import { SECOND } from '../../../lib/base/clock.js'
import type { MarketplaceOptions, PurchaseChange } from '../../../lib/index.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Store } from '../../../lib/store/port/store.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { createFailingPlatform } from '../platform/failing-platform.js'
import { createProcess, lent } from '../world/process.js'

/**
 * One database, a platform, and the lives of a receiver between them, one after the other, in virtual time. A life ends
 * by `close`, or by `kill`.
 */
export async function createReceiverLives(options: {
  path: string
  onPurchaseChange(change: PurchaseChange): void
  /** See `createVirtualClock`. */
  dozeMs?: number
  marketplace: Omit<MarketplaceOptions, 'platform' | 'store' | 'clock'>
}) {
  const { path, onPurchaseChange, dozeMs } = options
  const clock = createVirtualClock({ dozeMs })
  const platform = createFailingPlatform(clock)
  let database = await openDatabase()
  let life = begin()

  async function openDatabase(): Promise<Store> {
    const store = createSqlStore(createSqliteEngine({ path, clock: clock.forProcess() }))
    await store.open()
    return store
  }

  function begin() {
    const { fetch } = platform
    const settings = { closeTimeoutMs: SECOND, ...options.marketplace }
    const store = lent(database)
    const life = createProcess({ time: clock, store, fetch, settings })
    life.marketplace.onPurchaseChange(onPurchaseChange)
    return life
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
