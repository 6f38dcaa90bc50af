import assert from 'node:assert/strict'
import { URGENCY } from '../../../../lib/store/port/store.js'
import { type Check, claimed, claimedAll, has, idsOf, known, LONG, named, same } from '../lab.js'

/** A read of every subscription, for a database that was restored. */
export const REFRESHING_ALL: readonly Check[] = [
  {
    name: 'refreshAll: makes a regular read of every subscription due within the time, which no request owes',
    async check({ store }) {
      for (const uid of ['s1', 's2']) await known(store, uid, 'purchased')
      same(await claimedAll(store), [])
      assert.equal(await store.refreshAll(1), 2)
      const claims = await claimedAll(store)
      same(idsOf(claims).sort(), ['s1', 's2'])
      for (const claim of claims) {
        assert.equal(claim.urgency, URGENCY.reconcile)
        assert.equal(claim.generation, claim.settledGeneration)
      }
    },
  },
  {
    name: 'refreshAll: spreads the reads over the time',
    async check({ store }) {
      for (let i = 0; i < 12; i++) await known(store, `s${i}`, 'purchased')
      assert.equal(await store.refreshAll(LONG), 12)
      assert((await claimedAll(store)).length < 12)
    },
  },
  {
    name: 'refreshAll: leaves a requested read and its class, and a read under way',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const held = await claimed(store)
      await store.requestRefresh(named('s2', 'b2'))
      await store.refreshAll(LONG)
      const claim = await claimed(store)
      has(claim, { id: 's2', urgency: URGENCY.track })
      assert.equal(await store.renewRead(held, LONG), true)
    },
  },
]
