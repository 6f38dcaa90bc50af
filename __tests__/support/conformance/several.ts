import assert from 'node:assert/strict'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  changeOf,
  DONE,
  eventOf,
  fails,
  has,
  idsOf,
  type Lab,
  LONG,
  SHORT,
  same,
  shows,
} from './lab.js'
import { claimLanesAtOnce, handOver } from './lanes/handing-over.js'
import { claimReadsAtOnce } from './reads/leasing.js'
import { claimSearchesAtOnce } from './reads/searching.js'

/** Two stores over one database, as two processes have them. */
export const SEVERAL: Checks = {
  async 'two stores: twenty concurrent claims lease each subscription at most once, and leave out none'(lab) {
    await claimReadsAtOnce([lab, await lab.beside()])
  },

  async 'two stores: twenty concurrent claims lease each search at most once, and leave out none'(lab) {
    await claimSearchesAtOnce([lab, await lab.beside()])
  },

  async 'two stores: twenty concurrent claims lease each entry at most once, and one of each lane'(lab) {
    await claimLanesAtOnce([lab, await lab.beside()])
  },

  async 'two stores: the later of two subscriptions of an item that end at once ends the item'(lab) {
    const other = await lab.beside()
    const stores = [lab, other]
    /** Reads both, through one store after the other or through both at once. */
    async function readBoth(uids: readonly string[], before: string | null, after: string | null) {
      for (const uid of uids) await lab.request(uid, 'b1')
      const claims: ReadClaim[] = []
      await lab.until('both are claimed', async () => claims.push(...(await lab.claimAll())) === uids.length)
      const finish = (claim: ReadClaim, at: number) => {
        const id = `${claim.id} ${after}`
        const entitlements = [{ id, businessUid: 'b1', cause: 'event' as const, before, after }]
        return stores[at]?.finishRead(claim, {
          ...shows(claim, 'purchased'),
          entitles: after !== null,
          entitlements,
        })
      }
      same(await Promise.all(claims.map(finish)), [true, true])
      return (await lab.ids({ kind: 'entitlement' })).filter((id) =>
        uids.some((uid) => id === `${uid} ${after}`),
      )
    }
    for (let i = 0; i < 10; i++) {
      const uids = [`s${i}`, `t${i}`]
      assert.ok((await readBoth(uids, null, 'item')).length > 0)
      assert.ok((await readBoth(uids, 'item', null)).length > 0)
    }
  },

  async 'two stores: each entry is handled once, and each lane in its order'(lab) {
    await handOver([lab, await lab.beside()])
  },

  async 'two stores: concurrent events of one subscription through both stores all count'(lab) {
    const stores = [lab, await lab.beside()]
    await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2]?.accept([eventOf('s1')])))
    has(await lab.claim(), { generation: 40 })
    has(await lab.counts(), { pending: 40, subscriptions: 1 })
  },

  async 'two stores: concurrent calls with the same rows in opposite orders all succeed'(lab) {
    const stores = [lab, await lab.beside()]
    const uids = Array.from({ length: 20 }, (_, i) => `s${i}`)
    const batch = (order: string[]) => [
      ...order.map((uid) => eventOf(uid, { businessUid: 'b1' })),
      eventOf('s0', { refresh: business('b1') }),
    ]
    const orders = [uids, uids, uids.toReversed(), uids.toReversed()]
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2]?.accept(batch(orders[i % 4] as string[]))),
    )
    has(await lab.counts(), { pending: 20 * 21, subscriptions: 20 })
    const claims = await lab.claimAll()
    assert.equal(claims.length, 20)
    for (const { generation } of claims)
      assert(generation >= 20 && generation <= 40, `generation is ${generation}`)
  },

  async 'two stores: an event accepted through both concurrently is stored once'(lab) {
    const stores = [lab, await lab.beside()]
    const events = Array.from({ length: 20 }, (_, i) => eventOf(`s${i}`))
    await Promise.all(events.flatMap((event) => stores.map((store) => store.accept([event]))))
    same((await lab.ids()).sort(), idsOf(events).sort())
  },

  async 'two stores: a holder that returns after its lease has expired changes nothing'(here) {
    const there = await here.beside()
    await here.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
    const late = await here.claim({ leaseMs: SHORT })
    const lateEntry = await here.leaseOne({ leaseMs: SHORT })
    const [holder, heldEntry] = [await there.next(), await there.nextEntry()]
    has(holder, { lapses: 0 })
    has(heldEntry, { lapses: 0, attempt: 1 })
    assert.equal(await here.renewRead(late, LONG), false)
    assert.equal(await here.renew(lateEntry, LONG), false)
    assert.equal(await here.succeed(late, 'purchased', { changes: [changeOf('c1')] }), false)
    same(await here.end([lateEntry], DONE), [])
    has(await here.only('b1'), { state: null, pending: true })
    assert.equal(await there.succeed(holder, 'suspended'), true)
    same(await there.end([heldEntry], DONE), ['e1'])
    has(await here.only('b1'), { state: 'suspended' })
  },

  async 'two stores: an event in one during a read of the other causes another read'(here) {
    const there = await here.beside()
    await here.request('s1', 'b1')
    const claim = await here.claim()
    await there.accept([eventOf('s1', { businessUid: 'b1' })])
    assert.equal(await here.succeed(claim, 'purchased'), true)
    has(await there.next(), { generation: 2, settledGeneration: 1 })
  },

  async 'two stores: one that closes does not close the other'(lab) {
    const there = await lab.beside()
    await there.close()
    await lab.accept([eventOf('s1')])
    assert.equal((await lab.counts()).pending, 1)
  },

  async 'otherBusinesses: counts one that has just ended, over several stores at once'(lab) {
    for (const i of [1, 2, 3, 4]) await lab.known(`s${i}`, 'purchased', `b${i}`)
    const beside = await lab.beside()
    // Each failing read is written before any conclusion, so both processes see all of them.
    const claims: ReadClaim[] = []
    for (const [i, store] of [lab, beside, lab].entries()) claims.push(await store.refuse(`s${i + 1}`))
    const failingOf = async (store: Lab, i: number) =>
      (await store.otherBusinesses(claims[i] as ReadClaim, 1_000)).failing
    same(await Promise.all([failingOf(lab, 0), failingOf(beside, 1)]), [3, 3])
    await lab.request('s3', 'b3')
    const claim = await lab.next()
    const { record } = claim.subscription
    const found = { record, state: null, gone: 'ended' } as const
    await lab.finishRead(claim, { ...fails('token_refused'), settled: true, found })
    has(await lab.counts(), { active: 3, refused: 2 })
    same([await failingOf(beside, 0), await failingOf(beside, 2)], [3, 3])
  },
}
