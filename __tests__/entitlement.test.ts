import { describe, expect, it, jest } from '@jest/globals'
import type { Request } from 'express'
import { type Clock, DAY, HOUR } from '../lib/clock.js'
import { TRANSITIONS } from '../lib/entitlement/purchase-state.js'
import type { Marketplace } from '../lib/index.js'
import { createSqliteEngine } from '../lib/sqlite/engine.js'
import { createSqlStore } from '../lib/store/sql-store.js'
import type { Store } from '../lib/store/store.js'
import { type Simulator, sampleDelivery } from '../lib/testing/index.js'
import { onCleanUp } from './support/clean-up.js'
import { jumpingClock } from './support/jumping-clock.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace } from './support/scene.js'
import { gate, until } from './support/until.js'

const B1 = 'business-one'
const B2 = 'business-two'

describe('access to the app', () => {
  for (const row of TRANSITIONS) {
    for (const current of row.current) {
      const title = `${current}: ${row.trigger}${row.condition ? `, ${row.condition}` : ''} → ${row.next}`
      it(title, async () => {
        const { platform, marketplace } = await createScene()
        const uid = await bringTo(current, platform, marketplace)
        const before = platform.deliveries.length

        const moved = move(platform, uid, row)
        await platform.settled()

        expect(moved.purchase_state).toBe(row.next)
        expect(platform.deliveries.slice(before).map(({ event }) => event)).toEqual(
          row.emits ? [row.emits] : [],
        )
        expect(await marketplace.isEntitled(B1)).toBe(row.next === 'purchased')
        expect(await marketplace.explain(B1)).toMatchObject({
          entitled: row.next === 'purchased',
          known: true,
          subscriptions: [{ subscription_uid: moved.uid, purchase_state: row.next }],
        })
      })
    }
  }

  it('D4 is granted and denied again as the state goes back and forth', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    for (let round = 0; round < 3; round++) {
      platform.paymentIssue(uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
      platform.confirmPayment(uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(true)
    }
  })

  it.each([
    'expired',
    'pending',
    'Purchased',
    'PURCHASED',
    ' purchased',
    'purchased ',
    'purchase',
    'true',
    '',
  ])('D14 is denied in the undocumented state "%s", which is stored unchanged', async (purchase_state) => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.set(uid, { purchase_state })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({
      reason: 'not_purchased',
      subscriptions: [{ purchase_state }],
    })
  })

  it('is the same for both spellings of canceled', async () => {
    const { platform, marketplace } = await createScene()
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ from, to }) => changes.push([from, to]))
    const { uid } = await buy(platform, marketplace)
    platform.set(uid, { purchase_state: 'cancelled' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    platform.set(uid, { purchase_state: 'canceled' })
    await marketplace.refresh(B1)
    expect(await marketplace.explain(B1)).toMatchObject({ subscriptions: [{ purchase_state: 'canceled' }] })
    platform.set(uid, { purchase_state: 'purchased' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await until('all changes', () => changes.length === 3)
    expect(changes).toEqual([
      [null, 'purchased'],
      ['purchased', 'canceled'],
      ['canceled', 'purchased'],
    ])
  })

  it('follows the app’s own rule, and is denied when that rule throws or answers anything but true', async () => {
    let rule = (_record: Record<string, unknown>): unknown => true
    const { platform, marketplace } = await createScene({
      entitledWhen: (record) => rule(record) as boolean,
    })
    platform.purchase({ business_uid: B1, payment: 'failed' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    const denying = [() => 1, () => 'yes', () => null, () => Promise.resolve(true), () => explode()]
    for (const [i, next] of denying.entries()) {
      rule = next
      const business_uid = `business-${i}`
      platform.purchase({ business_uid, payment: 'succeeded' })
      await platform.settled()
      expect(await marketplace.isEntitled(business_uid)).toBe(false)
    }
  })

  it('guards a route: 402 before the purchase, 200 while purchased, 402 after, 503 while not known', async () => {
    const { platform, marketplace, app, url } = await createScene({ freshness: { waitMs: 500 } })
    const guard = marketplace.requireEntitlement({ businessUid: (req: Request) => req.header('x-business') })
    app.use('/reports', guard, (_req, res) => void res.send('the report'))
    const status = async (business: string) =>
      (await fetch(`${url}/reports`, { headers: { 'x-business': business } })).status

    expect(await status(B1)).toBe(402)
    const { uid } = await buy(platform, marketplace)
    expect(await status(B1)).toBe(200)
    expect(await status(B2)).toBe(402)
    platform.cancel(uid)
    await platform.settled()
    expect(await status(B1)).toBe(402)
    platform.faults.add({ on: 'platform', kind: 'down' })
    platform.purchase({ business_uid: B2, payment: 'succeeded' })
    await platform.settled()
    expect(await status(B2)).toBe(503)
    platform.faults.clear()
    await until('the report for the second', async () => (await status(B2)) === 200)
  })
})

describe('several subscriptions of one business', () => {
  it.each(['the canceled one first', 'the purchased one first'])(
    'D15 entitle with one purchased, %s',
    async (order) => {
      const { platform, marketplace } = await createScene()
      const uids = ['old', 'new']
      const [ended, running] = order.startsWith('the canceled') ? uids : uids.reverse()
      for (const subscription_uid of ['old', 'new']) {
        platform.purchase({ business_uid: B1, payment: 'succeeded', subscription_uid })
      }
      platform.cancel(ended as string)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      platform.cancel(running as string)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
    },
  )

  it('entitle while one of two is suspended, and the explanation lists each', async () => {
    const { platform, marketplace } = await createScene()
    const first = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const second = platform.purchase({ business_uid: B1, payment: 'failed' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    const { subscriptions } = await marketplace.explain(B1)
    expect(subscriptions.map((each) => [each.subscription_uid, each.entitled, each.reason])).toEqual([
      [first.uid, true, 'purchased'],
      [second.uid, false, 'not_purchased'],
    ])
  })

  it('never entitle another business', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    platform.purchase({ business_uid: B2, payment: 'failed' })
    await platform.settled()
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.isEntitled('business')).toBe(false)
    expect(await marketplace.isEntitled(B1.toUpperCase())).toBe(false)
  })
})

describe('subscriptions for another item than the app’s', () => {
  it('of another app of the same owner change no answer', async () => {
    const { platform, marketplace } = await createScene()
    const other = platform.purchase({ business_uid: B1, purchasable_uid: OTHER_ITEM, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(readsOf(platform, other.uid)).toBe(0)
  })

  it('D16 are detected by the read when a notice names them as the app’s', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const main = platform.mainSubscription({ business_uid: B1 })
    const { status } = await deliver(notice({ subscription_uid: main.uid }))
    expect(status).toBe(200)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'other_app' })
  })

  it('D16 such as a purchased main subscription give no access, with or without an `updated` event', async () => {
    const { platform, marketplace, target } = await createScene()
    await platform.register('purchasable_subscription/updated', target)
    const main = platform.mainSubscription({ business_uid: B1 })
    platform.touch(main.uid)
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(readsOf(platform, main.uid)).toBe(0)
  })

  it('are distinguished for an app with several items, each of which is enough', async () => {
    const { platform, marketplace } = await createScene({ app: { purchasableUid: [OUR_ITEM, OTHER_ITEM] } })
    platform.purchase({ business_uid: B1, purchasable_uid: OTHER_ITEM, payment: 'succeeded' })
    platform.purchase({ business_uid: B2, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await platform.settled()
    expect(await Promise.all([B1, B2].map((each) => marketplace.isEntitled(each)))).toEqual([true, true])
  })

  describe('when the app does not name its own item', () => {
    it('there is one warning, and none when it does', async () => {
      const emitWarning = silenced('emitWarning')
      const { platform } = await createScene()
      expect(emitWarning).not.toHaveBeenCalled()
      openMarketplace(platform, { app: { purchasableUid: undefined } })
      expect(emitWarning.mock.calls).toEqual([
        [
          expect.stringContaining('app.purchasableUid is not set'),
          { type: 'MarketplaceWarning', code: 'purchasable_uid_missing' },
        ],
      ])
    })

    it('D16 a notice counts as its own, and a main subscription still gives no access', async () => {
      silenced('emitWarning')
      const { platform, marketplace, target } = await createScene({ app: { purchasableUid: undefined } })
      await platform.register('purchasable_subscription/updated', target)
      const main = platform.mainSubscription({ business_uid: B1 })
      platform.touch(main.uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
      expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })

      const ours = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      platform.cancel(ours.uid)
      platform.touch(main.uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
    })
  })
})

describe('deliveries of every form', () => {
  it.each([
    ['an array of one', { arrays: true }],
    ['a created with the full record', { fullRecordCreate: true }],
    ['an update with the full record', { fullRecordUpdate: true }],
    ['identifiers as numbers', { numericIds: true }],
    ['numbers in a full record in an array', { numericIds: true, fullRecordCreate: true, arrays: true }],
    ['text/plain in chunks', { contentType: 'text/plain', chunked: true }],
    ['no content type, Expect: 100-continue', { contentType: null, expectContinue: true }],
  ])('lead to the same answers: %s', async (_form, deliveryStyle) => {
    const business_uid = '4711'
    const { platform, marketplace } = await createScene({}, { deliveryStyle })
    const { uid } = platform.purchase({ business_uid, payment: 'failed' })
    await platform.settled()
    expect(await marketplace.isEntitled(business_uid)).toBe(false)
    platform.confirmPayment(uid)
    await platform.settled()
    expect(await marketplace.isEntitled(business_uid)).toBe(true)
    platform.cancel(uid)
    await platform.settled()
    expect(await marketplace.isEntitled(business_uid)).toBe(false)
    expect(platform.deliveries.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('take effect one by one when an array mixes good, foreign and broken ones', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const announced: string[] = []
    const purchase = (business_uid: string, purchasable_uid = OUR_ITEM) =>
      platform.purchase({ business_uid, purchasable_uid, payment: 'succeeded' })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    for (const [business, item] of [
      [B1, OUR_ITEM],
      [B2, OTHER_ITEM],
    ] as const) {
      const { uid } = purchase(business, item)
      announced.push(uid)
    }
    const { body } = await deliver([
      null,
      notice({ subscription_uid: announced[1], business_id: B2, purchasable_uid: OTHER_ITEM }),
      { entity_name: 'purchasable_subscription', event_type: 'created', data: {} },
      notice({ subscription_uid: announced[0] }),
    ])
    expect(body.ids).toHaveLength(4)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.isEntitled(B2)).toBe(false)
  })

  it('with a new event or without a purchasable_uid do not lose a purchase', async () => {
    const { platform, marketplace, deliver } = await createScene()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const { status } = await deliver(
      notice({ subscription_uid: uid, purchasable_uid: undefined, a_new_field: [1] }),
    )
    expect(status).toBe(200)
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })
})

describe('a forged payload', () => {
  const forgedRecord = (data: Record<string, unknown>) =>
    sampleDelivery('purchasable_subscription/updated', {
      business_uid: B1,
      purchasable_uid: OUR_ITEM,
      purchase_state: 'purchased',
      is_active: true,
      updated_at: '2999-01-01T00:00:00.000Z',
      ...data,
    })

  it.each(['update', 'created'])(
    'A11 never grants access: a full record with purchased, sent as %s',
    async (event_type) => {
      const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 300 } })
      const { uid } = platform.purchase({ business_uid: B1, payment: 'failed' })
      await until('it is read', async () => (await marketplace.explain(B1)).subscriptions[0]?.purchase_state)
      expect(await marketplace.isEntitled(B1)).toBe(false)
      await deliver({ ...forgedRecord({ uid }), event_type })
      await deliver({ ...forgedRecord({ uid: 'made-up' }), event_type })
      expect(await marketplace.isEntitled(B1)).toBe(false)
      const { subscriptions } = await marketplace.explain(B1)
      expect(subscriptions.map((each) => [each.purchase_state, each.entitled])).toEqual([
        ['suspended', false],
        [null, false],
      ])
      const changes = await marketplace.journal.list({ kind: 'change' })
      expect(changes.map(({ payload }) => (payload as { to: string }).to)).toEqual(['suspended'])
    },
  )

  it('never takes access away, with canceled', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    await deliver(forgedRecord({ uid, purchase_state: 'canceled', is_active: false }))
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('A10 costs at most one immediate read, as a notice', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const before = readsOf(platform, uid)
    await deliver(notice({ subscription_uid: uid }))
    expect(await marketplace.isEntitled(B1)).toBe(true)
    // A purchase of another business is read meanwhile, so every read that was due at once has been made.
    await buy(platform, marketplace, B2)
    expect(readsOf(platform, uid) - before).toBe(1)
  })

  it('costs at most four reads a second, as a flood of one notice', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const before = readsOf(platform, uid)
    const begun = Date.now()
    for (let i = 0; i < 100; i++) await deliver(notice({ subscription_uid: uid }))
    await until('the last read', async () => !(await marketplace.explain(B1)).subscriptions[0]?.pending)
    // One at once, and one more in each 250 ms in which others arrived.
    expect(readsOf(platform, uid) - before).toBeLessThanOrEqual(2 + (Date.now() - begun) / 250)
  })

  it('A12, D13 never adds the record of another business', async () => {
    const foreign = { uid: 's1', business_uid: B2, purchasable_uid: OUR_ITEM, purchase_state: 'purchased' }
    const { marketplace, deliver } = await createScene({
      freshness: { waitMs: 300 },
      platform: { fetch: answering({ data: { subscriptions: [foreign] } }) },
    })
    await deliver(notice({ subscription_uid: 's1', business_id: B1 }))
    await until('the read', async () => (await marketplace.explain(B1)).subscriptions[0]?.failure)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({
      entitled: false,
      subscriptions: [{ purchase_state: null, failure: 'platform_record_mismatch' }],
    })
    expect(await marketplace.explain(B2)).toMatchObject({ reason: 'unknown_business' })
    expect(await marketplace.journal.list({ kind: 'change' })).toEqual([])
  })

  it.each(['extraRecords', 'wrongRecord'] as const)(
    'D13 never replaces a record, which is found by its uid alone: %s',
    async (kind) => {
      const { platform, marketplace } = await createScene()
      platform.purchase({ business_uid: B1, payment: 'failed' })
      const other = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      platform.mainSubscription({ business_uid: B1 })
      await platform.settled()
      const states = async () =>
        (await marketplace.refresh(B1)).subscriptions.map((each) => each.purchase_state)
      expect(await states()).toEqual(['suspended', 'purchased'])
      // The other is the newer one, and comes first.
      platform.touch(other.uid)
      platform.faults.add({ on: 'read', kind })
      expect(await states()).toEqual(['suspended', 'purchased'])
    },
  )

  it('never moves a subscription that has been read, as a notice of another business', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.addBusiness(B2)
    await deliver(notice({ subscription_uid: uid, business_id: B2 }))
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('never takes a subscription that waits for its first read, as a notice of another business', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 0 } })
    platform.addBusiness(B2)
    const outage = platform.faults.add({ on: 'read', kind: 'status', status: 503 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('the first try', () => readsOf(platform, uid) > 0)
    await deliver(notice({ subscription_uid: uid, business_id: B2 }))
    outage.remove()
    await until('the purchase is seen', () => marketplace.isEntitled(B1))
    expect(await marketplace.isEntitled(B2)).toBe(false)
  })
})

describe('track and refresh', () => {
  it('find a subscription whose events were all lost', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.refresh(B1)).toMatchObject({ reason: 'unknown_business' })
    await marketplace.track({ subscription_uid: uid, business_uid: B1 })
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('change nothing when track is repeated', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    await Promise.all(
      Array.from({ length: 20 }, () => marketplace.track({ subscription_uid: uid, business_uid: B1 })),
    )
    const { entitled, subscriptions } = await marketplace.refresh(B1)
    expect({ entitled, subscriptions: subscriptions.length }).toEqual({ entitled: true, subscriptions: 1 })
    expect(await marketplace.journal.list({ kind: 'change' })).toHaveLength(1)
  })

  it('D10 find the change of a lost event, and refresh answers with it', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.refresh(B1)).toMatchObject({
      entitled: false,
      reason: 'not_purchased',
      subscriptions: [{ purchase_state: 'canceled', pending: false }],
    })
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })

  it('wait for the read, in refresh', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 0 } })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: uid, business_uid: B1 })
    await until('the first read', () => marketplace.isEntitled(B1))
    platform.cancel(uid)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 150 })
    expect(await marketplace.refresh(B1)).toMatchObject({ entitled: false, reason: 'not_purchased' })
  })

  it('ignore the failure of a read that began before the refresh', async () => {
    const failing = gate<never>()
    let isFailing = false
    let failed = 0
    const { platform, marketplace, deliver } = await createScene({
      freshness: { waitMs: 0 },
      platform: {
        async fetch(input, init) {
          if (isFailing && ++failed === 1) await failing.opened
          return fetch(input, init)
        },
      },
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase', () => marketplace.isEntitled(B1))
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    isFailing = true
    await deliver(notice({ subscription_uid: uid }))
    await until('the read that will fail', () => failed === 1)
    const refreshed = marketplace.refresh(B1)
    // Commits follow one another: when this one is through, so is the one that `refresh` asked for.
    await marketplace.track({ subscription_uid: 'another', business_uid: B2 })
    failing.fail(new TypeError('fetch failed'))
    expect(await refreshed).toMatchObject({ entitled: false, reason: 'not_purchased' })
  })

  it.each([
    ['is down', 'down', 20_000],
    ['hangs', 'hang', 200],
  ] as const)(
    'answer with the last known state in bounded time when the platform %s',
    async (_what, kind, timeoutMs) => {
      const { platform, marketplace } = await createScene({ platform: { timeoutMs } })
      await buy(platform, marketplace)
      platform.faults.add({ on: 'platform', kind })
      const begun = Date.now()
      const decision = await marketplace.refresh(B1)
      expect(Date.now() - begun).toBeLessThan(8_000)
      expect(decision).toMatchObject({ entitled: true, subscriptions: [{ pending: true }] })
    },
  )

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['256 characters', 'x'.repeat(256)],
    ['a control character', 'a\u0000b'],
    ['an object', {}],
    ['an array', ['b']],
    ['NaN', Number.NaN],
  ])('refuse an invalid identifier: %s', async (_what, odd) => {
    const { marketplace } = await createScene()
    await expect(marketplace.refresh(odd as string)).rejects.toMatchObject({ code: 'argument_invalid' })
    const tracked = marketplace.track({ subscription_uid: 's1', business_uid: odd as string })
    await expect(tracked).rejects.toMatchObject({ code: 'argument_invalid' })
    const other = marketplace.track({ subscription_uid: odd as string, business_uid: B1 })
    await expect(other).rejects.toMatchObject({ code: 'argument_invalid' })
  })
})

describe('right after an acknowledged delivery', () => {
  it('the answer waits for the read', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'read', kind: 'slow', ms: 300 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    platform.cancel(uid)
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })

  it.each(['isEntitled', 'explain', 'refresh'] as const)(
    '%s answers in time however often deliveries request a read',
    async (ask) => {
      const { platform, marketplace, deliver } = await createScene({
        freshness: { waitMs: 500 },
        platform: { timeoutMs: 200 },
      })
      const { uid } = await buy(platform, marketplace)
      platform.faults.add({ on: 'read', kind: 'slow', ms: 100 })
      const flood = { isOver: false }
      const deliveries = (async () => {
        while (!flood.isOver) await deliver(notice({ subscription_uid: uid }))
      })()
      await until('reads are under way', () => readsOf(platform, uid) > 2)
      const begun = Date.now()
      for (let i = 0; i < 3; i++) {
        const answer = await marketplace[ask](B1)
        expect(typeof answer === 'boolean' ? answer : answer.entitled).toBe(true)
      }
      expect(Date.now() - begun).toBeLessThan(10_000)
      flood.isOver = true
      await deliveries
    },
  )

  it('J4 a thousand callers wait for one read', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'read', kind: 'slow', ms: 100 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => marketplace.isEntitled(B1)))
    expect(new Set(answers)).toEqual(new Set([true]))
    expect(readsOf(platform, uid)).toBe(1)
  })

  it('it waits at most waitMs for a read that hangs, and is right later', async () => {
    const { platform, marketplace } = await createScene({
      freshness: { waitMs: 300 },
      platform: { timeoutMs: 2_500 },
    })
    const hanging = platform.faults.add({ on: 'read', kind: 'hang' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const begun = Date.now()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(Date.now() - begun).toBeGreaterThan(150)
    expect(Date.now() - begun).toBeLessThan(2_000)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'not_read_yet' })
    hanging.remove()
    await until('the read after its time limit', () => marketplace.isEntitled(B1))
  })

  it('a known business keeps its last answer while the read hangs', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 100 } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'hang' })
    platform.cancel(uid)
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('it does not wait for a read that has failed', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 30_000 } })
    platform.faults.add({ on: 'platform', kind: 'down' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const begun = Date.now()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(Date.now() - begun).toBeLessThan(5_000)
  })
})

describe('D20 a purchase that reads show only later', () => {
  it.each([
    ['the read', 'read', { kind: 'status', status: 200, body: { data: { subscriptions: [] } } }],
    ['the token', 'token', { kind: 'status', status: 401, body: { error: 'access_denied' } }],
  ] as const)(
    'is granted within waitMs when %s lags, and until then it is not known',
    async (_what, on, fault) => {
      const { platform, marketplace } = await createScene()
      const lag = platform.faults.add({ on, ...fault })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await platform.settled()
      const answer = marketplace.isEntitled(B1)
      await until('the first read', () => lag.strikes > 0)
      lag.remove()
      expect(await answer).toBe(true)
    },
  )

  it('is not known, rather than denied, when reads show it even later', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { waitMs: 100 } })
    const body = { data: { subscriptions: [] } }
    const lag = platform.faults.add({ on: 'read', kind: 'status', status: 200, body })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('a read', () => lag.strikes > 0)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'not_read_yet' })
    await until('the verifications have been made', async () => {
      jump(11 * 60_000)
      return (await marketplace.explain(B1)).reason === 'missing'
    })
    expect(await marketplace.explain(B1)).toMatchObject({ known: true, reason: 'missing' })
  })
})

it('D22 a subscription that moved to another business is repaired by track: one business loses it, the other gets it', async () => {
  let owner = B1
  const fetchAs: typeof fetch = async (input, init) => {
    const url = new URL(String(input))
    if (url.pathname === '/oauth/token')
      return Response.json({ access_token: url.searchParams.get('business_uid') })
    const isOwner = new Headers(init?.headers).get('authorization') === `Bearer ${owner}`
    const record = { uid: 's1', business_uid: owner, purchasable_uid: OUR_ITEM, purchase_state: 'purchased' }
    return Response.json({ data: { subscriptions: isOwner ? [record] : [] } })
  }
  const { marketplace } = await createScene({ platform: { fetch: fetchAs } })
  const handled: unknown[] = []
  marketplace.onPurchaseChange(({ business_uid, from, to, entitled }) => {
    handled.push([business_uid, from, to, entitled])
  })
  await marketplace.track({ subscription_uid: 's1', business_uid: B1 })
  await until('the one', () => marketplace.isEntitled(B1))
  owner = B2
  await marketplace.track({ subscription_uid: 's1', business_uid: B2 })
  await until('the other', () => marketplace.isEntitled(B2))
  expect(await marketplace.isEntitled(B1)).toBe(false)
  await until('both are handled', () => handled.length === 3)
  expect(handled).toEqual([
    [B1, null, 'purchased', true],
    [B1, 'purchased', null, false],
    [B2, null, 'purchased', true],
  ])
})

it('D22 naming another business for a subscription costs at most one read, and moves nothing', async () => {
  const { platform, marketplace } = await createScene()
  const { uid } = await buy(platform, marketplace)
  await marketplace.track({ subscription_uid: uid, business_uid: B2 })
  await until('it is read', () => readsOf(platform, uid) >= 2)
  expect([await marketplace.isEntitled(B1), await marketplace.isEntitled(B2)]).toEqual([true, false])
})

it('J21 a number is accepted as its text wherever an identifier is expected', async () => {
  const { platform, marketplace } = await createScene()
  const { uid } = await buy(platform, marketplace, '72')
  expect(await marketplace.isEntitled(72)).toBe(true)
  expect(await marketplace.explain(72)).toMatchObject({ business_uid: '72', entitled: true })
  expect(await marketplace.refresh(72)).toMatchObject({ entitled: true })
  await marketplace.track({ subscription_uid: uid, business_uid: 72 })
  for (const odd of [72.5, Number.NaN, 2 ** 60]) expect(await marketplace.isEntitled(odd)).toBe(false)
})

describe('while the platform is down', () => {
  it('the last answer stands up to maxStaleMs, then it is no, and yes again after a read', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { maxStaleMs: 72 * HOUR } })
    await buy(platform, marketplace)
    const outage = platform.faults.add({ on: 'platform', kind: 'down' })
    jump(71 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    jump(2 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({
      entitled: false,
      known: false,
      reason: 'stale',
      stale: true,
      subscriptions: [{ purchase_state: 'purchased' }],
    })
    outage.remove()
    // The first call may still meet a kept-alive connection that the outage has cut.
    await until('a good read', async () => (await marketplace.refresh(B1)).entitled)
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: true, stale: false })
  })

  it('an answer whose maxStaleMs is shorter than the reconcile is confirmed in time', async () => {
    const freshness = { maxStaleMs: 1_000, reconcileEveryMs: 30 * DAY }
    const { platform, marketplace } = await createScene({ freshness })
    const { uid } = await buy(platform, marketplace)
    const answers = new Set<boolean>()
    await until('it is read again and again', async () => {
      answers.add(await marketplace.isEntitled(B1))
      return readsOf(platform, uid) > 4
    })
    expect(answers).toEqual(new Set([true]))
  })

  it('a cached answer does not outlive maxStaleMs', async () => {
    const { platform, marketplace } = await createScene({ freshness: { maxStaleMs: 1_000 } })
    await buy(platform, marketplace)
    platform.faults.add({ on: 'platform', kind: 'down' })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    // Below the 5 s for which an answer is otherwise good.
    await until('no', async () => !(await marketplace.isEntitled(B1)), 4_000)
  })

  it.each([
    ['refuses connections', { kind: 'down' }],
    ['answers 500', { kind: 'status', status: 500 }],
    ['answers 429', { kind: 'status', status: 429, retryAfter: 1 }],
    ['shows a page with 200', { kind: 'html' }],
    ['answers half', { kind: 'truncate' }],
    [
      'refuses the app\u2019s credentials',
      { kind: 'status', status: 401, body: { error: 'invalid_client' } },
    ],
  ] as const)('it changes no answer that it %s', async (_what, fault) => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 100 } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'platform', ...fault })
    await deliver(notice({ subscription_uid: uid }))
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await until('a failed read', async () => (await marketplace.explain(B1)).subscriptions[0]?.failure)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.isEntitled(B2)).toBe(false)
  })
})

describe('D17 an uninstall', () => {
  const uninstalled = sampleDelivery('application/uninstalled', { business_id: B1, app_code_name: 'ours' })

  it('takes no access away alone', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const before = readsOf(platform, uid)
    await deliver(uninstalled)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(readsOf(platform, uid)).toBe(before + 1)
  })

  it('takes no access away alone, nor does the refusal of a token', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    expect(await marketplace.refresh(B1)).toMatchObject({
      entitled: true,
      subscriptions: [{ failure: 'token_refused' }],
    })
  })

  it.each(['before', 'after'])('takes access away together with a token refused %s it', async (order) => {
    const { platform, marketplace, deliver } = await createScene()
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ from, to, entitled }) => changes.push({ from, to, entitled }))
    await buy(platform, marketplace)
    if (order === 'after') await deliver(uninstalled)
    platform.refuseTokens(B1)
    if (order === 'before') await deliver(uninstalled)
    else await marketplace.refresh(B1)
    // The token in memory is tried first and found to have ended; the retry asks for another.
    await until('the revocation', async () => !(await marketplace.isEntitled(B1)))
    expect(await marketplace.explain(B1)).toMatchObject({ known: true, reason: 'revoked' })
    await until('the change', () => changes.length === 2)
    expect(changes[1]).toEqual({ from: 'purchased', to: null, entitled: false })

    platform.refuseTokens(B1, false)
    await deliver(sampleDelivery('application/installed', { business_id: B1, app_code_name: 'ours' }))
    await until('access again', () => marketplace.isEntitled(B1))
  })

  it.each([
    ['delivered out of order', '2024-05-01T10:00:00.000+02:00', '2024-05-01T08:59:59.000+01:00', false],
    ['followed by an install', '2024-05-01T10:00:00.000+02:00', '2024-05-01T09:00:01.000+01:00', true],
    ['at a zero date', '0001-01-01T00:00:00Z', '2024-05-01T09:00:00Z', false],
    ['followed by an install at a time that is none', '2024-05-01T10:00:00.000+02:00', 'soon', true],
    [
      'at a time without an offset, and an install before',
      '2024-05-01T10:00:00',
      '2024-05-01T09:00:00Z',
      false,
    ],
  ])('%s: the later of the two counts', async (_how, uninstall, install, stays) => {
    const { platform, marketplace, deliver } = await createScene()
    await buy(platform, marketplace)
    await deliver({ ...uninstalled, data: { ...uninstalled.data, event_time: uninstall } })
    const { data, ...wire } = sampleDelivery('application/installed', {
      business_id: B1,
      app_code_name: 'ours',
    })
    await deliver({ ...wire, data: { ...data, event_time: install } })
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    const { entitled, reason } = await marketplace.refresh(B1)
    expect([entitled, reason]).toEqual(stays ? [true, 'purchased'] : [false, 'revoked'])
  })

  it('of another app takes no access away even when a token is refused', async () => {
    const { platform, marketplace, deliver } = await createScene()
    await buy(platform, marketplace)
    await deliver({ ...uninstalled, data: { ...uninstalled.data, app_code_name: 'other' } })
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    expect(await marketplace.refresh(B1)).toMatchObject({ entitled: true })
  })

  it('on the platform ends access when the cancellation is lost', async () => {
    const { platform, marketplace } = await createScene()
    platform.install(B1)
    await buy(platform, marketplace)
    platform.faults.add({ on: 'delivery', kind: 'drop', event: 'purchasable_subscription/update' })
    platform.uninstall(B1)
    await platform.settled()
    await until('the end', async () => !(await marketplace.isEntitled(B1)))
  })
})

describe('J2 while the store is down', () => {
  it('a cached answer stands and is marked stale, until maxStaleMs; without a cached answer access is denied', async () => {
    const { clock, jump } = jumpingClock()
    const store = breakableStore(clock)
    const { platform, marketplace } = await createScene({
      clock,
      store: store.store,
      freshness: { maxStaleMs: 10 * HOUR },
    })
    await buy(platform, marketplace)
    store.isDown = true
    jump(1 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: true, stale: true })
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.explain(B2)).toMatchObject({ known: false, reason: 'store_unavailable' })
    jump(10 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'store_unavailable' })
    store.isDown = false
    expect(await marketplace.refresh(B1)).toMatchObject({ entitled: true, stale: false })
  })
})

describe('J8 any argument', () => {
  const hostile = {
    toString: explode,
    valueOf: explode,
    [Symbol.toPrimitive]: explode,
    get length() {
      return explode()
    },
  }
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const odd: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['true', true],
    ['a number', 4712],
    ['NaN', Number.NaN],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['a function', () => B1],
    ['an array with a good one', [B1]],
    ['a String object', Object(B1)],
    ['an object that throws', hostile],
    ['a revoked proxy', revoked.proxy],
    ['a promise', Promise.resolve(B1)],
    ['a good one with a NUL behind it', `${B1}\u0000`],
    ['a good one with a NUL and more', `${B1}\u0000x`],
    ['a good one with a space', ` ${B1}`],
    ['a lone surrogate', `${B1}\ud800`],
    ['a percent sign', '%'],
    ['SQL', `' or 1=1 --`],
    ['300 characters', 'x'.repeat(300)],
    ['a million characters', 'x'.repeat(1_000_000)],
    ['__proto__', '__proto__'],
  ]

  it('gives false, and nothing is thrown', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    for (const [what, argument] of odd) {
      expect([what, await marketplace.isEntitled(argument as string)]).toEqual([what, false])
      expect([what, (await marketplace.explain(argument as string)).entitled]).toEqual([what, false])
    }
  })
})

describe('J8 an argument that is not valid Unicode', () => {
  it('does not match the business whose name has U+FFFD in its place', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace, 'business-\ufffd')
    expect(await marketplace.isEntitled('business-\ud800')).toBe(false)
  })
})

describe('the explanation', () => {
  it('gives reason, evidence and age in words', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock })
    expect(await marketplace.explain(B1)).toEqual({
      business_uid: B1,
      entitled: false,
      entitledItems: [],
      known: true,
      reason: 'unknown_business',
      explanation: 'No event and no call has named a subscription of this business.',
      asOf: null,
      stale: false,
      subscriptions: [],
    })
    const { uid } = await buy(platform, marketplace)
    jump(3 * HOUR)
    const decision = await marketplace.explain(B1)
    expect(decision.explanation).toBe(
      `The app is purchased. Subscription ${uid}: purchased, confirmed 3 h ago.`,
    )
    expect(Date.parse(decision.asOf as string)).toBeLessThan(clock.now() - 2 * HOUR)
    platform.faults.add({ on: 'platform', kind: 'down' })
    const failing = await marketplace.refresh(B1)
    expect(failing.explanation).toMatch(/the last read failed \(platform_unreachable\)/)
    expect((await marketplace.explain('')).explanation).toBe(
      'The given value is not an identifier of a business.',
    )
  })

  it('lists the twenty most relevant subscriptions, however many are forged', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 0 } })
    const made = Array.from({ length: 200 }, (_, i) => notice({ subscription_uid: `made-up-${i}` }))
    await deliver(made)
    const { uid } = await buy(platform, marketplace)
    const { explanation, subscriptions } = await marketplace.explain(B1)
    expect(subscriptions).toHaveLength(201)
    expect(explanation).toMatch(
      new RegExp(`^The app is purchased. Subscription ${uid}: purchased, .*And 181 more.$`),
    )
  })
})

async function bringTo(
  state: string,
  platform: Simulator,
  marketplace: Marketplace,
): Promise<string | undefined> {
  if (state === 'none') return undefined
  const payment = state === 'suspended' ? 'failed' : 'succeeded'
  const { uid } = platform.purchase({ business_uid: B1, payment })
  await platform.settled()
  expect(await marketplace.isEntitled(B1)).toBe(payment === 'succeeded')
  return uid
}

function move(platform: Simulator, uid: string | undefined, row: (typeof TRANSITIONS)[number]) {
  switch (row.trigger) {
    case 'User purchases an app':
      return platform.purchase({
        business_uid: B1,
        payment: row.condition === 'Payment succeeded' ? 'succeeded' : 'failed',
      })
    case 'Payment confirmation received':
      return platform.confirmPayment(uid as string)
    case 'Payment issue received':
      return platform.paymentIssue(uid as string)
    case 'User cancels the app subscription':
      return platform.cancel(uid as string)
  }
}

async function buy(platform: Simulator, marketplace: Marketplace, business_uid = B1) {
  const subscription = platform.purchase({ business_uid, payment: 'succeeded' })
  await platform.settled()
  await until('the purchase', () => marketplace.isEntitled(business_uid))
  return subscription
}

function notice(data: Record<string, unknown>) {
  return sampleDelivery('purchasable_subscription/update', {
    business_id: B1,
    purchasable_uid: OUR_ITEM,
    ...data,
  })
}

function readsOf(platform: Simulator, uid: string): number {
  return platform.requests.filter((each) => each.endpoint === 'read' && each.subscription_uid === uid).length
}

/** A platform that issues every token and shows every business the same subscription. */
function answering(reply: unknown): typeof fetch {
  return async (input) =>
    Response.json(String(input).includes('/oauth/token') ? { access_token: 'a-token' } : reply)
}

/** A store in memory that fails on request. */
function breakableStore(clock: Clock) {
  const inner = createSqlStore(createSqliteEngine({ path: ':memory:', clock }))
  const control = { store: inner, isDown: false }
  control.store = new Proxy(inner, {
    get(target, name: keyof Store) {
      const method = target[name] as (...args: unknown[]) => unknown
      if (name === 'subscribe' || name === 'close' || name === 'open') return method
      return async (...args: unknown[]) => {
        if (control.isDown) throw new Error('the database is down')
        return method.apply(target, args)
      }
    },
  })
  return control
}

function silenced(method: 'emitWarning') {
  const spy = jest.spyOn(process, method).mockImplementation(() => {})
  onCleanUp(() => spy.mockRestore())
  return spy
}

function explode(): never {
  throw new Error('a hostile value')
}
