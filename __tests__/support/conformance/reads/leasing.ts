import assert from 'node:assert/strict'
import { URGENCY } from '../../../../lib/store/port/store.js'
import {
  ALL_URGENCIES,
  type Check,
  claimed,
  claimedAll,
  claimOne,
  eventOf,
  fails,
  has,
  idsOf,
  isNumber,
  known,
  LATER,
  LONG,
  named,
  only,
  REQUESTED,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const LEASING: readonly Check[] = [
  {
    name: 'claimReads: returns nothing when nothing is due',
    async check({ store }) {
      const nothing = async () => same(await claimedAll(store), [])
      await nothing()
      await known(store, 's1')
      await nothing()
      await store.requestRefresh(named('s2'))
      await store.finishRead(await claimed(store), fails('platform_refused', null))
      await store.requestRefresh(named('s3'))
      await store.finishRead(await claimed(store), fails('platform_timeout', LATER))
      await nothing()
    },
  },
  {
    name: 'claimReads: returns the data that a read needs',
    async check({ store }) {
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.requestRefresh({
        kind: 'business',
        businessUid: 'b1',
        install: { installed: false, at: null },
      })
      const before = await only(store, 'b1')
      const claim = await claimed(store)
      has(claim, { id: 's1', generation: 2, settledGeneration: 0, lapses: 0, progress: null })
      has(claim.subscription, { subscriptionUid: 's1', businessUid: 'b1', requestedAt: before.requestedAt })
      isNumber(claim.createdAt, 'createdAt')
      isNumber(claim.uninstalledAt, 'uninstalledAt')
      isNumber(claim.generation, 'generation')
      isNumber(claim.settledGeneration, 'settledGeneration')
      isNumber(claim.lapses, 'lapses')
      isNumber(claim.subscription.requestedAt, 'requestedAt')
      isNumber(claim.subscription.refreshAt, 'refreshAt')
      assert(claim.createdAt <= claim.subscription.requestedAt, 'it was requested before it was created')
      assert.match(claim.leaseToken, /./)
    },
  },
  {
    name: 'claimReads: gives every lease another token',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1'), eventOf('s2')])
      const tokens = [await claimed(store, { leaseMs: SHORT }), await claimed(store)].map(tokenOf)
      tokens.push(tokenOf(await lab.until('a lease runs out', async () => (await claimedAll(store))[0])))
      assert.equal(new Set(tokens).size, 3)
    },
  },
  {
    name: 'claimReads: leases nothing of the excepted businesses',
    async check({ store }) {
      await store.accept(['s1', 's2'].map((uid) => eventOf(uid, { businessUid: 'b1' })))
      await store.accept([eventOf('s3', { businessUid: 'b2' })])
      const many = Array.from({ length: 500 }, (_, i) => `busy ${i}`)
      assert.equal((await claimed(store, { except: ['b1', ...many] })).id, 's3')
      const except = [...many, 'b1']
      assert.equal(await claimOne(store, { leaseMs: LONG, except, urgencies: ALL_URGENCIES }), undefined)
      same(idsOf(await claimedAll(store)).sort(), ['s1', 's2'])
    },
  },
  {
    name: 'claimReads: a read has the urgency of its request, also after a failure',
    async check(lab) {
      const { store } = lab
      const urgencyOf = async (uid: string) => {
        const claim = await lab.until('it is due', async () =>
          (await claimedAll(store)).find(({ id }) => id === uid),
        )
        return { claim, urgency: claim.urgency }
      }
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.requestRefresh(named('s2', 'b2'))
      const { event, eventOfUnread, track, verification: verifying, reconcile: routine } = URGENCY
      const others = [event, track, verifying, routine]
      const second = await claimed(store, { urgencies: others })
      has(second, { id: 's2', urgency: track })
      has(await claimed(store, { urgencies: [...others, eventOfUnread] }), {
        id: 's1',
        urgency: eventOfUnread,
      })
      await store.finishRead(second, fails('platform_timeout', 0))
      const retry = await urgencyOf('s2')
      assert.equal(retry.urgency, track)
      await store.finishRead(
        retry.claim,
        shows(retry.claim, 'purchased', { nextInMs: 0, urgency: verifying }),
      )
      const verification = await urgencyOf('s2')
      assert.equal(verification.urgency, verifying)
      await store.finishRead(
        verification.claim,
        shows(verification.claim, 'purchased', { nextInMs: 0, urgency: routine }),
      )
      const reconcile = await urgencyOf('s2')
      assert.equal(reconcile.urgency, routine)
      await store.accept([eventOf('s2', { businessUid: 'b2' })])
      await store.requestRefresh(named('s2', 'b2'))
      await store.finishRead(reconcile.claim, shows(reconcile.claim, 'purchased', { urgency: routine }))
      assert.equal((await urgencyOf('s2')).urgency, event)
    },
  },
  {
    name: 'claimReads: takes the urgencies in the given order, and in each the longest due first',
    async check({ store, pass }) {
      await store.requestRefresh(named('s2'))
      await pass(3)
      await store.requestRefresh(named('s3'))
      await pass(3)
      await store.accept([eventOf('s1')])
      const ids = []
      const { reconcile, eventOfUnread, event, track } = URGENCY
      const urgencies = [reconcile, eventOfUnread, event, track]
      for (let i = 0; i < 3; i++) ids.push((await claimed(store, { urgencies })).id)
      same(ids, ['s1', 's2', 's3'])
    },
  },
  {
    name: 'claimReads: very many due subscriptions of an excepted business do not hide the later ones',
    async check({ store }) {
      await store.accept(
        Array.from({ length: 1_000 }, (_, i) => eventOf(`busy ${i}`, { businessUid: 'busy' })),
      )
      await store.accept([eventOf('s1')])
      has(await claimed(store, { except: ['busy'] }), { id: 's1' })
    },
  },
  {
    name: 'claimReads: twenty concurrent claims lease each subscription at most once, and leave out none',
    async check(lab) {
      const { store } = lab
      const uids = Array.from({ length: 10 }, (_, i) => `s${i}`)
      await store.accept(uids.map((uid) => eventOf(uid)))
      const leased: string[] = []
      await lab.until('all are leased', async () => {
        const claims = await Promise.all(
          Array.from({ length: 20 }, () =>
            claimOne(store, { leaseMs: LONG, except: [], urgencies: REQUESTED }),
          ),
        )
        leased.push(...claims.flatMap((claim) => claim?.id ?? []))
        return leased.length >= uids.length
      })
      same(leased.sort(), uids)
      same(await claimedAll(store), [])
    },
  },
  {
    name: 'renewRead: extends a lease',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1'))
      const claim = await claimed(store, { leaseMs: 200 })
      assert.equal(await store.renewRead(claim, LONG), true)
      await lab.pass(250)
      same(await claimedAll(store), [])
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased')), true)
    },
  },
  {
    name: 'renewRead: can shorten a lease, which then passes to the next claim',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1'))
      const claim = await claimed(store, { leaseMs: LONG })
      assert.equal(await store.renewRead(claim, SHORT), true)
      await lab.until('the lease runs out', async () => (await claimedAll(store))[0])
      assert.equal(await store.renewRead(claim, LONG), false)
    },
  },
  {
    name: 'renewRead: returns false and changes nothing for a finished or forged lease',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      const made = { id: 's1', leaseToken: 'made up' }
      assert.equal(await store.renewRead(made, SHORT), false)
      assert.equal(await store.renewRead({ id: 's2', leaseToken: claim.leaseToken }, SHORT), false)
      await store.finishRead(claim, shows(claim, 'purchased'))
      const before = await only(store, 'b1')
      assert.equal(await store.renewRead(claim, SHORT), false)
      same(await only(store, 'b1'), before)
    },
  },
]

const tokenOf = ({ leaseToken }: { leaseToken: string }) => leaseToken
