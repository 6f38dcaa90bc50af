import { describe, expect, it } from '@jest/globals'
import type { Request } from 'express'
import { HOUR } from '../../lib/base/clock.js'
import type { Marketplace } from '../../lib/index.js'
import type { Simulator } from '../../lib/testing/index.js'
import { TRANSITIONS } from '../../lib/testing/transitions.js'
import { createScene } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { B1, B2 } from '../support/settings.js'
import { until } from '../support/until.js'

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
    await marketplace.businesses.refresh(B1)
    expect(await marketplace.explain(B1)).toMatchObject({ subscriptions: [{ purchase_state: 'canceled' }] })
    platform.set(uid, { purchase_state: 'purchased' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await until('all changes are handled', () => changes.length === 3)
    expect(changes).toEqual([
      [null, 'purchased'],
      ['purchased', 'canceled'],
      ['canceled', 'purchased'],
    ])
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
    await until('the second business gets the report', async () => (await status(B2)) === 200)
  })
})

describe('several subscriptions of one business', () => {
  it.each(['the canceled one first', 'the purchased one first'])(
    'D15 give access if one is purchased, %s',
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

  it('never give access to another business', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    platform.purchase({ business_uid: B2, payment: 'failed' })
    await platform.settled()
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.isEntitled('business')).toBe(false)
    expect(await marketplace.isEntitled(B1.toUpperCase())).toBe(false)
  })
})

describe('the explanation', () => {
  it('gives reason, evidence and age in a sentence', async () => {
    const { platform, marketplace, clock, jump } = await createScene()
    expect(await marketplace.explain(B1)).toEqual({
      business_uid: B1,
      entitled: false,
      entitledItems: [],
      known: true,
      reason: 'unknown_business',
      explanation: 'No subscription of this business is stored.',
      accessUntil: null,
      asOf: null,
      stale: false,
      subscriptions: [],
    })
    const { uid } = await buy(platform, marketplace)
    jump(3 * HOUR)
    const decision = await marketplace.explain(B1)
    expect(decision.explanation).toBe(
      `A subscription gives access. Subscription ${uid}: purchased, confirmed 3 h ago.`,
    )
    expect(Date.parse(decision.asOf as string)).toBeLessThan(clock.now() - 2 * HOUR)
    platform.faults.add({ on: 'platform', kind: 'down' })
    const failing = await marketplace.businesses.refresh(B1)
    expect(failing.explanation).toMatch(/the last read failed: the platform cannot be reached/)
    expect((await marketplace.explain('')).explanation).toBe(
      'The given value is not an identifier of a business.',
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
