import assert from 'node:assert/strict'
import {
  type Check,
  claimed,
  DEAD,
  DONE,
  ending,
  entries,
  entry,
  eventOf,
  finish,
  type HeldEntry,
  has,
  idsOf,
  isNumber,
  LATER,
  type Lab,
  LONG,
  renew,
  SHORT,
  same,
  shows,
} from './lab.js'

const retry = (inMs: number) => ({ kind: 'retry', inMs, error: 'not yet' }) as const

/** Entries by name: the letter is the key. */
export const inLine = (...ids: string[]) =>
  ids.map((id) => eventOf(id, { id, key: id[0] as string, wanted: null }))

export const HANDING_OVER: readonly Check[] = [
  {
    name: 'claimLanes: leases the oldest of each key, oldest first, and no second one of a key',
    async check({ store }) {
      await store.accept(inLine('a1', 'b1', 'a2', 'c1', 'b2'))
      const first = await entries(store)
      same(idsOf(first), ['a1', 'b1', 'c1'])
      same(idsOf(await entries(store)), [])
      await finish(
        store,
        first.slice(0, 2).map((each) => ending(each, DONE)),
      )
      same(idsOf(await entries(store)), ['a2', 'b2'])
    },
  },
  {
    name: 'claimLanes: leases no more than the limit, those due longest before the others',
    async check(lab) {
      for (const id of ['a1', 'b1', 'c1', 'd1']) {
        await lab.store.accept(inLine(id))
        await lab.pass(3)
      }
      same(idsOf(await entries(lab.store, { limit: 3 })), ['a1', 'b1', 'c1'])
      same(idsOf(await entries(lab.store, { limit: 3 })), ['d1'])
    },
  },
  {
    name: 'claimLanes: one that is leased or to be tried again holds back those behind it, and no others',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, retry(LATER)), ending(b1, retry(0))])
      const again = await lab.until('b1 is due again', async () => (await entries(store))[0])
      has(again, { id: 'b1', attempt: 2 })
      same(await entries(store), [])
    },
  },
  {
    name: 'claimLanes: what stands behind one to be tried again is due as soon as that is over',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, retry(200)), ending(b1, retry(200))])
      same(await entries(store, { limit: 1 }), [])
      await store.accept(inLine('a3'))
      const again: HeldEntry[] = []
      await lab.until('both are due again', async () => {
        again.push(...(await entries(store)))
        return again.length === 2
      })
      same(idsOf(again).sort(), ['a1', 'b1'])
      await finish(
        store,
        again.map((each) => ending(each, each.id === 'a1' ? DONE : DEAD)),
      )
      const next = await entries(store)
      same(idsOf(next), ['a2', 'b2'])
      await finish(
        store,
        next.map((each) => ending(each, DONE)),
      )
      same(idsOf(await entries(store)), ['a3'])
    },
  },
  {
    name: 'claimLanes: one that is done or dead holds back nothing',
    async check({ store }) {
      await store.accept(inLine('a1', 'a2', 'b1', 'b2'))
      const [a1, b1] = await two(store)
      await finish(store, [ending(a1, DONE), ending(b1, DEAD)])
      same(idsOf(await entries(store)), ['a2', 'b2'])
    },
  },
  {
    name: 'claimLanes: a change stands in line behind an older event of its key',
    async check({ store }) {
      await store.accept([eventOf('s1', { id: 'e1', key: 'k' })])
      const claim = await claimed(store)
      const change = { id: 'c1', key: 'k', payload: () => '1' }
      await store.finishRead(claim, shows(claim, 'purchased', { change }))
      const e1 = await entry(store)
      assert.equal(e1.id, 'e1')
      await finish(store, [ending(e1, DONE)])
      assert.equal((await entry(store)).id, 'c1')
    },
  },
  {
    name: 'claimLanes: to twenty that ask at once each entry is leased to at most one, and one of a key',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine(...[...'abcdefghij'].flatMap((key) => [`${key}1`, `${key}2`])))
      const leased: string[] = []
      await lab.until('the first of each key is leased', async () => {
        const claims = await Promise.all(Array.from({ length: 20 }, () => entries(store, { limit: 2 })))
        leased.push(...idsOf(claims.flat()))
        return leased.length >= 10
      })
      same(
        leased.sort(),
        [...'abcdefghij'].map((key) => `${key}1`),
      )
      same(await entries(store), [])
    },
  },
  {
    name: 'claimLanes: a lease that runs out is handed to the next, counted as a try and as a lapse',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2'))
      has(await entry(store, { leaseMs: SHORT }), { attempt: 1, lapses: 0 })
      const second = await lab.until(
        'the lease runs out',
        async () => (await entries(store, { leaseMs: SHORT }))[0],
      )
      has(second, { id: 'a1', attempt: 2, lapses: 1 })
      const third = await lab.until('the lease runs out', async () => (await entries(store))[0])
      has(third, { id: 'a1', attempt: 3, lapses: 2 })
      isNumber(third.attempt, 'attempt')
      same(await finish(store, [ending(third, retry(0))]), ['a1'])
      has(await lab.until('the retry is due', async () => (await entries(store))[0]), {
        id: 'a1',
        attempt: 4,
        lapses: 0,
      })
    },
  },
  {
    name: 'renewLane: holds a lease beyond its first end; false when it is finished, passed on or made up',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1'))
      const a1 = await entry(store, { limit: 1, leaseMs: 200 })
      assert.equal(await renew(store, a1, LONG), true)
      const b1 = await entry(store, { leaseMs: SHORT })
      const taken = await lab.until('the lease of b1 runs out', async () => (await entries(store))[0])
      assert.equal(taken.id, 'b1')
      assert.equal(await renew(store, b1, LONG), false)
      assert.equal(await renew(store, { ...a1, leaseToken: 'made up' }, SHORT), false)
      await lab.pass(250)
      same(await entries(store), [])
      await finish(store, [ending(a1, DONE)])
      assert.equal(await renew(store, a1, LONG), false)
    },
  },
  {
    name: 'each entry is handed over once, and each key in its order, however many take part',
    check: (lab) => handOver(lab, [lab.store]),
  },
]

/** Eight that claim, handle and finish, a part of them through each store. */
export async function handOver(lab: Lab, stores: readonly Lab['store'][]): Promise<void> {
  const lines = [...'abcdefgh'].map((key) => [1, 2, 3, 4, 5].map((n) => `${key}${n}`))
  for (const i of [0, 1, 2, 3, 4]) await lab.store.accept(inLine(...lines.map((line) => line[i] ?? '')))
  const order: string[] = []
  const active = new Set<string>()

  async function handle(store: Lab['store']) {
    for (const each of await entries(store, { limit: 3 })) {
      assert(!active.has(each.key), `two of the key ${each.key} are leased at once`)
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
  const leased = await entries(store)
  assert.equal(leased.length, 2)
  return leased as [HeldEntry, HeldEntry]
}
