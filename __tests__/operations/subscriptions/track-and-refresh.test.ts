import { describe, expect, it } from '@jest/globals'
import { internals } from '../../support/internals.js'
import { answering, purchaseOf } from '../../support/platform/answering.js'
import { createScene } from '../../support/scene.js'
import { buy, notice } from '../../support/scenes/purchases.js'
import { B1, B2 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

describe('track and refresh', () => {
  it('find a subscription whose events were all lost', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.businesses.refresh(B1)).toMatchObject({ reason: 'unknown_business' })
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it('change nothing if track is repeated', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    await Promise.all(
      Array.from({ length: 20 }, () =>
        marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 }),
      ),
    )
    const { entitled, subscriptions } = await marketplace.businesses.refresh(B1)
    expect({ entitled, subscriptions: subscriptions.length }).toEqual({ entitled: true, subscriptions: 1 })
    expect(await marketplace.journal.list({ kind: 'change' })).toHaveLength(1)
  })

  it('D10 find the change of a lost event, and refresh returns it', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.businesses.refresh(B1)).toMatchObject({
      entitled: false,
      reason: 'not_purchased',
      subscriptions: [{ purchase_state: 'canceled', pending: false }],
    })
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })

  it('wait for all subscriptions of the business, not only for the first that was read', async () => {
    const second = gate()
    const uids: string[] = []
    let reads = 0
    const { platform, marketplace } = await createScene({
      freshness: { waitMs: 0 },
      platform: {
        async fetch(input, init) {
          const isRead = uids.some((uid) => String(input).includes(uid))
          if (isRead && ++reads === 2) await second.opened
          return fetch(input, init)
        },
      },
    })
    const bought = [await buy(platform, marketplace), await buy(platform, marketplace)]
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    for (const { uid } of bought) platform.cancel(uid)
    uids.push(...bought.map(({ uid }) => uid))
    let states: (string | null)[] | undefined
    const refreshed = marketplace.businesses.refresh(B1).then(({ subscriptions }) => {
      states = subscriptions.map(({ purchase_state }) => purchase_state)
    })
    await until('the first read has ended', () => reads === 2)
    // That end wakes the refresh before these calls are made.
    for (let i = 0; i < 3; i++) await marketplace.health()
    expect(states).toBeUndefined()
    second.open()
    await refreshed
    expect(states).toEqual(['canceled', 'canceled'])
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
    await until('the purchase is seen', () => marketplace.isEntitled(B1))
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    isFailing = true
    await deliver(notice({ subscription_uid: uid }))
    await until('the read that will fail has begun', () => failed === 1)
    const refreshed = marketplace.businesses.refresh(B1)
    // Commits are made in order: when this one has ended, so has the one of `refresh`.
    await marketplace.subscriptions.track({ subscriptionUid: 'another', businessUid: B2 })
    failing.fail(new TypeError('fetch failed'))
    expect(await refreshed).toMatchObject({ entitled: false, reason: 'not_purchased' })
  })

  it.each([
    ['is down', 'down', 20_000],
    ['hangs', 'hang', 200],
  ] as const)(
    'answer with the last known state within a limit if the platform %s',
    async (_what, kind, timeoutMs) => {
      const { platform, marketplace } = await createScene({ ...internals({ callTimeoutMs: timeoutMs }) })
      await buy(platform, marketplace)
      platform.faults.add({ on: 'platform', kind })
      const begun = Date.now()
      const decision = await marketplace.businesses.refresh(B1)
      expect(Date.now() - begun).toBeLessThan(8_000)
      expect(decision).toMatchObject({ entitled: true, subscriptions: [{ pending: true }] })
    },
  )
})

it('D22 track repairs a subscription that moved to another business: one business loses it, the other gets it', async () => {
  let owner = B1
  const platform = answering((uid, business) => (business === owner ? [purchaseOf(uid, owner)] : []))
  const { marketplace } = await createScene({ platform })
  const handled: unknown[] = []
  marketplace.onPurchaseChange(({ business_uid, from, to, entitled }) => {
    handled.push([business_uid, from, to, entitled])
  })
  await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: B1 })
  await until('the first business has access', () => marketplace.isEntitled(B1))
  owner = B2
  await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: B2 })
  await until('the other business has access', () => marketplace.isEntitled(B2))
  expect(await marketplace.isEntitled(B1)).toBe(false)
  await until('both changes are handled', () => handled.length === 3)
  expect(handled).toEqual([
    [B1, null, 'purchased', true],
    [B1, 'purchased', null, false],
    [B2, null, 'purchased', true],
  ])
})
