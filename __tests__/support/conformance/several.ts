import assert from 'node:assert/strict'
import type { Store } from '../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  claimOne,
  DONE,
  ending,
  eventOf,
  finish,
  has,
  idsOf,
  LONG,
  leasedEntries,
  leasedEntry,
  named,
  only,
  REQUESTED,
  renew,
  SHORT,
  same,
  shows,
} from './lab.js'
import { handOver } from './lanes/handing-over.js'

/** Two stores over one database, as two processes have them. */
export const SEVERAL: readonly Check[] = (
  [
    {
      name: 'two stores: each reads the changes of the other',
      async check(lab) {
        const [here, there] = [lab.store, await lab.beside()]
        await here.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
        const claim = await claimed(there)
        await there.finishRead(claim, shows(claim, 'purchased'))
        has(await only(here, 'b1'), { state: 'purchased', pending: false })
        await finish(here, [ending(await leasedEntry(there), DONE)])
        assert.equal((await there.counts()).pending, 0)
      },
    },
    {
      name: 'two stores: twenty concurrent claims lease each subscription at most once, and leave out none',
      async check(lab) {
        const stores = [lab.store, await lab.beside()]
        const uids = Array.from({ length: 10 }, (_, i) => `s${i}`)
        await lab.store.accept(uids.map((uid) => eventOf(uid)))
        const leased: string[] = []
        await lab.until('all are leased', async () => {
          const claims = await Promise.all(
            Array.from({ length: 20 }, (_, i) =>
              claimOne(stores[i % 2] as Store, { leaseMs: LONG, except: [], urgencies: REQUESTED }),
            ),
          )
          leased.push(...claims.flatMap((claim) => claim?.id ?? []))
          return leased.length >= uids.length
        })
        same(leased.sort(), uids)
        for (const store of stores) same(await claimedAll(store), [])
      },
    },
    {
      name: 'two stores: twenty concurrent claims lease each entry at most once, and one of each lane',
      async check(lab) {
        const stores = [lab.store, await lab.beside()]
        const keys = [...'abcdefghij']
        const events = keys.flatMap((key) => [1, 2].map((n) => eventOf(key, { id: `${key}${n}`, key })))
        await lab.store.accept(events)
        const leased: string[] = []
        await lab.until('the first of each key is leased', async () => {
          const claims = Array.from({ length: 20 }, (_, i) =>
            leasedEntries(stores[i % 2] ?? lab.store, { limit: 2 }),
          )
          leased.push(...idsOf((await Promise.all(claims)).flat()))
          return leased.length >= keys.length
        })
        same(
          leased.sort(),
          keys.map((key) => `${key}1`),
        )
      },
    },
    {
      name: 'two stores: each entry is handled once, and each lane in its order',
      check: async (lab) => handOver(lab, [lab.store, await lab.beside()]),
    },
    {
      name: 'two stores: concurrent events of one subscription through both stores all count',
      async check(lab) {
        const stores = [lab.store, await lab.beside()]
        await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2]?.accept([eventOf('s1')])))
        has(await claimed(lab.store), { generation: 40 })
        has(await lab.store.counts(), { pending: 40, subscriptions: 1 })
      },
    },
    {
      name: 'two stores: concurrent calls with the same rows in opposite orders all succeed',
      async check(lab) {
        const stores = [lab.store, await lab.beside()]
        const uids = Array.from({ length: 20 }, (_, i) => `s${i}`)
        const batch = (order: string[]) => [
          ...order.map((uid) => eventOf(uid, { businessUid: 'b1' })),
          eventOf('s0', { refresh: { kind: 'business', businessUid: 'b1', install: null } }),
        ]
        await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            stores[i % 2]?.accept(batch(i % 4 < 2 ? uids : [...uids].reverse())),
          ),
        )
        has(await lab.store.counts(), { pending: 20 * 21, subscriptions: 20 })
        const claims = await claimedAll(lab.store)
        assert.equal(claims.length, 20)
        for (const { generation } of claims)
          assert(generation >= 20 && generation <= 40, `generation is ${generation}`)
      },
    },
    {
      name: 'two stores: an event accepted through both concurrently is stored once',
      async check(lab) {
        const stores = [lab.store, await lab.beside()]
        const events = Array.from({ length: 20 }, (_, i) => eventOf(`s${i}`))
        await Promise.all(events.flatMap((event) => stores.map((store) => store.accept([event]))))
        same(idsOf(await lab.store.listEntries({})).sort(), idsOf(events).sort())
      },
    },
    {
      name: 'two stores: a holder that returns after its lease has expired changes nothing',
      async check(lab) {
        const [here, there] = [lab.store, await lab.beside()]
        await here.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
        const [late, lateEntry] = [
          await claimed(here, { leaseMs: SHORT }),
          await leasedEntry(here, { leaseMs: SHORT }),
        ]
        const holder = await lab.until('the lease of the read runs out', () =>
          claimOne(there, { leaseMs: LONG, except: [], urgencies: REQUESTED }),
        )
        const heldEntry = await lab.until(
          'the lease of the entry runs out',
          async () => (await leasedEntries(there))[0],
        )
        has(holder, { lapses: 0 })
        has(heldEntry, { lapses: 0, attempt: 1 })
        const change = { id: 'c1', key: 'k', businessUid: 'b1', cause: 'event' as const, payload: '1' }
        assert.equal(await here.renewRead(late, LONG), false)
        assert.equal(await renew(here, lateEntry, LONG), false)
        assert.equal(await here.finishRead(late, shows(late, 'purchased', { changes: [change] })), false)
        same(await finish(here, [ending(lateEntry, DONE)]), [])
        has(await only(here, 'b1'), { state: null, pending: true })
        assert.equal(await there.finishRead(holder, shows(holder, 'suspended')), true)
        same(await finish(there, [ending(heldEntry, DONE)]), ['e1'])
        has(await only(here, 'b1'), { state: 'suspended' })
      },
    },
    {
      name: 'two stores: an event in one during a read of the other causes another read',
      async check(lab) {
        const [here, there] = [lab.store, await lab.beside()]
        await here.requestRefresh(named('s1', 'b1'))
        const claim = await claimed(here)
        await there.accept([eventOf('s1', { businessUid: 'b1' })])
        assert.equal(await here.finishRead(claim, shows(claim, 'purchased')), true)
        const next = await lab.until('it is due again', async () => (await claimedAll(there))[0])
        has(next, { generation: 2, settledGeneration: 1 })
      },
    },
    {
      name: 'two stores: one that closes does not close the other',
      async check(lab) {
        const there = await lab.beside()
        await there.close()
        await lab.store.accept([eventOf('s1')])
        assert.equal((await lab.store.counts()).pending, 1)
      },
    },
  ] satisfies Omit<Check, 'needs'>[]
).map((check: Check) => ({ ...check, needs: 'beside' }))
