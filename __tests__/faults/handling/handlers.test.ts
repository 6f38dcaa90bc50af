import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Marketplace, PurchaseChange } from '../../../lib/index.js'
import type { Store } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { eventOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { openMarketplace, startPlatform } from '../../support/scene.js'
import { bringAbout, pendingChanges } from '../../support/scenes/changes.js'
import { track } from '../../support/scenes/purchases.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('%s', (name) => {
  const engine = useEngine(name)

  describe('H5 a process that ends after a side effect, but before it has recorded the result', () => {
    it('is followed by one that calls the handler again, with the same id', async () => {
      const platform = await startPlatform()
      const store = storeFor(await engine.freshAddress(), systemClock)
      const mails: { id: string; attempt: number; by: string }[] = []
      let isDead = false
      const first = openMarketplace(platform, {
        store: storeOption(endingBeforeNoted(store, () => isDead)),
        ...internals({ pollMs: 50, leaseMs: 1_000 }),
      })
      first.onPurchaseChange(({ id }, { attempt }) => {
        isDead = true
        mails.push({ id, attempt, by: 'first' })
      })
      await track(platform, first)
      await until('the side effect has happened', () => mails.length === 1)

      const second = openMarketplace(platform, {
        store: storeOption(store),
        ...internals({ pollMs: 50, leaseMs: 1_000 }),
      })
      second.onPurchaseChange(({ id }, { attempt }) => void mails.push({ id, attempt, by: 'second' }))
      await until('the result is recorded', async () => (await pendingChanges(second)) === 0)
      const { id } = mails[0] as { id: string }
      expect(mails).toEqual([
        { id, attempt: 1, by: 'first' },
        // The process may have ended for another reason: only tries that ran alone count.
        { id, attempt: 1, by: 'second' },
      ])
      expect(await second.journal.list({ kind: 'change' })).toMatchObject([
        { id, status: 'done', attempts: 1 },
      ])
    })
  })

  describe('H6 the changes of one subscription', () => {
    it('are delivered in order and never two at once, by two instances on one store', async () => {
      const platform = await startPlatform()
      const store = storeFor(await engine.freshAddress(), systemClock)
      const marketplaces = [1, 2].map(() =>
        openMarketplace(platform, {
          store: storeOption(store),
          handlers: { concurrency: 2, retryDelaysMs: [10, 10] },
          ...internals({ pollMs: 20 }),
        }),
      )
      const [reader] = marketplaces as [Marketplace]
      const states = ['purchased', 'suspended', 'purchased', 'suspended', 'purchased', 'canceled']
      const businesses = ['b1', 'b2', 'b3', 'b4']
      await Promise.all(businesses.map((business) => bringAbout(platform, reader, states, business)))

      const running = new Set<string>()
      const overlaps: string[] = []
      const handled = new Map<string, (string | null)[]>()
      const takers = new Set<number>()
      // Each instance takes two of the four, and waits until the other has taken its own, so both take part.
      const bothTake = gate()
      for (const [taker, marketplace] of marketplaces.entries()) {
        marketplace.onPurchaseChange(async ({ business_uid, to }: PurchaseChange, { attempt }) => {
          takers.add(taker)
          if (takers.size === 2) bothTake.open()
          if (running.has(business_uid)) overlaps.push(`${business_uid} ${to}`)
          running.add(business_uid)
          await bothTake.opened
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
          running.delete(business_uid)
          // A failing change holds back the changes after it, for every claimer.
          if (business_uid === 'b2' && to === 'suspended' && attempt === 1) throw new Error('not yet')
          handled.set(business_uid, [...(handled.get(business_uid) ?? []), to])
        })
      }
      await until('all changes are handled', async () => (await pendingChanges(reader)) === 0)
      expect(overlaps).toEqual([])
      expect(Object.fromEntries(handled)).toEqual(
        Object.fromEntries(businesses.map((each) => [each, states])),
      )
    })
  })

  it('H37 an entry whose lease ends, while the store is asked whether it is still held, is not handled under that lease', async () => {
    const platform = await startPlatform()
    const leaseMs = 1_000
    const inner = storeFor(await engine.freshAddress(), systemClock)
    let notify: Parameters<Store['subscribe']>[0] = () => {}
    const claimedAt = new Map<string, number>()
    const marketplace = openMarketplace(platform, {
      ...internals({ leaseMs }),
      store: storeOption({
        ...inner,
        subscribe(listener) {
          notify = listener
          return inner.subscribe(listener)
        },
        async claimLanes(options) {
          const at = performance.now()
          const lanes = await inner.claimLanes(options)
          for (const { entries } of lanes) for (const { id } of entries) claimedAt.set(id, at)
          return lanes
        },
        // The connection is lost, and its deadline is longer than the lease.
        async renewLane() {
          await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs))
          throw new MarketplaceError('store_unavailable', 'Cannot use the store: no answer')
        },
      }),
    })
    const agesOfLease: number[] = []
    marketplace.onAny(({ id }) => {
      agesOfLease.push(performance.now() - (claimedAt.get(id) ?? 0))
      // As after the loss of a connection for notifications: any business may have been erased.
      if (agesOfLease.length === 1) notify({ kind: 'decided', businessUid: null, superseded: false })
    })
    await marketplace.start()
    await inner.accept([eventOf('s1'), eventOf('s1')])
    await until('both are handled', () => agesOfLease.length === 2)
    expect(Math.max(...agesOfLease)).toBeLessThan(leaseMs)
  })
})

/** The store of a process that ended before its result was written: none of its later calls reaches the database. */
function endingBeforeNoted(store: Store, isDead: () => boolean): Store {
  const never = new Promise<never>(() => {})
  return {
    ...store,
    finishLanes: (finishes) => (isDead() ? never : store.finishLanes(finishes)),
    renewLane: (lane, leaseMs) => (isDead() ? never : store.renewLane(lane, leaseMs)),
    claimLanes: async (options) => (isDead() ? [] : store.claimLanes(options)),
    claimReads: async (options) => (isDead() ? [] : store.claimReads(options)),
  }
}
