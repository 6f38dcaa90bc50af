import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { PurchaseChange } from '../lib/index.js'
import { bringAbout, pendingChanges } from './support/changes.js'
import { temporaryFolder } from './support/clean-up.js'
import { internals } from './support/internals.js'
import { createScene, openMarketplace, startPlatform } from './support/scene.js'
import { until } from './support/until.js'

const B1 = 'business-one'

const QUICK = { handlers: { retryDelaysMs: [10, 10, 10] }, ...internals({ pollMs: 50 }) }

describe('every change', () => {
  it('reaches every handler with its full description', async () => {
    const { platform, marketplace } = await createScene()
    const [first, second]: [PurchaseChange[], PurchaseChange[]] = [[], []]
    marketplace.onPurchaseChange((change) => void first.push(change))
    marketplace.onPurchaseChange((change, { attempt, marketplace: given, signal }) => {
      second.push(change)
      expect([attempt, given === marketplace, signal.aborted]).toEqual([1, true, false])
    })
    const record = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('both handlers get the change', () => first.length + second.length === 2)
    platform.cancel(record.uid)
    await until('both handlers get the second change', () => first.length + second.length === 4)

    expect(first).toEqual(second)
    expect(first[0]).toEqual({
      cause: 'event',
      gone: null,
      id: expect.any(String),
      business_uid: B1,
      subscription_uid: record.uid,
      from: null,
      to: 'purchased',
      entitled: true,
      record: expect.objectContaining({
        uid: record.uid,
        purchase_price: '9.99',
        purchase_state: 'purchased',
      }),
      observedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    })
    expect(first[1]).toMatchObject({ from: 'purchased', to: 'canceled', entitled: false })
    expect(first[1]?.id).not.toBe(first[0]?.id)
  })

  it('includes whether the business may use the app, considering all its subscriptions', async () => {
    const { platform, marketplace } = await createScene()
    const seen: [string | null, boolean][] = []
    marketplace.onPurchaseChange(({ to, entitled }) => void seen.push([to, entitled]))
    const old = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the first purchase is handled', () => seen.length === 1)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the second purchase is handled', () => seen.length === 2)
    platform.cancel(old.uid)
    await until('the end of the first purchase is handled', () => seen.length === 3)
    expect(seen).toEqual([
      ['purchased', true],
      ['purchased', true],
      ['canceled', true],
    ])
  })

  it('D1 is delivered once for many deliveries about it, and never if the state stays the same', async () => {
    const { platform, marketplace } = await createScene()
    const seen: PurchaseChange[] = []
    marketplace.onPurchaseChange((change) => void seen.push(change))
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 20 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    platform.touch(uid)
    await marketplace.businesses.refresh(B1)
    platform.cancel(uid)
    await platform.settled()
    await until('the last change is handled', () => seen.some(({ to }) => to === 'canceled'))
    expect(seen.map(({ from, to }) => [from, to])).toEqual([
      [null, 'purchased'],
      ['purchased', 'canceled'],
    ])
  })

  it('waits in the journal until a handler of changes is added', async () => {
    const { platform, marketplace } = await createScene()
    await bringAbout(platform, marketplace, ['purchased', 'suspended', 'purchased'])
    expect(await marketplace.journal.list({ kind: 'change', status: 'waiting' })).toHaveLength(3)
    const seen: (string | null)[] = []
    marketplace.onPurchaseChange(({ to }) => void seen.push(to))
    await until('all three changes are handled', () => seen.length === 3)
    expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
    await until('the journal has no pending changes', async () => (await pendingChanges(marketplace)) === 0)
  })

  it('H5 is delivered again with the same id by the next process if a process ends during its handler', async () => {
    const platform = await startPlatform()
    const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
    const ids: string[] = []
    const first = openMarketplace(platform, { store, closeTimeoutMs: 50 })
    first.onPurchaseChange(({ id }) => {
      ids.push(id)
      return new Promise(() => {})
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
    await until('the handler has been called', () => ids.length === 1)
    await first.close()

    const second = openMarketplace(platform, { store })
    second.onPurchaseChange(({ id }) => void ids.push(id))
    await until('the handler is called again', () => ids.length === 2)
    expect(ids[1]).toBe(ids[0])
    await until('the change is done', async () => (await pendingChanges(second)) === 0)
    expect(ids).toHaveLength(2)
  })
})

describe('the changes of one subscription', () => {
  it('H6 arrive in order and never two at once, while changes of other subscriptions continue', async () => {
    const { platform, marketplace } = await createScene({
      ...QUICK,
      handlers: { ...QUICK.handlers, concurrency: 4 },
    })
    const states = ['purchased', 'suspended', 'purchased', 'suspended', 'canceled']
    const uids = []
    for (const business of ['b1', 'b2', 'b3']) {
      uids.push(await bringAbout(platform, marketplace, states, business))
    }
    const running = new Map<string, number>()
    const seen = new Map<string, (string | null)[]>()
    let most = 0
    const overlaps: string[] = []
    marketplace.onPurchaseChange(async ({ subscription_uid: uid, to }) => {
      // This is not an `expect`, because the package catches errors of handlers, and the test would not see it.
      if ((running.get(uid) ?? 0) > 0) overlaps.push(`${uid} ${to}`)
      running.set(uid, (running.get(uid) ?? 0) + 1)
      most = Math.max(
        most,
        [...running.values()].reduce((sum, n) => sum + n),
      )
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      seen.set(uid, [...(seen.get(uid) ?? []), to])
      running.set(uid, 0)
    })
    await until('all changes are handled', async () => (await pendingChanges(marketplace)) === 0)
    expect(overlaps).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(uids.map((uid) => [uid, states])))
    expect(most).toBeGreaterThan(1)
    expect(await marketplace.journal.list({ status: 'dead' })).toEqual([])
  })

  it('H6 wait behind a change that fails, while changes of other subscriptions continue', async () => {
    const { platform, marketplace } = await createScene({ ...QUICK })
    const failing = await bringAbout(platform, marketplace, ['purchased', 'suspended'], 'b1')
    await bringAbout(platform, marketplace, ['purchased', 'suspended'], 'b2')
    const seen: string[] = []
    marketplace.onPurchaseChange(({ subscription_uid, to, business_uid }, { attempt }) => {
      seen.push(`${business_uid} ${to} ${attempt}`)
      if (subscription_uid === failing && to === 'purchased' && attempt < 3) throw new Error('not yet')
    })
    await until('all changes are handled', async () => (await pendingChanges(marketplace)) === 0)
    expect(seen.filter((each) => each.startsWith('b1'))).toEqual([
      'b1 purchased 1',
      'b1 purchased 2',
      'b1 purchased 3',
      'b1 suspended 1',
    ])
    expect(seen.filter((each) => each.startsWith('b2'))).toEqual(['b2 purchased 1', 'b2 suspended 1'])
  })
})
