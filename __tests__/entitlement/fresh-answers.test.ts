import { describe, expect, it } from '@jest/globals'
import { internals } from '../support/internals.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { createScene } from '../support/scene.js'
import { buy, notice, readsOf } from '../support/scenes/purchases.js'
import { until } from '../support/until.js'

const B1 = 'business-one'

describe('directly after an acknowledged delivery', () => {
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

  it('isEntitled, explain and refresh answer in time however often deliveries request a read', async () => {
    const { platform, marketplace, deliver } = await createScene({
      freshness: { waitMs: 500 },
      ...internals({ callTimeoutMs: 200 }),
    })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 100 })
    const before = readsOf(platform, uid)
    const flood = { isOver: false }
    const deliveries = (async () => {
      while (!flood.isOver) await deliver(notice({ subscription_uid: uid }))
    })()
    await until('reads are under way', () => readsOf(platform, uid) > before)
    const begun = Date.now()
    for (let i = 0; i < 3; i++) {
      const [isEntitled, ...answers] = await Promise.all([
        marketplace.isEntitled(B1),
        marketplace.explain(B1),
        marketplace.businesses.refresh(B1),
      ])
      expect([isEntitled, ...answers.map(({ entitled }) => entitled)]).toEqual([true, true, true])
    }
    expect(Date.now() - begun).toBeLessThan(10_000)
    flood.isOver = true
    await deliveries
  })

  it('J4 a thousand callers wait for one read', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'read', kind: 'slow', ms: 100 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => marketplace.isEntitled(B1)))
    expect(new Set(answers)).toEqual(new Set([true]))
    expect(readsOf(platform, uid)).toBe(1)
  })

  it('it waits at most waitMs for a read that hangs, and is correct later', async () => {
    const { platform, marketplace } = await createScene({
      freshness: { waitMs: 300 },
      ...internals({ callTimeoutMs: 2_500 }),
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
    await until('the read ends at its time limit', () => marketplace.isEntitled(B1))
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
    'is granted within waitMs if %s lags, and is not known until then',
    async (_what, on, fault) => {
      const { platform, marketplace } = await createScene()
      const lag = platform.faults.add({ on, ...fault })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await platform.settled()
      const answer = marketplace.isEntitled(B1)
      await until('the first read has ended', () => lag.strikes > 0)
      lag.remove()
      expect(await answer).toBe(true)
    },
  )

  it('is not known, rather than denied, if reads show it even later', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { waitMs: 100 } })
    const body = { data: { subscriptions: [] } }
    const lag = platform.faults.add({ on: 'read', kind: 'status', status: 200, body })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('a read has ended', () => lag.strikes > 0)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'not_read_yet' })
    await until('the verifications have been made', async () => {
      jump(11 * 60_000)
      return (await marketplace.explain(B1)).reason === 'missing'
    })
    expect(await marketplace.explain(B1)).toMatchObject({ known: true, reason: 'missing' })
  })
})
