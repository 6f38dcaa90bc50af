import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../lib/clock.js'
import { jumpingClock } from '../support/jumping-clock.js'
import { buy, notice, readsOf } from '../support/purchases.js'
import { createScene } from '../support/scene.js'
import { until } from '../support/until.js'

const B1 = 'business-one'

describe.each([5, 50])('J80 while a customer gets %d events a second', (perSecond) => {
  it('pages do not wait for reads that the flood puts off, and see the end of the purchase', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const flood = beginFlood(() => deliver(notice({ subscription_uid: uid })), perSecond)
    const waits: number[] = []
    const endAt = performance.now() + 7 * SECOND
    while (performance.now() < endAt) {
      const begun = performance.now()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      waits.push(performance.now() - begun)
      await pause(100)
    }
    platform.paymentIssue(uid)
    const suspendedAt = performance.now()
    await until('the end is seen', async () => !(await marketplace.isEntitled(B1)))
    expect(performance.now() - suspendedAt).toBeLessThan(7 * SECOND)
    await flood.end()
    // At the start of a cycle of five seconds the read is not put off yet. Then a page waits for the next event.
    waits.sort((a, b) => a - b)
    expect(waits.at(-1)).toBeLessThan(1.5 * SECOND)
    expect(waits[Math.floor(waits.length * 0.75)]).toBeLessThan(200)
  }, 30_000)
})

describe('J81 events of invented subscriptions name a customer, and the platform is slow', () => {
  it('delay the pages of the customer once, not for as long as they come', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 600 })
    const before = readsOf(platform, uid)
    const flood = beginFlood(() => deliver(notice({ subscription_uid: randomUUID() })), 5)
    await pause(3 * SECOND)
    for (let i = 0; i < 10; i++) {
      const begun = performance.now()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      expect(performance.now() - begun).toBeLessThan(500)
      await pause(100)
    }
    expect(readsOf(platform, uid)).toBe(before)
    await flood.end()
  }, 30_000)
})

describe('J84 refresh() during a flood that adds a request during each read', () => {
  it('waits for its own request only', async () => {
    const { platform, marketplace, deliver } = await createScene({ platform: { timeoutMs: 10_000 } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'read', kind: 'slow', ms: 200 })
    const flood = beginFlood(() => deliver(notice({ subscription_uid: uid })), 50)
    await until('a read is under way', () => readsOf(platform, uid) > 1)
    for (let i = 0; i < 2; i++) {
      const begun = performance.now()
      expect(await marketplace.refresh(B1)).toMatchObject({ entitled: true })
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

/** Delivers on time, whether or not the delivery before has been answered. */
function beginFlood(send: () => Promise<unknown>, perSecond: number) {
  const sent: Promise<unknown>[] = []
  const timer = setInterval(() => sent.push(send()), SECOND / perSecond)
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
