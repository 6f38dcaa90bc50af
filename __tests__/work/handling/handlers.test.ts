import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { systemClock } from '../../../lib/base/clock.js'
import { defineEvent, type PurchaseChange } from '../../../lib/index.js'
import type { LaneClaim } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { notice } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { bringAbout, explode, pendingChanges } from '../../support/scenes/changes.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

const QUICK = { handlers: { retryDelaysMs: [10, 10, 10] }, ...internals({ pollMs: 50 }) }

describe('a handler', () => {
  it('H7 may call any method of the marketplace', async () => {
    const { platform, marketplace } = await createScene({
      handlers: { concurrency: 1 },
      ...internals({ pollMs: 50 }),
    })
    const answers: unknown[] = []
    marketplace.onPurchaseChange(async ({ business_uid, subscription_uid, id }, { marketplace: m }) => {
      if (answers.length > 0) return
      answers.push(
        await m.isEntitled(business_uid),
        (await m.businesses.refresh(business_uid)).entitled,
        (await m.explain(business_uid)).reason,
        await m.subscriptions.track({ subscriptionUid: subscription_uid, businessUid: business_uid }),
        (await m.journal.list({ status: 'pending' })).some((entry) => entry.id === id),
        (await m.health()).status,
      )
      m.onPurchaseChange(() => {})()
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await until(
      'the handler has returned',
      async () => answers.length > 0 && (await pendingChanges(marketplace)) === 0,
    )
    expect(answers).toEqual([true, true, 'purchased', undefined, true, 'ok'])
  })

  it('H7 may even close the marketplace and wait for it', async () => {
    const { platform, marketplace } = await createScene({ closeTimeoutMs: 100 })
    const closed = gate()
    marketplace.onPurchaseChange(async (_change, { marketplace: m }) => {
      await m.close()
      closed.open()
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the marketplace is closed', async () => (await closed.opened) === undefined)
  })

  it('H6 is never called twice at once, even when its entry is replayed', async () => {
    const { marketplace, deliver } = await createScene({ ...internals({ pollMs: 50, leaseMs: 1_000 }) })
    const [running, calls]: [Set<number>, number[]] = [new Set(), []]
    let attempts = 0
    marketplace.on('application/installed', async (_event, { signal }) => {
      const own = ++attempts
      running.add(own)
      calls.push(running.size)
      // The handler waits for its signal, which aborts because another claimer leases the entry.
      if (own === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      running.delete(own)
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await until('the handler runs', () => attempts === 1)
    expect(await marketplace.journal.replay(id)).toBe(true)
    await until('the handler is called again', () => attempts === 2)
    expect(calls).toEqual([1, 1])
  })

  it('gets what waits in a lane one after the other, under one lease while that takes moments', async () => {
    const leased: number[] = []
    const store = wrapStore(storeFor('sqlite::memory:', systemClock), async (name, call) => {
      const result = await call()
      if (name === 'claimLanes') for (const { entries } of result as LaneClaim[]) leased.push(entries.length)
      return result
    })
    const { marketplace, deliver } = await createScene({ store: storeOption(store) })
    const first = gate()
    const seen: string[] = []
    marketplace.on('purchasable_subscription/update', async ({ id }) => {
      seen.push(id)
      await first.opened
    })
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      ids.push((await deliver(notice(B1, 's1'))).id)
      if (i === 0) await until('the handler runs', () => seen.length === 1)
    }
    first.open()
    await until('all are handled', () => seen.length === 5)
    expect(seen).toEqual(ids)
    expect(leased).toEqual([1, 4])
  })

  it('that unsubscribes while a change is under way leaves the change to the next handler', async () => {
    let leave = () => {}
    const store = wrapStore(storeFor('sqlite::memory:', systemClock), async (name, call) => {
      const result = await call()
      if (name === 'claimLanes' && JSON.stringify(result).includes('"kind":"change"')) leave()
      return result
    })
    const { platform, marketplace } = await createScene({ store: storeOption(store) })
    const seen: string[] = []
    const unsubscribe = marketplace.onPurchaseChange(() => void seen.push('the one that left'))
    let hasLeft = false
    leave = () => {
      hasLeft = true
      unsubscribe()
    }
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the change is under way', () => hasLeft)
    expect(await marketplace.journal.list({ kind: 'change' })).toMatchObject([
      { status: 'pending', attempts: 0 },
    ])
    leave = () => {}
    marketplace.onPurchaseChange(() => void seen.push('the next'))
    await until('the handler is called', () => seen.length > 0)
    expect(seen).toEqual(['the next'])
  })

  it.each([undefined, null, 'application/installed', {}])('%p is refused at registration', async (what) => {
    const marketplace = openMarketplace(await startPlatform())
    const handler = what as never
    for (const register of [
      () => marketplace.on('application/installed', handler),
      () => marketplace.onAny(handler),
      () => marketplace.onUnrecognised(handler),
      () => marketplace.onPurchaseChange(handler),
      () => marketplace.onHandlerError(handler),
    ]) {
      expect(register).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
    }
  })

  it('H9 gets a frozen payload, so it cannot change the payload of another handler', async () => {
    const { platform, marketplace } = await createScene()
    const kept: PurchaseChange[] = []
    const faults: unknown[] = []
    marketplace.onPurchaseChange((change) => {
      for (const spoil of [
        () => Object.assign(change, { entitled: false }),
        () => Object.assign(change.record as object, { purchase_state: 'suspended' }),
        () => Reflect.deleteProperty(change, 'id') || explode(),
      ]) {
        try {
          spoil()
        } catch (error) {
          faults.push(error)
        }
      }
    })
    marketplace.onPurchaseChange((change) => void kept.push(change))
    await bringAbout(platform, marketplace, ['purchased'])
    await until('both handlers get the change', () => kept.length === 1 && faults.length === 3)
    expect(kept[0]).toMatchObject({ entitled: true, record: { purchase_state: 'purchased' } })
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: true })
  })

  it('H9 gets a payload frozen that has a longer list than a call may have arguments', async () => {
    const { marketplace, deliver } = await createScene({ bodyLimitBytes: 1_000_000 })
    const lists: unknown[] = []
    marketplace.on('application/installed', ({ data }) => void lists.push(data.list))
    marketplace.onUnrecognised(({ envelope }) => void lists.push((envelope as { list: unknown }).list))
    const list = Array<number>(200_000).fill(0)
    const event = sampleDelivery('application/installed', { business_id: B1, list })
    for (const body of [event, { list }]) await deliver(body)
    await marketplace.settled()
    expect(lists.map((each) => [(each as unknown[]).length, Object.isFrozen(each)])).toEqual([
      [200_000, true],
      [200_000, true],
    ])
  })

  it('H9 gets what the schema of an own event has made as it is: bytes, and objects that the app goes on using', async () => {
    const plans = { pro: { seats: 5 } }
    const rated = defineEvent({
      entity_name: 'application',
      event_type: 'rated',
      data: z.object({
        business_id: z.string(),
        photo: z.string().transform((text) => Buffer.from(text, 'base64')),
        plan: z.literal('pro').transform((plan) => plans[plan]),
      }),
      tokens: ['app'],
    })
    const { marketplace, deliver } = await createScene({
      events: { 'application/rated': rated },
      handlers: { retryDelaysMs: [] },
    })
    const seen: unknown[] = []
    const faults: unknown[] = []
    marketplace.onAny((event) => {
      seen.push(event.data)
      try {
        Object.assign(event, { data: null })
      } catch (error) {
        faults.push(error)
      }
    })
    await deliver({
      entity_name: 'application',
      event_type: 'rated',
      data: { business_id: B1, photo: 'aGVsbG8=', plan: 'pro' },
    })
    await marketplace.settled()
    expect(await marketplace.journal.list()).toMatchObject([{ status: 'done' }])
    expect(seen).toEqual([{ business_id: B1, photo: Buffer.from('hello'), plan: plans.pro }])
    expect(faults).toHaveLength(1)
    plans.pro.seats = 6
    expect(plans.pro.seats).toBe(6)
  })

  it('gets nothing after it unsubscribed, and unsubscribing twice does no harm', async () => {
    const { platform, marketplace } = await createScene()
    const seen: string[] = []
    const unsubscribe = marketplace.onPurchaseChange(() => void seen.push('first'))
    marketplace.onPurchaseChange(() => void seen.push('second'))
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('both handlers get the change', () => seen.length === 2)
    unsubscribe()
    unsubscribe()
    platform.cancel(uid)
    await until('only the second handler gets the change', () => seen.length === 3)
    expect(seen).toEqual(['first', 'second', 'second'])
  })

  it('registered twice is called twice, and each registration ends separately', async () => {
    const { platform, marketplace } = await createScene()
    let calls = 0
    const handler = () => void calls++
    const unsubscribe = marketplace.onPurchaseChange(handler)
    marketplace.onPurchaseChange(handler)
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('two calls', () => calls === 2)
    unsubscribe()
    platform.cancel(uid)
    await until('one more call', async () => calls === 3 && (await pendingChanges(marketplace)) === 0)
  })

  it('of events gets each by its name, and onAny gets all, at least once and in order per subscription', async () => {
    const { platform, marketplace, deliver } = await createScene({ ...QUICK })
    const [named, any, odd]: string[][] = [[], [], []]
    const tries: { id: string; receivedAt: string }[] = []
    marketplace.on('purchasable_subscription/update', ({ name, data, id, receivedAt }) => {
      named?.push(name, data.subscription_uid)
      // The test checks this at the end, because an error in a handler does not fail the test.
      tries.push({ id, receivedAt })
    })
    marketplace.on('purchasable_subscription/update', ({ id, receivedAt }, { attempt }) => {
      tries.push({ id, receivedAt })
      if (attempt === 1) throw new Error('not yet')
    })
    marketplace.onAny(({ name }) => void any?.push(name))
    marketplace.onUnrecognised(({ envelope }) => void odd?.push(String(envelope)))
    const uid = await bringAbout(platform, marketplace, ['purchased', 'suspended'])
    platform.install(B1)
    await deliver('"what is this"')
    await until('all events are handled', () => (any?.length ?? 0) >= 3 && (odd?.length ?? 0) >= 1)
    expect(named).toEqual(['purchasable_subscription/update', uid])
    expect(any).toEqual([
      'purchasable_subscription/create',
      'purchasable_subscription/update',
      'application/installed',
    ])
    expect(odd).toEqual(['what is this'])
    await until('the second try has ended', () => tries.length === 3)
    const [entry] = (await marketplace.journal.list({ kind: 'event' })).filter(({ name }) =>
      /update/.test(name),
    )
    expect(tries).toEqual(Array(3).fill({ id: entry?.id, receivedAt: entry?.receivedAt }))
  })
})
