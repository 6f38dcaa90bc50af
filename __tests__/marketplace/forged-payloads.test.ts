import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { createScene } from '../support/scene.js'
import { buy, notice, readsOf } from '../support/scenes/purchases.js'
import { B1, B2 } from '../support/settings.js'
import { until } from '../support/until.js'

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
})

describe('a forged payload', () => {
  it('causes at most four reads a second, if it is a flood of one notice', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const before = readsOf(platform, uid)
    const begun = Date.now()
    for (let i = 0; i < 100; i++) await deliver(notice({ subscription_uid: uid }))
    await until(
      'the last read has begun',
      async () => !(await marketplace.explain(B1)).subscriptions[0]?.pending,
    )
    // One at once, and one more for each 250 ms in which others arrived.
    expect(readsOf(platform, uid) - before).toBeLessThanOrEqual(2 + (Date.now() - begun) / 250)
  })

  it('causes at most four reads a second before the first record, however short visitors wait', async () => {
    const { platform, deliver } = await createScene({ freshness: { waitMs: 100 } })
    platform.addBusiness(B1)
    const begun = Date.now()
    for (let i = 0; i < 7; i++) {
      await deliver(notice({ subscription_uid: 'made-up' }))
      await setTimeout(400)
    }
    const reads = readsOf(platform, 'made-up')
    expect(reads).toBeGreaterThan(5)
    expect(reads).toBeLessThanOrEqual(2 + (Date.now() - begun) / 250)
  })

  it.each(['extraRecords', 'wrongRecord'] as const)(
    'D13 never replaces a record, which is found only by its uid: %s',
    async (kind) => {
      const { platform, marketplace } = await createScene()
      platform.purchase({ business_uid: B1, payment: 'failed' })
      const other = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      platform.mainSubscription({ business_uid: B1 })
      await platform.settled()
      const states = async () =>
        (await marketplace.businesses.refresh(B1)).subscriptions.map((each) => each.purchase_state)
      expect(await states()).toEqual(['suspended', 'purchased'])
      // The other record is newer, and comes first.
      platform.touch(other.uid)
      platform.faults.add({ on: 'read', kind })
      expect(await states()).toEqual(['suspended', 'purchased'])
    },
  )

  it('never moves a subscription that has been read, if it is a notice of another business', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.addBusiness(B2)
    await deliver(notice({ subscription_uid: uid, business_id: B2 }))
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('never takes over a subscription that waits for its first read, if it is a notice of another business', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 0 } })
    platform.addBusiness(B2)
    const outage = platform.faults.add({ on: 'read', kind: 'status', status: 503 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('the first try has failed', () => readsOf(platform, uid) > 0)
    await deliver(notice({ subscription_uid: uid, business_id: B2 }))
    outage.remove()
    await until('the purchase is seen', () => marketplace.isEntitled(B1))
    expect(await marketplace.isEntitled(B2)).toBe(false)
  })
})
