import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { ownerOf } from '../../../lib/store/ownership.js'
import { known } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOf } from '../../support/engines/open-store.js'
import { itWhereShared } from '../../support/engines/sharing.js'
import { notice } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, deliver, openMarketplace, serve, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

const OURS = { clientId: 'our-app', baseUrl: 'https://platform.test/v1', adopt: false }

describe.each(ENGINE_NAMES)('K20 a database on %s', (name) => {
  const engine = useEngine(name)

  it('that another app has read subscriptions into is refused with the next step', async () => {
    const address = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store: address })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the subscription is read', () => marketplace.isEntitled('b1'))

    // Some SQLite libraries can share a file, others cannot.
    if (name === 'SQLite') await marketplace.close()
    const other = openMarketplace(platform, { store: address, app: { clientId: 'other-app' } })
    const error = await other.start().catch((reason) => reason)
    expect(error).toMatchObject({ code: 'store_of_another_app', status: 500, retryable: false })
    expect(error.message).toMatch(/other-app at http:\/\/127\.0\.0\.1:\d+\..*of its own.*adoptStore: true/)
    // The two stores are independent.
    const target = other.webhooks.targetUrl(`${await serve(express().use('/hooks', other.router))}/hooks`)
    expect((await deliver(target, notice('b1', 'made-up'))).status).toBe(503)
    expect(await other.isEntitled('b1')).toBe(false)
    expect(await other.health()).toMatchObject({
      status: 'failing',
      problems: [{ code: 'store_not_open', message: error.message }],
    })
    await expect(other.journal.list()).rejects.toMatchObject({ code: 'store_of_another_app' })
    await other.close()
    const again = name === 'SQLite' ? openMarketplace(platform, { store: address }) : marketplace
    expect(await again.isEntitled('b1')).toBe(true)
    expect((await again.health()).status).toBe('ok')
    expect(
      (await again.journal.list()).filter(({ subscription_uid }) => subscription_uid === 'made-up'),
    ).toEqual([])
  })

  it('is taken over by adoptStore, once, and from then on the other app is refused', async () => {
    const address = await engine.freshAddress()
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const before = openMarketplace(platform, { store: address })
    await before.subscriptions.track({ subscriptionUid: uid, businessUid: 'b1' })
    await until('the subscription is read', () => before.isEntitled('b1'))
    await before.close()

    const moved = { store: address, platform: { baseUrl: 'https://moved.test' } }
    await expect(openMarketplace(platform, moved).start()).rejects.toMatchObject({
      code: 'store_of_another_app',
    })
    const logged: unknown[] = []
    const logger = { warn: ({ code }: { code?: unknown }) => logged.push(code), error() {} }
    const adopting = openMarketplace(platform, { ...moved, adoptStore: true, logger })
    await adopting.start()
    expect(logged).toEqual(['store_adopted'])
    expect(await adopting.isEntitled('b1')).toBe(true)
    await adopting.close()
    const after = openMarketplace(platform, moved)
    await after.start()
    await after.close()
    await expect(openMarketplace(platform, { store: address }).start()).rejects.toMatchObject({
      code: 'store_of_another_app',
    })
  })

  it('with only failed reads is taken over silently, so a restart can correct a wrong base URL', async () => {
    const address = await engine.freshAddress()
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const wrong = openMarketplace(platform, { store: address, platform: { baseUrl: 'http://127.0.0.1:1' } })
    await wrong.subscriptions.track({ subscriptionUid: uid, businessUid: 'b1' })
    await until('the read was tried', async () => (await wrong.explain('b1')).subscriptions[0]?.failure)
    await wrong.close()
    const right = openMarketplace(platform, { store: address })
    await right.businesses.refresh('b1')
    await until('the subscription is read', () => right.isEntitled('b1'))
  })

  it('that another app opened first is refused, even before the first read', async () => {
    const address = await engine.freshAddress()
    const platform = await startPlatform()
    const first = openMarketplace(platform, { store: address })
    await first.start()
    if (name === 'SQLite') await first.close()
    const other = openMarketplace(platform, { store: address, app: { clientId: 'other-app' } })
    await expect(other.start()).rejects.toMatchObject({ code: 'store_of_another_app' })
  })

  itWhereShared(name)(
    'belongs to one app even if two open it at once',
    async () => {
      for (let round = 0; round < 5; round++) {
        const address = await engine.freshAddress()
        const apps = ['one', 'two'].map((clientId) => ownerOf({ ...OURS, clientId }))
        const stores = apps.map(() => storeOf(address))
        const opened = await Promise.allSettled(stores.map((store, i) => store.open(apps[i])))
        expect(opened.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
        expect(opened.find(({ status }) => status === 'rejected')).toMatchObject({
          reason: { code: 'store_of_another_app' },
        })
        for (const store of stores) await store.close()
      }
    },
    60_000,
  )

  itWhereShared(name)(
    'that another app has adopted is left alone within a second by its former app',
    async () => {
      const address = await engine.freshAddress()
      const { clock, jump } = jumpingClock()
      const [before, after] = [storeOf(address, clock), storeOf(address)]
      await before.open(ownerOf(OURS))
      await known(before, 's1', 'purchased', 'b1')
      await after.open(ownerOf({ ...OURS, clientId: 'new-app', adopt: true }))
      jump(1_001)
      await expect(before.subscriptionsOf('b1')).rejects.toMatchObject({ code: 'store_of_another_app' })
      await expect(known(before, 's1', 'purchased', 'b1')).rejects.toMatchObject({
        code: 'store_of_another_app',
      })
      expect(await before.problem()).toMatch(/another app/)
      const topics = { topics: ['change'], rescueMs: 0, retireMs: 60_000 }
      const calls: (() => Promise<unknown>)[] = [
        () => before.listEntries({}),
        () => before.getEntry('e1'),
        () => before.listSubscriptions({ limit: 10 }),
        () => before.timelineOf('b1', { limit: 10 }),
        () => before.handleTopics(topics),
        () => before.accept([]),
        () => before.claimLanes({ limit: 1, entryLimit: 1, leaseMs: 1, topics: ['change'], exceptKeys: [] }),
        () => before.counts(),
        () => before.backup('/nowhere/backup.db'),
      ]
      for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'store_of_another_app' })
      expect(await after.subscriptionsOf('b1')).toHaveLength(1)
    },
    60_000,
  )

  it('holds no secret and no name of its app', async () => {
    const one = ownerOf(OURS)
    expect(one.fingerprint).toMatch(/^[0-9a-f]{64}$/)
    // Another path on the same platform means the same platform.
    expect(ownerOf({ ...OURS, baseUrl: 'https://platform.test/v2/' }).fingerprint).toBe(one.fingerprint)
    expect(ownerOf({ ...OURS, baseUrl: 'https://other.test/v1' }).fingerprint).not.toBe(one.fingerprint)
  })
})
