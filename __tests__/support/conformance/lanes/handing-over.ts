import assert from 'node:assert/strict'
import { EVERY_EVENT } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  DEAD,
  DONE,
  ending,
  eventOf,
  finish,
  type HeldEntry,
  has,
  idsOf,
  LATER,
  type Lab,
  leasedEntries,
  leasedEntry,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const retry = (inMs: number) => ({ kind: 'retry', inMs, error: 'not yet' }) as const

/** Events with these ids. The first letter is the lane. */
export const inLine = (...ids: string[]) =>
  ids.map((id) => eventOf(id, { id, key: id[0] as string, refresh: null }))

export const HANDING_OVER: readonly Check[] = [
  {
    name: 'claimLanes: leases the oldest entry of each lane, oldest first, and no second one of a lane',
    async check({ store }) {
      await store.accept(inLine('a1', 'b1', 'a2', 'c1', 'b2'))
      const first = await leasedEntries(store)
      same(idsOf(first), ['a1', 'b1', 'c1'])
      same(idsOf(await leasedEntries(store)), [])
      await finish(
        store,
        first.slice(0, 2).map((each) => ending(each, DONE)),
      )
      same(idsOf(await leasedEntries(store)), ['a2', 'b2'])
    },
  },
  {
    name: 'claimLanes: leases up to the limit, the longest due first',
    async check(lab) {
      for (const id of ['a1', 'b1', 'c1', 'd1']) {
        await lab.store.accept(inLine(id))
        await lab.pass(3)
      }
      same(idsOf(await leasedEntries(lab.store, { limit: 3 })), ['a1', 'b1', 'c1'])
      same(idsOf(await leasedEntries(lab.store, { limit: 3 })), ['d1'])
    },
  },
  {
    name: 'claimLanes: a leased or retrying entry delays the later entries of its lane only',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, retry(LATER)), ending(b1, retry(0))])
      const again = await lab.until('b1 is due again', async () => (await leasedEntries(store))[0])
      has(again, { id: 'b1', attempt: 2 })
      same(await leasedEntries(store), [])
    },
  },
  {
    name: 'claimLanes: entries after a retrying one are due as soon as it has ended',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, retry(200)), ending(b1, retry(200))])
      same(await leasedEntries(store, { limit: 1 }), [])
      await store.accept(inLine('a3'))
      const again: HeldEntry[] = []
      await lab.until('both are due again', async () => {
        again.push(...(await leasedEntries(store)))
        return again.length === 2
      })
      same(idsOf(again).sort(), ['a1', 'b1'])
      await finish(
        store,
        again.map((each) => ending(each, each.id === 'a1' ? DONE : DEAD)),
      )
      const next = await leasedEntries(store)
      same(idsOf(next), ['a2', 'b2'])
      await finish(
        store,
        next.map((each) => ending(each, DONE)),
      )
      same(idsOf(await leasedEntries(store)), ['a3'])
    },
  },
  {
    name: 'claimLanes: a done or dead entry delays nothing',
    async check({ store }) {
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, DONE), ending(b1, DEAD)])
      same(idsOf(await leasedEntries(store)), ['a2', 'b2'])
    },
  },
  {
    name: 'claimLanes: leases only lanes whose head has one of the given topics',
    async check({ store }) {
      const [event, odd, behind] = inLine('a1', 'b1', 'a2')
      assert(event && odd && behind)
      await store.accept([
        event,
        { ...odd, kind: 'unrecognised' },
        { ...behind, name: 'application/installed' },
      ])
      const of = (...topics: string[]) => leasedEntries(store, { topics })
      same(await of(), [])
      same(await of('change', 'event:application/installed', 'event:no such name'), [])
      same(idsOf(await of('unrecognised')), ['b1'])
      const [a1] = await of('event:purchasable_subscription/update')
      assert(a1)
      same(await of('event:application/installed'), [])
      await finish(store, [ending(a1, DONE)])
      same(idsOf(await of('change', 'event:application/installed')), ['a2'])
    },
  },
  {
    name: 'claimLanes: returns the first entries of a lane, in order, up to an entry of another topic',
    async check({ store }) {
      const [a1, a2, a3, a4] = inLine('a1', 'a2', 'a3', 'a4')
      assert(a1 && a2 && a3 && a4)
      await store.accept([a1, a2, { ...a3, kind: 'unrecognised' }, a4])
      const leased = await leasedEntries(store, { entryLimit: 10, topics: [EVERY_EVENT] })
      same(
        leased.map(({ id, attempt }) => [id, attempt]),
        [
          ['a1', 1],
          ['a2', 1],
        ],
      )
      const [first, second] = leased as [HeldEntry, HeldEntry]
      same(await finish(store, [ending(first, DONE, true)]), ['a1'])
      same(await leasedEntries(store), [])
      same(await finish(store, [ending(second, DONE)]), ['a2'])
      same(idsOf(await leasedEntries(store, { entryLimit: 10 })), ['a3', 'a4'])
    },
  },
  {
    name: 'claimLanes: returns at most the given number of entries, and at least one of each lane',
    async check({ store }) {
      await store.accept(inLine(...['a', 'b', 'c'].flatMap((key) => [1, 2, 3, 4].map((n) => `${key}${n}`))))
      same(idsOf(await leasedEntries(store, { limit: 2, entryLimit: 4 })), ['a1', 'a2', 'b1', 'b2'])
      same(idsOf(await leasedEntries(store, { entryLimit: 0 })), ['c1'])
    },
  },
  {
    name: 'claimLanes: leaves out the excepted lanes, also after their lease has expired',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1'))
      const [a1] = await leasedEntries(store, { limit: 1, leaseMs: 1 })
      assert(a1)
      await lab.pass(10)
      same(idsOf(await leasedEntries(store, { exceptKeys: ['a'] })), ['b1'])
      same(await leasedEntries(store, { exceptKeys: ['a', 'no such key'] }), [])
      has(await leasedEntry(store), { id: 'a1', lapses: 0 })
    },
  },
  {
    name: 'claimSuspectLane: returns only the head after a lease has expired, until the head is finished',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'a3'))
      assert.equal((await leasedEntries(store, { entryLimit: 10, leaseMs: SHORT })).length, 3)
      const [alone, ...others] = await lab.until('the lease runs out', async () => {
        const leased = await leasedEntries(store, { entryLimit: 10 })
        return leased.length > 0 && leased
      })
      has(alone, { id: 'a1', attempt: 1, lapses: 0 })
      same(others, [])
      await finish(store, [ending(alone as HeldEntry, DONE)])
      same(idsOf(await leasedEntries(store, { entryLimit: 10 })), ['a2', 'a3'])
    },
  },
  {
    name: 'claimLanes: a change follows an older event of its lane',
    async check({ store }) {
      await store.accept([eventOf('s1', { id: 'e1', key: 'k' })])
      const claim = await claimed(store)
      const change = { id: 'c1', key: 'k', businessUid: 'b1', cause: 'event' as const, payload: '1' }
      await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] }))
      const e1 = await leasedEntry(store)
      assert.equal(e1.id, 'e1')
      await finish(store, [ending(e1, DONE)])
      assert.equal((await leasedEntry(store)).id, 'c1')
    },
  },
  {
    name: 'handling: each entry is handled once, and each lane in its order, with several workers',
    check: (lab) => handOver(lab, [lab.store]),
  },
]

/** Eight workers claim, handle and finish entries, each through one of the stores. */
export async function handOver(lab: Lab, stores: readonly Lab['store'][]): Promise<void> {
  const lines = [...'abcdefgh'].map((key) => [1, 2, 3, 4, 5].map((n) => `${key}${n}`))
  for (const i of [0, 1, 2, 3, 4]) await lab.store.accept(inLine(...lines.map((line) => line[i] ?? '')))
  const order: string[] = []
  const active = new Set<string>()

  async function handle(store: Lab['store']) {
    for (const each of await leasedEntries(store, { limit: 3 })) {
      assert(!active.has(each.key), `two entries of the lane ${each.key} are leased at once`)
      active.add(each.key)
      await new Promise((resolve) => setImmediate(resolve))
      order.push(each.id)
      active.delete(each.key)
      same(await finish(store, [ending(each, DONE)]), [each.id])
    }
  }

  await lab.until('all are handled', async () => {
    const workers = Array.from({ length: 8 }, (_, i) => stores[i % stores.length] ?? lab.store)
    await Promise.all(workers.map(handle))
    return order.length >= lines.flat().length
  })
  for (const line of lines)
    same(
      order.filter((id) => id[0] === line[0]?.[0]),
      line,
    )
}

async function two(store: Lab['store']): Promise<[HeldEntry, HeldEntry]> {
  const leased = await leasedEntries(store)
  assert.equal(leased.length, 2)
  return leased as [HeldEntry, HeldEntry]
}
