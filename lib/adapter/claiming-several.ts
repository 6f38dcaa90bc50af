import assert from 'node:assert/strict'
import type { Urgency } from '../store/store.js'
import { type Check, claimed, claimedAll, eventOf, idsOf, LONG, named, same } from './lab.js'

export const CLAIMING_SEVERAL: readonly Check[] = [
  {
    name: 'claimReads: leases up to the limit, of the chosen urgencies, and one subscription of each business',
    async check({ store }) {
      const seen: Urgency[][] = []
      await store.accept(
        ['b1', 'b2', 'b3', 'b3'].map((business, i) => eventOf(`event ${i}`, { businessUid: business })),
      )
      for (const uid of ['i1', 'i2', 'i3']) await store.requestRefresh(named(uid, `of ${uid}`))
      const choose = (due: readonly Urgency[], taken: readonly Urgency[]) => {
        seen.push([...taken])
        return taken.at(-1) === 1 ? 2 : due.find((urgency) => urgency === 1)
      }
      const ask = { leaseMs: LONG, except: [], urgencies: [0, 1, 2], choose } as const
      const claims = await store.claimReads({ ...ask, limit: 4 })
      same(
        claims.map(({ urgency }) => urgency),
        [1, 2, 1, 2],
      )
      same(seen.slice(-4), [[], [1], [1, 2], [1, 2, 1]])
      // Another subscription of a business that is being read waits. When no other is left, nothing more is chosen.
      const except = claims.map((claim) => claim.subscription.businessUid)
      const others = await store.claimReads({ ...ask, limit: 9, except })
      same(
        others.map(({ urgency }) => urgency),
        [1, 2],
      )
      const businesses = [...claims, ...others].map((claim) => claim.subscription.businessUid)
      assert.equal(new Set(businesses).size, 6, `two reads of one business: ${businesses}`)
      same((await claimedAll(store)).length, 1)
    },
  },
  {
    name: 'claimReads: takes the longest due and the newest unread subscription in turns',
    async check({ store, pass }) {
      for (let i = 0; i < 6; i++) {
        await store.accept([eventOf(`s${i}`, { businessUid: `b${i}` })])
        await pass(3)
      }
      const claims = await store.claimReads({ leaseMs: LONG, limit: 4, except: [], urgencies: [1] })
      same(idsOf(claims).sort(), ['s0', 's1', 's4', 's5'])
      const one = () => claimed(store, { urgencies: [1] })
      same([(await one()).id, (await one()).id].sort(), ['s2', 's3'])
    },
  },
]
