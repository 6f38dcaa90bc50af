import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import type { FindSubscriptions, MarketplaceOptions } from '../../../lib/index.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { itWhereShared } from '../../support/engines/sharing.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { notice } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { quietWarnings } from '../../support/output.js'
import {
  CLIENT,
  codesOf,
  createScene,
  OTHER_ITEM,
  OUR_ITEM,
  openMarketplace,
  type Scene,
} from '../../support/scene.js'
import { consoleCaller, mountConsole } from '../../support/scenes/console.js'
import { serve } from '../../support/serving.js'
import { B1, B2 } from '../../support/settings.js'
import { gate, looks, until } from '../../support/until.js'

/** Long enough for a search and a read on a busy machine. */
const PATIENT = { freshness: { waitMs: 20_000 } }
const IMPATIENT = { freshness: { waitMs: 0 } }

describe.each(ENGINE_NAMES)('platform.findSubscriptions on %s', (name) => {
  const engine = useEngine(name)
  const itOfSeveral = itWhereShared(name)

  it('J100 lets the gate reply 503 until the platform has answered, and then 402, which is kept', async () => {
    const held = gate()
    const { marketplace, app, url, asked, jump } = await searching(async () => {
      await held.opened
      return []
    }, IMPATIENT)
    app.get('/page', marketplace.requireEntitlement({ businessUid: () => B1 }), (_req, res) => void res.end())
    const first = await fetch(`${url}/page`)
    expect([first.status, Number(first.headers.get('retry-after'))]).toEqual([503, expect.any(Number)])
    expect(await marketplace.explain(B1)).toMatchObject({
      reason: 'not_read_yet',
      known: false,
      entitled: false,
    })
    expect(await marketplace.explain(B1, { purchasableUid: 'item-ours' })).toMatchObject({
      reason: 'not_read_yet',
      known: false,
    })
    held.open()
    await until('the answer is no', async () => (await fetch(`${url}/page`)).status === 402)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business', known: true })
    jump(HOUR)
    expect((await fetch(`${url}/page`)).status).toBe(402)
    await marketplace.settled()
    expect(asked).toEqual([B1])
  })

  it('J100 finds a purchase whose webhook was lost at the first question, and the change is handled', async () => {
    const { platform, marketplace, asked } = await searching(listed, PATIENT)
    const changes: unknown[] = []
    marketplace.onPurchaseChange(
      ({ business_uid, to, cause }) => void changes.push([business_uid, to, cause]),
    )
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await until('the change is handled', () => changes.length === 1)
    // No event has announced it: when `create` is never delivered, health shows it by this cause.
    expect(changes).toEqual([[B1, 'purchased', 'reconcile']])
    expect(await marketplace.subscriptions.list()).toMatchObject([{ subscription_uid: uid }])
    await marketplace.settled()
    expect(asked).toEqual([B1])
  })

  it('J100 finds purchases whose webhooks never come, and an hour later health says that events are missing', async () => {
    const { platform, marketplace, codes, store } = await searching(listed, PATIENT)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    for (const business of ['s1', 's2', 's3']) {
      platform.addBusiness(business)
      platform.purchase({ business_uid: business, payment: 'succeeded' })
      expect(await marketplace.isEntitled(business)).toBe(true)
    }
    expect(await codes()).toEqual([])
    await marketplace.close()
    const stored = await openStoreWithSql(store)
    const journal = name === 'SQLite' ? 'journal' : 'marketplace_webhooks.journal'
    await stored.sql(`update ${journal} set received_at = received_at - ${2 * HOUR}`)
    await stored.store.close()
    const later = openMarketplace(platform, { store, worker: false })
    expect((await later.health()).problems.map(({ code }) => code)).toContain('events_missing')
  })

  it('J101 is called once for a hundred questions', async () => {
    const { marketplace, asked } = await searching(async () => [], PATIENT)
    const answers = await Promise.all(Array.from({ length: 100 }, () => marketplace.explain(B1)))
    expect(new Set(answers.map(({ reason }) => reason))).toEqual(new Set(['unknown_business']))
    expect(asked).toEqual([B1])
  })

  itOfSeveral(
    'J101 is called once for the questions of two processes, also of one without a worker',
    async () => {
      const { platform, marketplace, asked, options } = await searching(async () => [], PATIENT)
      const others = [true, false].map((worker) =>
        openMarketplace(platform, { ...options, ...PATIENT, worker }),
      )
      const apps = [marketplace, ...others]
      const answers = await Promise.all(
        Array.from({ length: 99 }, (_, i) => apps[i % 3]?.explain(B1).then(({ reason }) => reason)),
      )
      expect(new Set(answers)).toEqual(new Set(['unknown_business']))
      expect(await others[1]?.explain(B2)).toMatchObject({ reason: 'unknown_business' })
      expect(asked.sort()).toEqual([B1, B2].sort())
    },
    60_000,
  )

  it.each([
    ['throws', () => Promise.reject(new Error('out of order'))],
    ['throws at once', () => thrown('out of order')],
    ['returns no array', async () => ({ uid: '1' }) as never],
    ['returns nothing', async () => undefined as never],
    ['returns something that is no identifier', async () => ['1', { uid: '2' }] as never],
    ['returns too many', async () => Array.from({ length: 1_001 }, (_, i) => `s${i}`)],
    ['never ends', () => new Promise<never>(() => {})],
  ] satisfies [string, () => ReturnType<FindSubscriptions>][])(
    'J102 that %s is called again after a pause, and health says so until it answers',
    async (_what, fails) => {
      const warnings = quietWarnings()
      let isBroken = true
      const { marketplace, asked, codes } = await searching(() => (isBroken ? fails() : []), {
        ...IMPATIENT,
        ...internals({ callTimeoutMs: 200 }),
      })
      await marketplace.explain(B1)
      await until('health shows it', async () => (await codes()).includes('find_subscriptions_failed'))
      expect(await marketplace.explain(B1)).toMatchObject({
        reason: 'not_read_yet',
        known: false,
        explanation: expect.stringContaining('the code of the app that searches the platform has an error'),
        search: { pending: true, failure: 'find_subscriptions_failed' },
      })
      await until('it is called again', () => asked.length >= 2)
      isBroken = false
      await until(
        'it has answered',
        async () => (await marketplace.explain(B1)).reason === 'unknown_business',
      )
      expect(await codes()).toEqual([])
      const own = warnings.mock.calls.filter(([, given]) => codeOf(given) === 'find_subscriptions_failed')
      expect(own).toHaveLength(1)
    },
  )

  it('J100 is called at an install, without a question', async () => {
    const { platform, marketplace } = await searching(listed)
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ business_uid }) => void changes.push(business_uid))
    await marketplace.start()
    platform.faults.add({ on: 'delivery', kind: 'drop', event: 'purchasable_subscription/create' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    platform.install(B1)
    await until('the purchase is found', () => changes.length > 0)
    expect(changes).toEqual([B1])
  })

  it('J100 is called again at an install of a business that has none', async () => {
    const { platform, marketplace, asked, deliver } = await searching(listed, {
      freshness: { waitMs: 20_000, reconcileEveryMs: HOUR },
    })
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await deliver(sampleDelivery('application/installed', { business_id: B1, app_code_name: 'ours' }))
    await until('the purchase is found', () => marketplace.isEntitled(B1))
    expect(asked).toEqual([B1, B1])
  })

  it('J100 is called again at each reconcile of a business without a subscription', async () => {
    const { platform, marketplace } = await searching(listed, {
      freshness: { waitMs: 20_000, reconcileEveryMs: 1_000 },
    })
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ business_uid }) => void changes.push(business_uid))
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is found', () => changes.length > 0)
    expect(changes).toEqual([B1])
  })

  it('J103 answers a customer beside a flood of made-up installs, of which one is searched for at a time', async () => {
    let most = 0
    let running = 0
    const { platform, marketplace, deliver } = await searching(async (businessUid, given, scene) => {
      if (!businessUid.startsWith('made-up')) return listed(businessUid, given, scene)
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 200))
      running--
      return []
    }, PATIENT)
    await marketplace.start()
    for (let i = 0; i < 100; i++) {
      platform.addBusiness(`made-up-${i}`)
      await deliver(
        sampleDelivery('application/installed', { business_id: `made-up-${i}`, app_code_name: 'ours' }),
      )
    }
    await until('a made-up one is searched for', () => running > 0)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(most).toBe(1)
  })

  it('J104 restores nothing of a business that was erased during the call', async () => {
    const held = gate()
    const { platform, marketplace, asked } = await searching(async (...given) => {
      await held.opened
      return listed(...given)
    }, IMPATIENT)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.explain(B1)
    await until('it is called', () => asked.length === 1)
    await marketplace.businesses.erase(B1)
    held.open()
    await looks(5)
    expect(await marketplace.businesses.export(B1)).toMatchObject({ subscriptions: [] })
  })

  it('J104 is aborted by close, and the search is made by the next process', async () => {
    const signals: AbortSignal[] = []
    const { platform, marketplace, asked, options } = await searching((...given) => {
      const [, { signal }] = given
      signals.push(signal)
      return signals.length === 1 ? new Promise<never>(() => {}) : listed(...given)
    }, IMPATIENT)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.explain(B1)
    await until('it is called', () => asked.length === 1)
    expect(signals[0]?.aborted).toBe(false)
    await marketplace.close()
    expect(signals[0]?.aborted).toBe(true)
    const next = openMarketplace(platform, options)
    const changes: unknown[] = []
    next.onPurchaseChange(({ business_uid }) => void changes.push(business_uid))
    await until('the purchase is found', () => changes.length > 0)
    expect(asked).toEqual([B1, B1])
  })

  it('J100 is called again by businesses.refresh, which waits for what it finds', async () => {
    // Questions do not wait, so `refresh` must.
    const { platform, marketplace, asked } = await searching(listed, IMPATIENT)
    await until('the answer is no', async () => (await marketplace.explain(B1)).reason === 'unknown_business')
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.businesses.refresh(B1)).toMatchObject({ entitled: true })
    expect(asked).toEqual([B1, B1])
  })

  it('J102 gets another token after it has thrown', async () => {
    quietWarnings()
    const { platform, marketplace, asked } = await searching(listed, PATIENT)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    platform.faults.expireTokens()
    await marketplace.businesses.refresh(B1)
    await until('the purchase is found', () => marketplace.isEntitled(B1))
    expect(asked).toEqual([B1, B1, B1])
  })

  it('J103 is not called for a business to which the platform refuses a token, which is no answer yet', async () => {
    const { marketplace, asked, codes } = await searching(listed, PATIENT)
    await until('it is refused', async () =>
      (await marketplace.explain('never-seen')).explanation.includes(
        'the platform gives the app no access to this business',
      ),
    )
    expect(await marketplace.explain('never-seen')).toMatchObject({
      reason: 'not_read_yet',
      known: false,
      search: { answered: false, pending: true, failure: 'token_refused' },
    })
    expect(asked).toEqual([])
    expect(await codes()).toEqual([])
  })

  it('J100 finds a purchase for which the platform refused a token for some seconds', async () => {
    const { platform, marketplace } = await searching(listed, PATIENT)
    await until('it is refused', async () =>
      (await marketplace.explain('late')).explanation.includes(
        'the platform gives the app no access to this business',
      ),
    )
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.addBusiness('late')
    platform.purchase({ business_uid: 'late', payment: 'succeeded' })
    expect(await marketplace.waitForEntitlement('late')).toMatchObject({ entitled: true })
  })

  it('J100 finds who buys after the platform has answered: the page to which a buyer returns asks again', async () => {
    const { platform, marketplace, asked } = await searching(listed, PATIENT)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business', known: true })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: false })
    expect(await marketplace.waitForEntitlement(B1)).toMatchObject({ entitled: true })
    expect(asked).toEqual([B1, B1])
  })

  it.each(
    ['has', 'had'].flatMap((has) =>
      ['waitForEntitlement', 'refresh', 'an install', 'the reconcile'].map((by) => [has, by]),
    ),
  )(
    'J100 finds the first purchase of a business that %s a subscription of another item: %s',
    async (has, by) => {
      const reconcileEveryMs = by === 'the reconcile' ? 1_000 : HOUR
      const { platform, marketplace, deliver } = await searching(listed, {
        freshness: { waitMs: 20_000, reconcileEveryMs },
      })
      const { uid } = platform.mainSubscription({ business_uid: B1 })
      await until(
        'the platform has answered',
        async () => (await marketplace.explain(B1)).reason === 'other_app',
      )
      if (has === 'had') {
        const refused = platform.faults.add({ on: 'read', kind: 'status', status: 403 })
        await deliver(endOf(uid))
        await until('it has ended', async () => (await marketplace.explain(B1)).reason === 'ended')
        platform.remove(uid)
        refused.remove()
      }
      platform.faults.add({ on: 'delivery', kind: 'drop' })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      if (by === 'waitForEntitlement') await marketplace.waitForEntitlement(B1, { timeoutMs: 20_000 })
      if (by === 'refresh') await marketplace.businesses.refresh(B1)
      if (by === 'an install')
        await deliver(sampleDelivery('application/installed', { business_id: B1, app_code_name: 'ours' }))
      await until('the purchase is found', () => marketplace.isEntitled(B1))
    },
    60_000,
  )

  it('M4, J102 a purchase that was read while its item was misspelt counts once that is corrected, also while searches fail', async () => {
    quietWarnings()
    const misspelt = { ...IMPATIENT, app: { ...CLIENT, codeName: 'ours', purchasableUid: 'misspelt' } }
    const { platform, marketplace, options } = await searching(() => thrown('out of order'), misspelt)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it is read', async () => (await marketplace.explain(B1)).subscriptions[0]?.asOf)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'not_read_yet', entitled: false })
    await marketplace.close()
    const corrected = openMarketplace(platform, { ...options, ...IMPATIENT })
    expect(await corrected.explain(B1)).toMatchObject({ reason: 'purchased', entitled: true })
  })

  it('J100 is not called more often than once a second by those who wait', async () => {
    const { marketplace, asked } = await searching(async () => [], IMPATIENT)
    await until('the answer is no', async () => (await marketplace.explain(B1)).reason === 'unknown_business')
    const begun = Date.now()
    await Promise.all(
      Array.from({ length: 50 }, () => marketplace.waitForEntitlement(B1, { timeoutMs: 2_000 })),
    )
    const seconds = Math.ceil((Date.now() - begun) / 1_000)
    expect(asked.length).toBeGreaterThan(1)
    expect(asked.length).toBeLessThanOrEqual(2 + seconds)
  })

  it('J103 is called although a forged delivery has named the business, which is no answer meanwhile', async () => {
    const held = gate()
    const twoItems = {
      ...IMPATIENT,
      app: { ...CLIENT, codeName: 'ours', purchasableUid: [OUR_ITEM, 'plan'] },
    }
    const { platform, marketplace, deliver, asked } = await searching(async (...given) => {
      await held.opened
      return listed(...given)
    }, twoItems)
    await marketplace.start()
    await deliver(notice(B1, 'made-up'))
    await until('the forged one was read', async () => {
      const [subscription] = await marketplace.subscriptions.list({ businessUid: B1 })
      return subscription?.failure
    })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    for (const asked of [{}, { purchasableUid: 'plan' }, { purchasableUid: OUR_ITEM }])
      expect(await marketplace.explain(B1, asked)).toMatchObject({ reason: 'not_read_yet', known: false })
    held.open()
    await until('the purchase is found', () => marketplace.isEntitled(B1))
    expect(new Set(asked)).toEqual(new Set([B1]))
  })

  it('pauses all reads after a 429, as long as the platform asks', async () => {
    const limited = await serve((_req, res) => void res.writeHead(429, { 'retry-after': '5' }).end())
    const { platform, marketplace, asked, codes } = await searching(async (_business, { fetch }) => {
      const reply = await fetch(limited)
      throw new Error(`the status is ${reply.status}`)
    }, IMPATIENT)
    await marketplace.explain(B1)
    await until('reads are paused', async () => (await codes()).includes('reads_throttled'))
    platform.purchase({ business_uid: B2, payment: 'succeeded' })
    await marketplace.explain('another')
    await looks(5)
    expect(asked).toEqual([B1])
    expect(await marketplace.isEntitled(B2)).toBe(false)
    await until('the reads go on', () => marketplace.isEntitled(B2))
  })

  it('pauses all reads when the platform refuses the credentials of the app', async () => {
    const { platform, marketplace, asked, codes } = await searching(listed, IMPATIENT)
    const body = { error: 'invalid_client' }
    const fault = platform.faults.add({ on: 'token', kind: 'status', status: 401, body })
    await marketplace.explain(B1)
    await until('reads are paused', async () => (await codes()).includes('credentials_refused'))
    fault.remove()
    expect(asked).toEqual([])
  })

  it('is not called for a person who looks, and shows what a search has answered', async () => {
    const { marketplace, app, url, asked } = await searching(async () => [], PATIENT)
    mountConsole(app, marketplace)
    const { body } = await consoleCaller(`${url}/ops`, 'support').read('business', { business_uid: 'typed' })
    expect(body.decision.reason).toBe('unknown_business')
    expect(await marketplace.explain(B1, { search: false })).toMatchObject({ reason: 'unknown_business' })
    await looks(5)
    expect(asked).toEqual([])
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })
    expect(asked).toEqual([B1])
  })

  it('is part of the export of a business, until an erasure', async () => {
    const { marketplace } = await searching(async () => [], PATIENT)
    await marketplace.explain(B1)
    const search = {
      isAsked: true,
      failure: null,
      wantedAt: expect.any(String),
      answeredAt: expect.any(String),
    }
    expect(await marketplace.businesses.export(B1)).toMatchObject({ search })
    let text = ''
    for await (const piece of marketplace.businesses.exportText(B1)) text += piece
    expect(JSON.parse(text)).toMatchObject({ search })
    await marketplace.businesses.erase(B1)
    expect(await marketplace.businesses.export(B1)).toMatchObject({ search: null })
  })

  it('J102 is called once the platform gives a token, after an outage', async () => {
    const { platform, marketplace, asked } = await searching(listed, IMPATIENT)
    const fault = platform.faults.add({ on: 'token', kind: 'down' })
    await marketplace.explain(B1)
    await until(
      'the search has failed',
      async () => (await marketplace.explain(B1)).search?.failure === 'platform_unreachable',
    )
    expect(asked).toEqual([])
    fault.remove()
    await until('it has answered', async () => (await marketplace.explain(B1)).reason === 'unknown_business')
  })

  itOfSeveral(
    'a process without a worker and without the option answers by the stored search, as the others do',
    async () => {
      let isBroken = true
      const { platform, marketplace, asked, codes, options } = await searching(
        () => (isBroken ? Promise.reject(new Error('out of order')) : []),
        IMPATIENT,
      )
      quietWarnings()
      await marketplace.explain(B1)
      await until('the search has failed', async () => (await codes()).includes('find_subscriptions_failed'))
      const other = openMarketplace(platform, { store: options.store, worker: false, ...IMPATIENT })
      expect(await other.explain(B1)).toMatchObject({
        reason: 'not_read_yet',
        known: false,
        search: { failure: 'find_subscriptions_failed' },
      })
      expect(await codesOf(other)).toContain('find_subscriptions_failed')
      // Nobody asks for a search of this one.
      expect(await other.explain(B2)).toMatchObject({ reason: 'unknown_business', known: true })
      isBroken = false
      await until('it has answered', async () => (await marketplace.explain(B1)).known)
      await until('the other knows it', async () => (await other.explain(B1)).known)
      expect(new Set(asked)).toEqual(new Set([B1]))
    },
    60_000,
  )

  it('without it no business is searched for', async () => {
    const scene = await createScene({ store: await engine.freshAddress() })
    const { marketplace, platform } = scene
    await marketplace.start()
    platform.faults.add({ on: 'delivery', kind: 'drop', event: 'purchasable_subscription/create' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    platform.install(B1)
    await platform.settled()
    await marketplace.settled()
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business', known: true })
    expect(platform.requests.filter(({ endpoint }) => endpoint === 'read')).toEqual([])
  })

  type Find = (...given: [...Parameters<FindSubscriptions>, Scene]) => ReturnType<FindSubscriptions>

  /** A scene with this option, whose platform can list subscriptions. `asked`: the businesses of its calls. */
  async function searching(find: Find, more: Partial<MarketplaceOptions> = {}) {
    const asked: string[] = []
    const findSubscriptions: FindSubscriptions = (businessUid, given) => {
      asked.push(businessUid)
      return find(businessUid, given, scene)
    }
    const options = {
      store: await engine.freshAddress(),
      platform: { findSubscriptions },
      closeTimeoutMs: 100,
    }
    const scene: Scene = await createScene({ ...(more as object), ...options }, { listsSubscriptions: true })
    // Tokens are issued for them, as for a business that has the app installed.
    for (const business of [B1, B2]) scene.platform.addBusiness(business)
    return { ...scene, asked, options, store: options.store }
  }
})

/** Lists the subscriptions of a business at the simulated platform. */
async function listed(
  businessUid: string,
  { token, fetch, signal }: Parameters<FindSubscriptions>[1],
  { platform }: Scene,
): Promise<string[]> {
  const query = new URLSearchParams({ 'filter[business_uid]': businessUid })
  const url = `${platform.baseUrl}/business/subscriptionsmng/v1/subscriptions?${query}`
  const reply = await fetch(url, { headers: { authorization: `Bearer ${token.value}` }, signal })
  if (!reply.ok) throw new Error(`the status is ${reply.status}`)
  const { data } = (await reply.json()) as { data: { subscriptions: { uid: string }[] } }
  return data.subscriptions.map(({ uid }) => uid)
}

/** A delivery whose record shows that a subscription of B1 to another item has ended. */
function endOf(uid: string) {
  return sampleDelivery('purchasable_subscription/updated', {
    ...{ uid, business_uid: B1, purchasable_uid: OTHER_ITEM, purchase_state: 'canceled' },
  })
}

function thrown(message: string): never {
  throw new Error(message)
}

function codeOf(options: unknown): unknown {
  return (options as { code?: unknown } | undefined)?.code
}
