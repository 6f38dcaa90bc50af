import { describe, expect, it } from '@jest/globals'
import { type Clock, SECOND, systemClock } from '../../../lib/base/clock.js'
import type { Marketplace, PurchaseChange } from '../../../lib/index.js'
import { storeFor } from '../../../lib/store-option.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { readsOf } from '../../support/scenes/purchases.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('%s', (name) => {
  const engine = useEngine(name)

  describe('D1 the same delivery a thousand times at once', () => {
    it('costs at most two reads', async () => {
      const reads = holdableReads()
      const store = storeFor(await engine.freshAddress(), systemClock)
      const { platform, marketplace, deliver } = await createScene({
        store: storeOption(store),
        platform: { fetch: reads.fetch },
        ...internals({ callTimeoutMs: 120_000 }),
        freshness: { waitMs: 0 },
      })
      platform.faults.add({ on: 'delivery', kind: 'drop' })
      const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      // All at once: no delivery may have to wait for the read of another.
      reads.hold()
      // On a busy machine some are accepted late, and sent again.
      const accepted = async () => {
        for (;;) {
          const reply = await deliver(noticeOf(uid)).catch(() => undefined)
          if (reply && reply.status !== 503) return reply
        }
      }
      const replies = await Promise.all(Array.from({ length: 1_000 }, accepted))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set(replies.map(({ id }) => id)).size).toBe(1_000)
      await until('the first read has begun', () => reads.held() === 1)
      reads.release()
      await until('the next read is not due for seconds', async () => {
        const [row] = await store.subscriptionsOf(B1)
        return row && !row.pending && Number(row.refreshAt) > Date.now() + 2 * SECOND
      })
      expect(await marketplace.isEntitled(B1)).toBe(true)
      expect(readsOf(platform, uid)).toBeGreaterThan(0)
      expect(readsOf(platform, uid)).toBeLessThanOrEqual(2)
    }, 120_000)
  })

  describe('an event that arrives while its subscription is being read', () => {
    it('D2 causes one more read if it arrives before the reply', async () => {
      const reads = holdableReads()
      const { platform, marketplace, uid, seen } = await purchased({ platform: { fetch: reads.fetch } })
      const before = readsOf(platform, uid)
      reads.hold()
      platform.paymentIssue(uid)
      await until('the reply with suspended has come', () => reads.held() === 1)
      platform.confirmPayment(uid)
      await platform.settled()
      reads.release()
      await until('both changes are handled', () => seen.length === 3)
      expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
      expect(readsOf(platform, uid) - before).toBe(2)
      expect(await marketplace.isEntitled(B1)).toBe(true)
    })

    it('D3 causes one more read if it arrives between the reply and its commit', async () => {
      const commit = gate()
      let isHolding = false
      let arrived = 0
      const store = wrapStore(storeFor(await engine.freshAddress(), systemClock), async (name, call) => {
        if (name === 'finishRead' && isHolding && ++arrived === 1) await commit.opened
        return call()
      })
      const { platform, marketplace, uid, seen } = await purchased({ store: storeOption(store) })
      const before = readsOf(platform, uid)
      isHolding = true
      platform.paymentIssue(uid)
      await until('the reply has come', () => arrived === 1)
      platform.confirmPayment(uid)
      await platform.settled()
      commit.open()
      await until('both changes are handled', () => seen.length === 3)
      expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
      expect(readsOf(platform, uid) - before).toBe(2)
      expect(await marketplace.isEntitled(B1)).toBe(true)
    })
  })

  describe('D4 purchased, suspended and purchased again in identical bodies', () => {
    it('is delivered as one change for each state that was read', async () => {
      const { platform, marketplace, uid, seen } = await purchased()
      platform.paymentIssue(uid)
      await until('suspended is handled', () => seen.length === 2)
      platform.confirmPayment(uid)
      await until('purchased is handled again', () => seen.length === 3)
      const [, first, second] = platform.deliveries
      expect(first?.body).toBe(second?.body)
      await nothingPending(marketplace)
      expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
      expect(await marketplace.isEntitled(B1)).toBe(true)
    })

    it('ends in the state of the platform if both came before a read', async () => {
      const { platform, marketplace, uid, seen, deliver } = await purchased()
      platform.faults.add({ on: 'delivery', kind: 'drop' })
      platform.paymentIssue(uid)
      platform.confirmPayment(uid)
      platform.paymentIssue(uid)
      await Promise.all([1, 2, 3].map(() => deliver(noticeOf(uid))))
      await until('the end is handled', () => seen.length === 2)
      await nothingPending(marketplace)
      expect(seen).toEqual(['purchased', 'suspended'])
      expect(await marketplace.isEntitled(B1)).toBe(false)
    })
  })

  describe('D5 the events of a subscription', () => {
    it('lead to the same answer in any order of arrival', async () => {
      const { platform, marketplace, deliver } = await createScene({ store: await engine.freshAddress() })
      platform.faults.add({ on: 'delivery', kind: 'drop' })
      const orders = permutations([0, 1, 2, 3])
      const businesses = orders.map((_order, at) => `business-${at}`)
      for (const [at, business_uid] of businesses.entries()) {
        platform.install(business_uid)
        const { uid } = platform.purchase({ business_uid, payment: 'failed' })
        platform.confirmPayment(uid)
        // Half of them end as suspended, so one answer for all of them would be wrong.
        if (at % 2 === 1) platform.paymentIssue(uid)
        else platform.touch(uid)
      }
      await platform.settled()
      for (const [at, order] of orders.entries()) {
        const sent = platform.deliveries.filter((each) => each.business_uid === businesses[at])
        const events = [
          'application/installed',
          'purchasable_subscription/create',
          'purchasable_subscription/update',
        ]
        const bodies = events.map((event) => sent.find((each) => each.event === event)?.body)
        bodies.push(bodies[2])
        for (const next of order) expect((await deliver(bodies[next])).status).toBe(200)
      }
      const answers = await Promise.all(businesses.map((each) => marketplace.isEntitled(each)))
      expect(answers).toEqual(businesses.map((_business, at) => at % 2 === 0))
    })
  })

  describe('D6 a slow read that a newer one on another instance has overtaken', () => {
    it.each(['reply', 'renewal'] as const)('changes nothing if its %s comes first', async (first) => {
      const platform = await startPlatform()
      const store = storeFor(await engine.freshAddress(), systemClock)
      const reads = holdableReads()
      const { clock, freeze, thaw } = freezableClock()
      const finished: unknown[] = []
      const slow = openMarketplace(platform, {
        store: storeOption(
          wrapStore(store, (name, call) => {
            const result = call()
            if (name === 'finishRead') result.then((isHeld) => finished.push(isHeld))
            return result
          }),
        ),
        clock,
        platform: { fetch: reads.fetch },
        ...internals({ pollMs: 50, leaseMs: 1_000, callTimeoutMs: 60_000 }),
      })
      const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      reads.hold()
      await slow.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
      await until('the slow read has begun', () => reads.held() === 1)
      freeze()

      platform.paymentIssue(uid)
      const quick = openMarketplace(platform, {
        store: storeOption(store),
        ...internals({ pollMs: 50, leaseMs: 60_000 }),
      })
      const newer = await until('the newer read is written', async () => {
        const [row] = await store.subscriptionsOf(B1)
        return row?.state === 'suspended' && row
      })

      // Its date is later than the newer read's, so only the lost lease can reject it.
      const late = (text: string) =>
        text.replace(/"updated_at":"[^"]*"/g, '"updated_at":"2999-01-01T00:00:00.000Z"')
      if (first === 'renewal') thaw()
      else reads.release(late)
      await until('the slow read has ended', () => finished.length > 0)
      if (first === 'renewal') reads.release(late)
      else thaw()
      expect(finished).toEqual([false])
      const [row] = await store.subscriptionsOf(B1)
      expect(row).toMatchObject({ state: 'suspended', record: { updated_at: newer.record?.updated_at } })
      const changes = await quick.journal.list({ kind: 'change' })
      expect(changes.map(({ payload }) => (payload as PurchaseChange).to)).toEqual(['suspended'])
      expect(await quick.isEntitled(B1)).toBe(false)
    })
  })

  /** A scene in which a business has bought. `seen` has the states of the changes delivered so far. */
  async function purchased(options: Parameters<typeof createScene>[0] = {}) {
    const scene = await createScene({
      store: await engine.freshAddress(),
      freshness: { waitMs: 0 },
      ...options,
    })
    const { platform, marketplace } = scene
    const seen: (string | null)[] = []
    marketplace.onPurchaseChange(({ to }) => void seen.push(to))
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is handled', () => seen.length === 1)
    await nothingPending(marketplace)
    return { ...scene, uid, seen }
  }
})

async function nothingPending(marketplace: Marketplace) {
  await until('no entry is pending', async () => {
    const { subscriptions } = await marketplace.explain(B1)
    return subscriptions.length > 0 && subscriptions.every(({ pending }) => !pending)
  })
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, at) =>
    permutations(items.filter((_other, other) => other !== at)).map((rest) => [item, ...rest]),
  )
}

/** The built-in fetch. While it holds, the replies of reads have come but are not passed on. */
function holdableReads() {
  let isHolding = false
  const held: ((change: (text: string) => string) => void)[] = []
  return {
    fetch: (async (input, init) => {
      const response = await fetch(input, init)
      if (!isHolding || !String(input).includes('/subscriptions?')) return response
      const text = await response.text()
      const { opened, open } = gate<(text: string) => string>()
      held.push(open)
      return new Response((await opened)(text), { status: response.status })
    }) satisfies typeof fetch,
    hold() {
      isHolding = true
    },
    held: () => held.length,
    /** Passes the held reply on, unchanged or changed, and stops holding. */
    release(change = (text: string) => text) {
      isHolding = false
      for (const open of held) open(change)
    },
  }
}

/** The system's clock. While it is frozen no timer fires, as in a stopped process; afterwards all due timers fire. */
function freezableClock() {
  let isFrozen = false
  const late = new Map<object, () => void>()
  const clock: Clock = {
    now: systemClock.now,
    monotonic: systemClock.monotonic,
    setTimeout(callback, delayMs) {
      const handle: { timer?: unknown } = {}
      const fire = () => void (isFrozen ? late.set(handle, callback) : callback())
      handle.timer = systemClock.setTimeout(fire, delayMs)
      return handle
    },
    clearTimeout(handle) {
      late.delete(handle as object)
      systemClock.clearTimeout((handle as { timer?: unknown } | undefined)?.timer)
    },
  }
  return {
    clock,
    freeze() {
      isFrozen = true
    },
    thaw() {
      isFrozen = false
      for (const [handle, callback] of late) {
        late.delete(handle)
        callback()
      }
    },
  }
}
