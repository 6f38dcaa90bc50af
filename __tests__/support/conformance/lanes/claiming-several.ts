import assert from 'node:assert/strict'
import { URGENCY, type Urgency } from '../../../../lib/store/port/store.js'
import { type Check, claimed, claimedAll, eventOf, idsOf, LONG, named, same, shows } from '../lab.js'

export const CLAIMING_SEVERAL: readonly Check[] = [
  {
    name: 'claimReads: leases up to the limit, of the chosen urgencies, and one subscription of each business',
    async check({ store }) {
      const seen: Urgency[][] = []
      await store.accept(
        ['b1', 'b2', 'b3', 'b3'].map((business, i) => eventOf(`event ${i}`, { businessUid: business })),
      )
      for (const uid of ['i1', 'i2', 'i3']) await store.requestRefresh(named(uid, `of ${uid}`))
      const { eventOfUnread: first, track: second } = URGENCY
      const choose = (due: readonly Urgency[], taken: readonly Urgency[]) => {
        seen.push([...taken])
        return taken.at(-1) === first ? second : due.find((urgency) => urgency === first)
      }
      const ask = { leaseMs: LONG, except: [], urgencies: [URGENCY.event, first, second], choose } as const
      const claims = await store.claimReads({ ...ask, limit: 4 })
      same(
        claims.map(({ urgency }) => urgency),
        [first, second, first, second],
      )
      same(seen.slice(-4), [[], [first], [first, second], [first, second, first]])
      // Another subscription of a business that is being read waits. When no other is left, nothing more is chosen.
      const except = claims.map((claim) => claim.subscription.businessUid)
      const others = await store.claimReads({ ...ask, limit: 9, except })
      same(
        others.map(({ urgency }) => urgency),
        [first, second],
      )
      const businesses = [...claims, ...others].map((claim) => claim.subscription.businessUid)
      assert.equal(new Set(businesses).size, 6, `two reads of one business: ${businesses}`)
      same((await claimedAll(store)).length, 1)
    },
  },
  {
    name: 'readFirst: puts the requested reads of a business before all others of their class',
    async check({ store, pass }) {
      const put = async (business: string) => store.readFirst(business)
      await store.requestRefresh(named('s1', 'of s1'))
      const other = await claimed(store, { urgencies: [URGENCY.track] })
      for (const uid of ['s2', 's3', 's4']) {
        await store.requestRefresh(named(uid, `of ${uid}`))
        await pass(3)
      }
      await put('of s3')
      // A read under way keeps its lease, and nothing happens for a business without due reads.
      await put(other.subscription.businessUid)
      await put('unknown')
      const next = await claimed(store, { urgencies: [URGENCY.track] })
      same(next.id, 's3')
      same(await store.renewRead(other, LONG), true)
      await store.finishRead(next, shows(next, 'purchased'))
      await put('of s3')
      same((await claimedAll(store)).length, 2)
    },
  },
  {
    name: 'claimReads: takes the longest due and the newest unread subscription in turns',
    async check({ store, pass }) {
      for (let i = 0; i < 6; i++) {
        await store.accept([eventOf(`s${i}`, { businessUid: `b${i}` })])
        await pass(3)
      }
      const claims = await store.claimReads({
        leaseMs: LONG,
        limit: 4,
        except: [],
        urgencies: [URGENCY.eventOfUnread],
      })
      same(idsOf(claims).sort(), ['s0', 's1', 's4', 's5'])
      const one = () => claimed(store, { urgencies: [URGENCY.eventOfUnread] })
      same([(await one()).id, (await one()).id].sort(), ['s2', 's3'])
    },
  },
]
