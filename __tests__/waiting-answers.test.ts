import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../lib/clock.js'
import type { ReadResult } from '../lib/platform/read-result.js'
import type { ReadClaim } from '../lib/store/store.js'
import { postgresStore } from '../lib/store-option.js'
import { sampleDelivery } from '../lib/testing/index.js'
import { concludeRead } from '../lib/work/conclude-read.js'
import { ENGINE_NAMES, useEngine } from './support/engines.js'
import { eventOf, notice } from './support/events.js'
import { jumpingClock } from './support/jumping-clock.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace } from './support/scene.js'
import { openStoreWithSql } from './support/store-with-sql.js'
import { gate, until } from './support/until.js'

describe('the answer about what was just announced', () => {
  it('D20 is not known either after the process that was verifying it has been closed', async () => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    const urls = { baseUrl: 'http://platform.test', authUrl: 'http://auth.test' }
    let reads = 0
    const marketplace = openMarketplace(urls, {
      store: { ...store, close: async () => {} },
      closeGraceMs: 50,
      platform: {
        async fetch(input, init) {
          const url = new URL(String(input))
          if (url.pathname === '/oauth/token') return Response.json({ access_token: 'a-token' })
          // The second read is under way when the process ends.
          if (++reads > 1)
            await new Promise((_resolve, reject) => init?.signal?.addEventListener('abort', reject))
          return Response.json({ data: { subscriptions: [] } })
        },
      },
    })
    await store.accept([eventOf('s1', 'b1')])
    await until('it is read again', () => reads > 1)
    await marketplace.close()
    expect(await store.subscriptionsOf('b1')).toMatchObject([{ record: null, verifying: true }])
  })
})

describe('D24 the clocks of the app and of PostgreSQL are apart', () => {
  const engine = useEngine('PostgreSQL')

  it.each([10, -10])(
    'a question waits for the read as long as with one clock (%d s)',
    async (aheadSeconds) => {
      const { clock, leap } = jumpingClock()
      leap(aheadSeconds * SECOND)
      const store = postgresStore(await engine.freshAddress(), { clock })
      const { marketplace, platform } = await createScene({ store, clock, freshness: { waitMs: 3_000 } })
      await marketplace.start()
      platform.faults.add({ on: 'read', kind: 'slow', ms: 700 })
      platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
      await platform.settled()
      expect(await marketplace.isEntitled('b1')).toBe(true)
      const { asOf } = await marketplace.explain('b1')
      expect(Math.abs(Date.parse(String(asOf)) - clock.now())).toBeLessThan(3_000)
    },
  )

  it.each([10, -10])('and no longer (%d s)', async (aheadSeconds) => {
    const { clock, leap } = jumpingClock()
    leap(aheadSeconds * SECOND)
    const store = postgresStore(await engine.freshAddress(), { clock })
    const { marketplace, platform } = await createScene({ store, clock, freshness: { waitMs: 500 } })
    await marketplace.start()
    platform.faults.add({ on: 'read', kind: 'hang' })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    const begun = performance.now()
    expect(await marketplace.explain('b1')).toMatchObject({ known: false, reason: 'not_read_yet' })
    expect(performance.now() - begun).toBeLessThan(1_500)
  })
})

describe('D22 another business that was named', () => {
  it('does not take away what its own is refused for a while, because it does not show it', async () => {
    const { clock, jump } = jumpingClock()
    let isRefused = false
    let candidateReads = 0
    const own = { uid: 's1', business_uid: 'b1', purchasable_uid: OUR_ITEM, purchase_state: 'purchased' }
    const urls = { baseUrl: 'http://platform.test', authUrl: 'http://auth.test' }
    const marketplace = openMarketplace(urls, {
      clock,
      platform: {
        async fetch(input, init) {
          const url = new URL(String(input))
          if (url.pathname === '/oauth/token')
            return Response.json({ access_token: url.searchParams.get('business_uid') })
          const isOwn = new Headers(init?.headers).get('authorization') === 'Bearer b1'
          if (isOwn && isRefused) return Response.json({}, { status: 403 })
          if (!isOwn) candidateReads++
          return Response.json({ data: { subscriptions: isOwn ? [own] : [] } })
        },
      },
    })
    await marketplace.track({ subscription_uid: 's1', business_uid: 'b1' })
    await until('it is read', () => marketplace.isEntitled('b1'))
    isRefused = true
    await marketplace.track({ subscription_uid: 's1', business_uid: 'b2' })
    await until('it was read for the other several times over minutes', () => {
      jump(MINUTE)
      return candidateReads >= 4
    })
    expect(await marketplace.explain('b1')).toMatchObject({ entitled: true, reason: 'purchased' })
    expect(await marketplace.isEntitled('b2')).toBe(false)
  })
})

describe('J32 a business that bought another item', () => {
  it('is explained with the item that it bought and the one that is configured', async () => {
    const { marketplace, deliver } = await createScene()
    const data = { business_id: 'b1', subscription_uid: 's1', purchasable_uid: OTHER_ITEM }
    await deliver(sampleDelivery('purchasable_subscription/create', data))
    expect(await marketplace.explain('b1')).toMatchObject({
      entitled: false,
      known: true,
      reason: 'other_app',
      explanation: expect.stringContaining(
        `It is of the item ${OTHER_ITEM}, and app.purchasableUid is ${OUR_ITEM}.`,
      ),
    })
  })
})

describe('J21 a number as an identifier', () => {
  it('is refused where it is not a safe integer, by every call that rejects', async () => {
    const { marketplace } = await createScene()
    for (const odd of [72.5, Number.NaN, 2 ** 60]) {
      const refused = expect.objectContaining({ code: 'argument_invalid' })
      await expect(marketplace.refresh(odd)).rejects.toEqual(refused)
      await expect(marketplace.track({ subscription_uid: odd, business_uid: 72 })).rejects.toEqual(refused)
      await expect(marketplace.track({ subscription_uid: 72, business_uid: odd })).rejects.toEqual(refused)
    }
  })

  it('is taken for its text when a token is fetched, and what cannot be one is refused', async () => {
    const { marketplace, platform } = await createScene()
    platform.addBusiness('72')
    await expect(marketplace.fetchAppToken(72 as never)).resolves.toEqual(expect.anything())
    for (const odd of [72.5, Number.NaN, 2 ** 60])
      await expect(marketplace.fetchAppToken(odd as never)).rejects.toMatchObject({
        code: 'argument_invalid',
      })
  })
})

describe.each(ENGINE_NAMES)('H6 while the wall clock leaps by 70 s, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it.each([70_000, -70_000])('the handlers of one subscription are never two at once (%d ms)', async (ms) => {
    const { clock, leap } = jumpingClock()
    const store = await engine.freshAddress()
    const { marketplace, deliver } = await createScene({ store, clock })
    const held = gate()
    const calls: string[] = []
    let active = 0
    let most = 0
    marketplace.on('purchasable_subscription/update', async ({ id }) => {
      calls.push(id)
      most = Math.max(most, ++active)
      if (calls.length === 1) await held.opened
      active--
    })
    await marketplace.start()
    const { id: first } = await deliver(notice('b1', 's1'))
    await until('the handler runs', () => active === 1)
    leap(ms)
    const { id: second } = await deliver(notice('b1', 's1'))
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(calls).toEqual([first])
    held.open()
    await until('the second is handled', () => calls.length === 2)
    expect([calls, most]).toEqual([[first, second], 1])
    await until(
      'both have ended',
      async () => (await marketplace.journal.list({ status: 'done' })).length === 2,
    )
  })
})

describe('D25 a wall clock that was ahead for a while', () => {
  const before = record('canceled', '2030-01-02T00:00:00.000Z')
  const subscription = {
    ...{
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: OUR_ITEM,
      record: before,
      state: 'canceled',
    },
    ...{ gone: null, readAt: null, requestedAt: null, pending: false, verifying: false, failure: null },
    refreshAt: null,
    quiet: false,
  }
  const claim: ReadClaim = {
    ...{
      id: 's1',
      leaseToken: 't',
      subscription,
      urgency: 4,
      generation: 0,
      settledGeneration: 0,
      lapses: 0,
    },
    ...{ candidateBusinessUid: null, uninstalledAt: null, createdAt: 0, claimedAt: 0, progress: null },
  }
  const conclude = (progress: string | null, result: ReadResult, now: number) =>
    concludeRead({ ...claim, progress }, result, {
      ...{ now, random: () => 0.5, reconcileEveryMs: 24 * HOUR, waitMs: 1_500, hasServedSince: () => true },
      stateOf: ({ purchase_state }) => purchase_state,
    })
  const right = Date.UTC(2030, 0, 3)
  const ahead = right + 365 * 24 * HOUR

  it('does not keep the platform from being believed that keeps to an older record', () => {
    const older = { kind: 'found', record: record('purchased', '2030-01-01T00:00:00.000Z') } as const
    const first = conclude(null, older, ahead)
    const second = conclude(first.progress, older, right)
    expect(second.nextInMs).toBe(HOUR)
    expect(conclude(second.progress, older, right + HOUR).found).toMatchObject({ state: 'purchased' })
  })

  it('does not keep a record that has disappeared', () => {
    const missing = { kind: 'missing' } as const
    const first = conclude(null, missing, ahead)
    const second = conclude(first.progress, missing, right)
    expect(conclude(second.progress, missing, right + 2 * MINUTE).found).toMatchObject({ gone: 'missing' })
  })
})

function record(purchase_state: string, updated_at: string) {
  return { uid: 's1', business_uid: 'b1', purchasable_uid: OUR_ITEM, purchase_state, updated_at }
}
