import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import type { Marketplace } from '../../../lib/index.js'
import { internals } from '../../support/internals.js'
import { createScene } from '../../support/scene.js'
import { buy, notice, readsOf } from '../../support/scenes/purchases.js'
import { B1 } from '../../support/settings.js'
import { until } from '../../support/until.js'

const WAIT_MS = 1_500

/** Longer than pages may wait in all. */
const FLOOD_MS = 4 * SECOND

describe('J80 while a customer gets 2 to 50 events a second, and a read takes up to 600 ms', () => {
  it('pages wait for waitMs in all, and see the end of the purchase', async () => {
    const floods = [
      { perSecond: 5, readMs: 0 },
      { perSecond: 50, readMs: 0 },
      { perSecond: 3, readMs: 200 },
      { perSecond: 2, readMs: 600 },
    ]
    // They mostly wait, so they run at once, each with an app and a platform of its own.
    const waits = await Promise.all(
      floods.map(async ({ perSecond, readMs }) => {
        const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: WAIT_MS } })
        const { uid } = await buy(platform, marketplace)
        platform.faults.add({ on: 'read', kind: 'slow', ms: readMs })
        const flood = beginFlood(() => deliver(notice({ subscription_uid: uid })), perSecond)
        const waitedMs = await waitsOfPages(marketplace, FLOOD_MS)
        platform.paymentIssue(uid)
        const suspendedAt = performance.now()
        await until('the end is seen', async () => !(await marketplace.isEntitled(B1)))
        const seenAfterMs = performance.now() - suspendedAt
        await flood.end()
        return { waitedMs, seenAfterMs }
      }),
    )
    expect(Math.max(...waits.map(({ waitedMs }) => waitedMs))).toBeLessThan(2 * WAIT_MS)
    expect(Math.max(...waits.map(({ seenAfterMs }) => seenAfterMs))).toBeLessThan(7 * SECOND)
  })
})

describe('J81 events of invented subscriptions name a customer, and the platform is slow', () => {
  it('delay the pages of the customer by waitMs in all, not for as long as they come', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: WAIT_MS } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 600 })
    const before = readsOf(platform, uid)
    const flood = beginFlood(() => deliver(notice({ subscription_uid: randomUUID() })), 5)
    expect(await waitsOfPages(marketplace, FLOOD_MS)).toBeLessThan(2 * WAIT_MS)
    expect(readsOf(platform, uid)).toBe(before)
    await flood.end()
  })
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
  })
})

describe('J82 one event that ends a purchase follows a quiet time', () => {
  it('a page waits for the read that shows the end', async () => {
    const { platform, marketplace, jump } = await createScene()
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
