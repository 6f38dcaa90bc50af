import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { startScraping } from '../../support/processes/exposition.js'
import { createScene, OUR_ITEM } from '../../support/scene.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('somebody who has the delivery secret, on %s', (name) => {
  const engine = useEngine(name)

  it('A64 cannot delay the change of a customer by made-up installs with a slow handler', async () => {
    const { marketplace, platform, deliver } = await createScene({ store: await engine.freshAddress() })
    let installs = 0
    let known = 0
    const before: number[] = []
    marketplace.on('application/installed', async () => {
      installs++
      await new Promise((resolve) => setTimeout(resolve, 50))
    })
    marketplace.on('purchasable_subscription/update', () => {
      known = installs
    })
    marketplace.onPurchaseChange(({ to }) => {
      if (to === 'canceled') before.push(installs)
    })
    await marketplace.start()
    const { uid } = await platform.purchase({
      business_uid: B1,
      purchasable_uid: OUR_ITEM,
      payment: 'succeeded',
    })
    await until('the purchase was read', async () => (await marketplace.isEntitled(B1)) || undefined)
    await marketplace.settled()
    for (let page = 0; page < 6; page++)
      await deliver(
        Array.from({ length: 100 }, (_, i) =>
          sampleDelivery('application/installed', { business_id: `made up ${page * 100 + i}` }),
        ),
      )
    await until('handlers of made-up installs run', async () => installs > 20 || undefined)
    const begun = installs
    await platform.cancel(uid)
    await until('the change was handled', async () => before[0])
    // Without precedence all 600 begin before it.
    expect((before[0] as number) - begun).toBeLessThan(150)
    expect(known - begun).toBeLessThan(150)
  })

  it('A237 cannot keep a change of a customer from its handler by installs of others whose handler takes long', async () => {
    const { marketplace, platform, deliver } = await createScene({ store: await engine.freshAddress() })
    const held = gate()
    let installs = 0
    const states: (string | null)[] = []
    marketplace.on('application/installed', async () => {
      installs++
      await held.opened
    })
    marketplace.onPurchaseChange(({ business_uid, to }) => {
      if (business_uid === B1) states.push(to)
    })
    await marketplace.start()
    const others = Array.from({ length: 9 }, (_, i) => `other ${i}`)
    const [uid = ''] = [B1, ...others].map(
      (business_uid) =>
        platform.purchase({ business_uid, purchasable_uid: OUR_ITEM, payment: 'succeeded' }).uid,
    )
    for (const each of [B1, ...others])
      await until('the purchase was read', async () => (await marketplace.isEntitled(each)) || undefined)
    await marketplace.settled()
    for (const business_id of others) await deliver(sampleDelivery('application/installed', { business_id }))
    await until('seven of the eight handlers run', () => installs === 7)
    platform.cancel(uid)
    await until('the change is handled', () => states.at(-1) === 'canceled')
    expect(installs).toBe(7)
    held.open()
    await until('all installs are handled', () => installs === 9)
  })

  it('A227 cannot delay the pages of a customer, or its changes, by further subscriptions of its business that are slow to read', async () => {
    const { marketplace, platform, deliver } = await createScene({
      store: await engine.freshAddress(),
      freshness: { waitMs: 20_000 },
      ...internals({ callTimeoutMs: 20_000 }),
    })
    const states: string[] = []
    marketplace.onPurchaseChange(({ to }) => void states.push(String(to)))
    await marketplace.start()
    const { uid } = platform.purchase({ business_uid: B1, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the purchase was read', async () => (await marketplace.isEntitled(B1)) || undefined)
    await marketplace.settled()
    const made = Array.from({ length: 4 }, (_, i) => `made up ${i}`)
    const slow = made.map((subscription_uid) =>
      platform.faults.add({ on: 'read', kind: 'slow', ms: 15_000, subscription_uid }),
    )
    for (const each of made) await deliver(noticeOf(each, B1))
    await until('one of them is being read', () => slow.some(({ strikes }) => strikes > 0))
    const begun = Date.now()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    platform.cancel(uid)
    await until('the cancellation is handled', () => states.at(-1) === 'canceled', 12_000)
    expect(Date.now() - begun).toBeLessThan(12_000)
  })

  it('A227 cannot delay the changes of a customer, or `refresh`, by subscriptions of its business that are slow to read again', async () => {
    const { marketplace, platform, deliver } = await createScene({
      store: await engine.freshAddress(),
      ...internals({ callTimeoutMs: 20_000 }),
    })
    const states: string[] = []
    marketplace.onPurchaseChange(({ to }) => void states.push(String(to)))
    await marketplace.start()
    const { uid } = platform.purchase({ business_uid: B1, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the purchase was read', async () => (await marketplace.isEntitled(B1)) || undefined)
    const made = Array.from({ length: 4 }, (_, i) => `made up ${i}`)
    for (const each of made) await deliver(noticeOf(each, B1))
    await until('the platform has denied them', async () => {
      const subscriptions = await marketplace.subscriptions.list({ businessUid: B1 })
      return subscriptions.filter(({ failure }) => failure === 'platform_record_missing').length === 4
    })
    await marketplace.settled()
    const slow = made.map((subscription_uid) =>
      platform.faults.add({ on: 'read', kind: 'slow', ms: 15_000, subscription_uid }),
    )
    const begun = Date.now()
    const refreshed = marketplace.businesses.refresh(B1)
    await until('one of them is being read', () => slow.some(({ strikes }) => strikes > 0))
    platform.cancel(uid)
    await until('the cancellation is handled', () => states.at(-1) === 'canceled', 12_000)
    await refreshed
    expect(Date.now() - begun).toBeLessThan(12_000)
  })

  it('A235 cannot make a customer wait again and again until the platform allows further reads', async () => {
    const { fetchLimited, limits } = limitedFetch(20, 5_000)
    const { marketplace, platform, deliver } = await createScene({
      store: await engine.freshAddress(),
      platform: { fetch: fetchLimited },
    })
    const states: string[] = []
    marketplace.onPurchaseChange(({ to }) => void states.push(String(to)))
    await marketplace.start()
    const { uid } = platform.purchase({ business_uid: B1, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the purchase was read', async () => (await marketplace.isEntitled(B1)) || undefined)
    for (let page = 0; page < 6; page++)
      await deliver(
        Array.from({ length: 100 }, (_, i) => noticeOf(`made up ${page} ${i}`, `nobody ${page} ${i}`)),
      )
    await until('the platform allows no further reads', () => limits.length > 0)
    for (const [i, state] of (['canceled', 'purchased', 'canceled', 'purchased'] as const).entries()) {
      const begun = Date.now()
      platform.set(uid, { purchase_state: state })
      await deliver(noticeOf(uid))
      await until('the change is handled', () => states.at(-1) === state, 12_000)
      if (i > 0) expect(Date.now() - begun).toBeLessThan(2_500)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
    expect(limits).toHaveLength(1)
  })

  it('A65 writes one row for all that a delivery contains beside known events', async () => {
    const { marketplace, deliver } = await createScene({ store: await engine.freshAddress(), worker: false })
    await marketplace.start()
    const junk = Array.from({ length: 1_000 }, (_, i) =>
      i % 2 ? 1 : { entity_name: 'x', event_type: `y${i}` },
    )
    const first = await deliver(junk)
    expect([first.status, new Set(first.body.ids as string[]).size]).toEqual([200, 1])
    expect((first.body.ids as string[]).length).toBe(1_000)
    const second = await deliver([noticeOf('s1'), ...junk.slice(2), noticeOf('s2')])
    expect([second.status, new Set(second.body.ids as string[]).size]).toEqual([200, 3])
    const entries = await marketplace.journal.list()
    expect(entries.map(({ kind }) => kind).sort()).toEqual(['event', 'event', 'unrecognised', 'unrecognised'])
    const payloads = entries.flatMap(({ kind, payload }) => (kind === 'unrecognised' ? [payload] : []))
    expect(payloads).toEqual([junk.slice(2), junk])
  })
})

describe('somebody who has the delivery secret and has filled the database', () => {
  it('A60 cannot take the app out of rotation by the deliveries that are refused, which are not counted as failures of the store', async () => {
    const { scrape } = await startScraping()
    const few = { rows: 3, bytes: 10_000 }
    const most = { event: few, known: few, unrecognised: few, subscriptions: 3 }
    const engine = createSqliteEngine({ path: ':memory:', clock: systemClock })
    const store = storeOption(createSqlStore(engine, systemClock, { most }))
    const { marketplace, deliver } = await createScene({ store, worker: false })
    marketplace.on('purchasable_subscription/update', () => {})
    await marketplace.start()
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await deliver(noticeOf(`made up ${i}`))).status)
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(5)
    const { status, problems } = await marketplace.health()
    expect(problems.map(({ code }) => code)).toContain('deliveries_turned_away')
    expect(problems.map(({ code }) => code)).not.toContain('deliveries_failing')
    expect(status).toBe('degraded')
    const counted = await scrape()
    const outcomes = ['delivery_turned_away', 'delivery_not_accepted'].map((outcome) =>
      counted.get(`marketplace_webhooks_deliveries_total{outcome="${outcome}"}`),
    )
    expect(outcomes).toEqual([statuses.filter((each) => each === 503).length, 0])
  })
})

/** `fetch` to a platform that allows so many calls a second, and after one more none for `pauseMs`. */
function limitedFetch(perSecond: number, pauseMs: number) {
  let calls: number[] = []
  let pausedUntil = 0
  /** When it began to allow none. */
  const limits: number[] = []
  const fetchLimited: typeof fetch = async (input, init) => {
    const now = performance.now()
    calls = calls.filter((at) => at > now - 1_000)
    if (now >= pausedUntil && calls.push(now) > perSecond) {
      limits.push(now)
      pausedUntil = now + pauseMs
    }
    if (now >= pausedUntil) return fetch(input, init)
    return new Response('{}', { status: 429, headers: { 'retry-after': `${pauseMs / 1_000}` } })
  }
  return { fetchLimited, limits }
}
