import { expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { Store, Subscription } from '../../../lib/store/port/store.js'
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
    const store = storeFor(await engines[name].freshAddress(), systemClock)
    let isDown = true
    const { fetch } = slowPlatform()
    const marketplace = openMarketplace(ADDRESSES, {
      store: storeOption(store),
      platform: {
        fetch: (...call) => (isDown ? Promise.resolve(new Response('', { status: 503 })) : fetch(...call)),
      },
      reads: { concurrency: 4 },
      freshness: { waitMs: 100 },
    })
    await marketplace.start()
    await store.accept([eventOf('real', 'b1')])
    await until('the first read has failed', async () => {
      await marketplace.isEntitled('b1')
      return (await store.subscriptionsOf('b1')).some(({ failure }) => failure !== null)
    })
    for (let i = 0; i < 3; i++)
      await store.accept(Array.from({ length: 1_000 }, (_, k) => eventOf(`${i} ${k}`, `${i} ${k}`)))
    await until('others wait before it', async () => (await store.subscriptionsOf('b1')).some(isDue))
    isDown = false
    const begun = performance.now()
    await until('the visitor is let in', () => marketplace.isEntitled('b1'))
    expect(performance.now() - begun).toBeLessThan(5_000)
  },
  60_000,
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

function isDue({ refreshAt }: Subscription): boolean {
  return refreshAt !== null && refreshAt + 2_000 < Date.now()
}

async function isSettled(store: Store): Promise<boolean> {
  return (await store.subscriptionsOf('b1')).some(
    ({ subscriptionUid, pending }) => subscriptionUid === 'real' && !pending,
  )
}
