import assert from 'node:assert/strict'
import type { Urgency } from '../store/store.js'
import { type Check, claimed, claimedAll, eventOf, idsOf, LONG, named, same } from './lab.js'

export const CLAIMING_SEVERAL: readonly Check[] = [
  {
    name: 'claimReads: leases as many as it is asked for, of the classes that are chosen, and one of a business',
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
      // Another of a business that is read now waits; nothing more is chosen once there is none.
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
    name: 'claimReads: of what was never read takes the longest due and the newest by turns',
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
