import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import type { Marketplace } from '../../../lib/index.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene } from '../../support/scene.js'
import { buy, notice, readsOf } from '../../support/scenes/purchases.js'
import { until } from '../../support/until.js'

const B1 = 'business-one'
const WAIT_MS = 1_500

describe.each([
  { perSecond: 5, readMs: 0 },
  { perSecond: 50, readMs: 0 },
  { perSecond: 3, readMs: 200 },
  { perSecond: 2, readMs: 600 },
])('J80 while a customer gets $perSecond events a second, and a read takes $readMs ms', (each) => {
  it('pages wait for waitMs in all, and see the end of the purchase', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: WAIT_MS } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: each.readMs })
    const flood = beginFlood(() => deliver(notice({ subscription_uid: uid })), each.perSecond)
    expect(await waitsOfPages(marketplace, 6 * SECOND)).toBeLessThan(2 * WAIT_MS)
    platform.paymentIssue(uid)
    const suspendedAt = performance.now()
    await until('the end is seen', async () => !(await marketplace.isEntitled(B1)))
    expect(performance.now() - suspendedAt).toBeLessThan(7 * SECOND)
    await flood.end()
  }, 30_000)
})

describe('J81 events of invented subscriptions name a customer, and the platform is slow', () => {
  it('delay the pages of the customer by waitMs in all, not for as long as they come', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: WAIT_MS } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 600 })
    const before = readsOf(platform, uid)
    const flood = beginFlood(() => deliver(notice({ subscription_uid: randomUUID() })), 5)
    expect(await waitsOfPages(marketplace, 6 * SECOND)).toBeLessThan(2 * WAIT_MS)
    expect(readsOf(platform, uid)).toBe(before)
    await flood.end()
  }, 30_000)
})

describe('J84 refresh() during a flood that adds a request during each read', () => {
  it('waits for its own request only', async () => {
    const { platform, marketplace, deliver } = await createScene({
      freshness: { waitMs: 500 },
      ...internals({ callTimeoutMs: 10_000 }),
    })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 200 })
    const flood = beginFlood(() => deliver(notice({ subscription_uid: uid })), 50)
    await until('a read is under way', () => readsOf(platform, uid) > 1)
    for (let i = 0; i < 2; i++) {
      const begun = performance.now()
      expect(await marketplace.businesses.refresh(B1)).toMatchObject({ entitled: true })
      expect(performance.now() - begun).toBeLessThan(7 * SECOND)
    }
    await flood.end()
  }, 40_000)
})

describe('J82 one event that ends a purchase follows a quiet time', () => {
  it('a page waits for the read that shows the end', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock })
    const { uid } = await buy(platform, marketplace)
    for (const quietMs of [0, 0, 3 * SECOND, 3_600 * SECOND]) {
      jump(quietMs)
      platform.paymentIssue(uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
      platform.confirmPayment(uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(true)
    }
  })
})

/** How long the pages of a customer waited in all: those that waited for more than the time of a query. */
async function waitsOfPages(marketplace: Pick<Marketplace, 'isEntitled'>, forMs: number): Promise<number> {
  const endAt = performance.now() + forMs
  let waitedMs = 0
  while (performance.now() < endAt) {
    const begun = performance.now()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    const took = performance.now() - begun
    if (took > 100) waitedMs += took
    await pause(100)
  }
  return waitedMs
}

/** Delivers on time, whether or not the delivery before has been answered. */
function beginFlood(send: () => Promise<unknown>, perSecond: number) {
  const sent: Promise<unknown>[] = []
  const timer = setInterval(() => sent.push(send().catch(() => {})), SECOND / perSecond).unref()
  return {
    async end() {
      clearInterval(timer)
      await Promise.all(sent)
    },
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
