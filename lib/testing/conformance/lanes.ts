import assert from 'node:assert/strict'
import { EVERY_EVENT } from '../../store/store.js'
import { inLine } from './handing-over.js'
import {
  type Check,
  DONE,
  ending,
  entries,
  entry,
  finish,
  type HeldEntry,
  has,
  idsOf,
  SHORT,
  same,
} from './lab.js'

export const LANES: readonly Check[] = [
  {
    name: 'claimLanes: leases only lanes whose head has a topic that was asked for',
    async check({ store }) {
      const [event, odd, behind] = inLine('a1', 'b1', 'a2')
      assert(event && odd && behind)
      await store.accept([
        event,
        { ...odd, kind: 'unrecognised' },
        { ...behind, name: 'application/installed' },
      ])
      const of = (...topics: string[]) => entries(store, { topics })
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
    name: 'claimLanes: hands out the first entries of a lane, in order, up to one of a topic that was not asked for',
    async check({ store }) {
      const [a1, a2, a3, a4] = inLine('a1', 'a2', 'a3', 'a4')
      assert(a1 && a2 && a3 && a4)
      await store.accept([a1, a2, { ...a3, kind: 'unrecognised' }, a4])
      const leased = await entries(store, { entries: 10, topics: [EVERY_EVENT] })
      same(
        leased.map(({ id, attempt }) => [id, attempt]),
        [
          ['a1', 1],
          ['a2', 1],
        ],
      )
      const [first, second] = leased as [HeldEntry, HeldEntry]
      same(await finish(store, [ending(first, DONE, true)]), ['a1'])
      same(await entries(store), [])
      same(await finish(store, [ending(second, DONE)]), ['a2'])
      same(idsOf(await entries(store, { entries: 10 })), ['a3', 'a4'])
    },
  },
  {
    name: 'claimLanes: of many lanes hands out no more entries than it was told, and one of each at least',
    async check({ store }) {
      await store.accept(inLine(...['a', 'b', 'c'].flatMap((key) => [1, 2, 3, 4].map((n) => `${key}${n}`))))
      same(idsOf(await entries(store, { limit: 2, entries: 4 })), ['a1', 'a2', 'b1', 'b2'])
      same(idsOf(await entries(store, { entries: 0 })), ['c1'])
    },
  },
  {
    name: 'claimLanes: leaves out the keys it is told to, also when their lease has run out',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1'))
      const [a1] = await entries(store, { limit: 1, leaseMs: 1 })
      assert(a1)
      await lab.pass(10)
      same(idsOf(await entries(store, { exceptKeys: ['a'] })), ['b1'])
      same(await entries(store, { exceptKeys: ['a', 'no such key'] }), [])
      has(await entry(store), { id: 'a1', lapses: 1 })
    },
  },
  {
    name: 'claimLanes: after a lease that ran out hands out the head alone, until it is ended',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'a3'))
      assert.equal((await entries(store, { entries: 10, leaseMs: SHORT })).length, 3)
      const [alone, ...others] = await lab.until('the lease runs out', async () => {
        const leased = await entries(store, { entries: 10 })
        return leased.length > 0 && leased
      })
      has(alone, { id: 'a1', attempt: 2, lapses: 1 })
      same(others, [])
      await finish(store, [ending(alone as HeldEntry, DONE)])
      same(idsOf(await entries(store, { entries: 10 })), ['a2', 'a3'])
    },
  },
]
