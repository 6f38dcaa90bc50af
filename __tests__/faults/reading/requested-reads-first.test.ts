import { expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { Store } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { ENGINE_NAMES, ENGINES } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { ADDRESSES, answering, purchaseOf } from '../../support/platform/answering.js'
import { openMarketplace } from '../../support/scene.js'
import { until } from '../../support/until.js'

const engines = { SQLite: ENGINES.SQLite(), PostgreSQL: ENGINES.PostgreSQL() }

it('E22 a requested read begins within a second while very many forged rows name its business', async () => {
  const { store } = await openStoreWithSql('sqlite::memory:')
  let madeUp = 0
  const marketplace = openMarketplace(ADDRESSES, {
    store: storeOption(store),
    platform: slowPlatform(() => void madeUp++),
    reads: { concurrency: 4 },
  })
  await store.accept([eventOf('real', 'b1')])
  await until('the subscription is read', () => marketplace.isEntitled('b1'))
  await store.accept(Array.from({ length: 2_000 }, (_, i) => eventOf(`made up ${i}`, 'b1')))
  await until('the forged rows are read', () => madeUp > 3)
  const waits: number[] = []
  for (let round = 0; round < 6; round++) {
    const begun = performance.now()
    await store.accept([eventOf('real', 'b1')])
    await until('the subscription is read again', () => isSettled(store))
    waits.push(performance.now() - begun)
  }
  expect(Math.max(...waits)).toBeLessThan(1_000)
  const before = madeUp
  await until('reads of the forged rows continue', () => madeUp > before + 3)
}, 60_000)

it.each(ENGINE_NAMES)(
  'E26 a visitor waits a second at most for the first read, and `refresh` for its read, in the middle of thousands (%s)',
  async (name) => {
    const store = storeFor(await engines[name].freshAddress(), systemClock)
    const marketplace = openMarketplace(ADDRESSES, {
      store: storeOption(store),
      platform: slowPlatform(),
      reads: { concurrency: 4 },
    })
    await marketplace.start()
    const made = (what: string) =>
      store.accept(Array.from({ length: 1_500 }, (_, i) => eventOf(`${what} ${i}`, `${what} ${i}`)))
    await made('forged before')
    await store.accept([eventOf('real', 'b1')])
    await made('forged after')
    const begun = performance.now()
    await until('the visitor is let in', () => marketplace.isEntitled('b1'))
    expect(performance.now() - begun).toBeLessThan(1_000)
    for (let i = 0; i < 600; i++)
      await marketplace.subscriptions.track({ subscriptionUid: `imported ${i}`, businessUid: `i${i}` })
    const asked = performance.now()
    expect(await marketplace.businesses.refresh('b1')).toMatchObject({ entitled: true })
    expect(performance.now() - asked).toBeLessThan(1_500)
  },
  60_000,
)

it.each(ENGINE_NAMES)(
  'E26 so does a visitor who looked during an outage, in which the first read failed (%s)',
  async (name) => {
    const address = await engines[name].freshAddress()
    const begin = async (options: Parameters<typeof openMarketplace>[1]) => {
      const store = storeFor(address, systemClock)
      const marketplace = openMarketplace(ADDRESSES, { ...options, store: storeOption(store) })
      await marketplace.start()
      return { store, marketplace }
    }
    const failing = { fetch: async () => new Response('', { status: 503 }) }
    const during = await begin({ platform: failing, freshness: { waitMs: 100 } })
    await during.store.accept([eventOf('real', 'b1')])
    const retryAt = await until('the first read has failed', async () => {
      await during.marketplace.isEntitled('b1')
      const [real] = await during.store.subscriptionsOf('b1')
      return real?.failure ? real.refreshAt : undefined
    })
    await during.marketplace.close()
    const { store, marketplace: receiver } = await begin({ worker: false })
    const made = (what: string) =>
      store.accept(Array.from({ length: 1_500 }, (_, i) => eventOf(`${what} ${i}`, `${what} ${i}`)))
    await made('before')
    await until('the read is due', () => Date.now() > retryAt + 300)
    await made('after')
    await receiver.close()
    const { marketplace } = await begin({ platform: slowPlatform(), reads: { concurrency: 4 } })
    const begun = performance.now()
    await until('the visitor is let in', () => marketplace.isEntitled('b1'))
    expect(performance.now() - begun).toBeLessThan(5_000)
  },
  60_000,
)

it.each([
  [1, 'waits for its read', 1_500],
  [4, 'does not wait', 0],
])(
  'E27 a page of a no with %i new subscriptions that were never read %s',
  async (count, _what, leastMs) => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    const marketplace = openMarketplace(ADDRESSES, {
      store: storeOption(store),
      platform: answering((uid) =>
        uid === 'real'
          ? [{ ...purchaseOf(uid, 'b1'), purchase_state: 'suspended' }]
          : new Promise<never>(() => {}),
      ),
    })
    await store.accept([eventOf('real', 'b1')])
    await until('the subscription is read', () => isSettled(store))
    await store.accept(Array.from({ length: count }, (_, i) => eventOf(`made up ${i}`, 'b1')))
    const begun = performance.now()
    expect(await marketplace.isEntitled('b1')).toBe(false)
    const tookMs = performance.now() - begun
    expect([tookMs >= leastMs, tookMs < leastMs + 1_000]).toEqual([true, true])
  },
  30_000,
)

/** A platform that takes 60 ms, and shows one subscription only. */
function slowPlatform(onMadeUp = () => {}) {
  return answering(async (uid) => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    if (uid === 'real') return [purchaseOf(uid, 'b1')]
    onMadeUp()
    return []
  })
}

async function isSettled(store: Store): Promise<boolean> {
  return (await store.subscriptionsOf('b1')).some(
    ({ subscriptionUid, pending }) => subscriptionUid === 'real' && !pending,
  )
}
