import assert from 'node:assert/strict'
import {
  type Check,
  DONE,
  ending,
  finish,
  idsOf,
  LONG,
  leasedEntries,
  leasedEntry,
  renew,
  SHORT,
  same,
} from '../lab.js'
import { inLine } from './handing-over.js'

/** The holder and the duration of the lease of a lane. */
export const LANE_LEASES: readonly Check[] = [
  {
    name: 'claimLanes: twenty concurrent claims lease each entry at most once, and one of each lane',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine(...[...'abcdefghij'].flatMap((key) => [`${key}1`, `${key}2`])))
      const leased: string[] = []
      await lab.until('the first of each key is leased', async () => {
        const claims = await Promise.all(Array.from({ length: 20 }, () => leasedEntries(store, { limit: 2 })))
        leased.push(...idsOf(claims.flat()))
        return leased.length >= 10
      })
      same(
        leased.sort(),
        [...'abcdefghij'].map((key) => `${key}1`),
      )
      same(await leasedEntries(store), [])
    },
  },
  {
    name: 'renewLane: extends a lease; returns false for one that is finished, passed on or forged',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1'))
      const a1 = await leasedEntry(store, { limit: 1, leaseMs: 200 })
      assert.equal(await renew(store, a1, LONG), true)
      const b1 = await leasedEntry(store, { leaseMs: SHORT })
      const taken = await lab.until('the lease of b1 runs out', async () => (await leasedEntries(store))[0])
      assert.equal(taken.id, 'b1')
      assert.equal(await renew(store, b1, LONG), false)
      assert.equal(await renew(store, { ...a1, leaseToken: 'made up' }, SHORT), false)
      await lab.pass(250)
      same(await leasedEntries(store), [])
      await finish(store, [ending(a1, DONE)])
      assert.equal(await renew(store, a1, LONG), false)
    },
  },
]
