import assert from 'node:assert/strict'
import { MIN_READ_INTERVAL_MS } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  eventOf,
  fails,
  has,
  isNumber,
  known,
  named,
  only,
  same,
  shows,
} from '../lab.js'

const business = (businessUid: string) => ({ kind: 'business', businessUid, install: null }) as const

export const REQUESTING: readonly Check[] = [
  {
    name: 'requestRefresh: stores a subscription without an event',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      has(await store.counts(), { subscriptions: 1, requested: 1, pending: 0 })
      const claim = await claimed(store)
      has(claim, {
        id: 's1',
        generation: 1,
        settledGeneration: 0,
        lapses: 0,
        uninstalledAt: null,
        progress: null,
      })
      has(claim.subscription, { businessUid: 'b1', record: null, readAt: null, gone: null, pending: true })
      isNumber(claim.subscription.requestedAt, 'requestedAt')
    },
  },
  {
    name: 'requestRefresh: outlives a close',
    needs: 'reopen',
    async check(lab) {
      await lab.store.requestRefresh(named('s1'))
      assert.equal((await claimed(await lab.reopen())).id, 's1')
    },
  },
  {
    name: 'requestRefresh of a known subscription: marks it, and stores no new one',
    async check({ store }) {
      await store.accept([
        eventOf('s1', { refresh: { kind: 'known', subscriptionUid: 's1', businessUid: 'b1' } }),
      ])
      has(await store.counts(), { pending: 1, subscriptions: 0, requested: 0 })
      await store.requestRefresh(named('s1', 'b1'))
      await store.requestRefresh({ kind: 'known', subscriptionUid: 's1', businessUid: 'b1' })
      await store.requestRefresh({ kind: 'known', subscriptionUid: 's2', businessUid: 'b1' })
      same(
        (await claimedAll(store)).map(({ id, generation }) => [id, generation]),
        [['s1', 2]],
      )
    },
  },
  {
    name: 'requestRefresh of a business: marks all of its subscriptions, and no others',
    async check({ store }) {
      for (const [uid, of] of [
        ['s1', 'b1'],
        ['s2', 'b1'],
        ['s3', 'b2'],
      ] as const)
        await known(store, uid, 'purchased', of)
      await store.requestRefresh(business('b1'))
      await store.requestRefresh(business('nobody'))
      const pending = async (uid: string) =>
        (await store.subscriptionsOf(uid)).map((each) => [each.subscriptionUid, each.pending])
      same(await pending('b1'), [
        ['s1', true],
        ['s2', true],
      ])
      same(await pending('b2'), [['s3', false]])
      has(await store.counts(), { subscriptions: 3, requested: 2 })
    },
  },
  {
    name: 'requestRefresh: resumes the reads of a subscription that was given up',
    async check(lab) {
      const { store } = lab
      const ways = [
        () => store.requestRefresh(named('s1', 'b1')),
        () => store.requestRefresh(business('b1')),
        () => store.accept([eventOf('s1', { businessUid: 'b1' })]),
      ]
      await store.requestRefresh(named('s1', 'b1'))
      for (const revive of ways) {
        const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
        await store.finishRead(claim, fails('platform_record_missing', null))
        has(await only(store, 'b1'), { refreshAt: null, failure: 'platform_record_missing', pending: true })
        has(await store.counts(), { givenUp: 1, requested: 0 })
        // First within the pause between two reads, then after it.
        if (revive !== ways[0]) await lab.pass(MIN_READ_INTERVAL_MS + 20)
        await revive()
        has(await store.counts(), { givenUp: 0, requested: 1 })
      }
      assert.equal(
        (await lab.until('it is due', async () => (await claimedAll(store))[0])).generation,
        ways.length + 1,
      )
    },
  },
  {
    name: 'requestRefresh: clears the failure of the last read, and preserves the record',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      const ways = [
        business('b1'),
        named('s1', 'b1'),
        { kind: 'known', subscriptionUid: 's1', businessUid: 'b1' } as const,
      ]
      for (const way of ways) {
        await store.requestRefresh(way)
        const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
        await store.finishRead(claim, fails('platform_timeout'))
        has(await only(store, 'b1'), { failure: 'platform_timeout' })
        await store.requestRefresh(way)
        has(await only(store, 'b1'), { failure: null, state: 'purchased', pending: true })
      }
    },
  },
  {
    name: 'requestRefresh: the first request decides the business of an unread subscription; a later one is its candidate',
    async check({ store }) {
      await store.accept([eventOf('s1', { businessUid: 'first' })])
      await store.accept([eventOf('s1', { businessUid: 'second' })])
      await store.requestRefresh(named('s1', 'third'))
      const claim = await claimed(store)
      has(claim, { candidateBusinessUid: 'third' })
      assert.equal(claim.subscription.businessUid, 'first')
      same(await store.subscriptionsOf('third'), [])
    },
  },
  {
    name: 'finishRead: a failed read preserves the business, and may remove the candidate',
    async check(lab) {
      const { store } = lab
      const next = () => lab.until('it is due', async () => (await claimedAll(store))[0])
      for (const failure of ['platform_unreachable', 'platform_record_missing', 'token_refused']) {
        await store.accept([eventOf('s1', { businessUid: 'first' })])
        await store.accept([eventOf('s1', { businessUid: 'second' })])
        await store.finishRead(await next(), fails(failure, 0))
        const claim = await next()
        has(claim, { candidateBusinessUid: 'second' })
        await store.finishRead(claim, { ...fails(failure, 0), candidate: null })
        const last = await next()
        has(last, { candidateBusinessUid: null })
        await store.finishRead(last, fails(failure))
      }
      same(uidsOf(await store.subscriptionsOf('first')), ['s1'])
    },
  },
  {
    name: 'finishRead: after a read the record decides the business, and no event can change it',
    async check({ store }) {
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const claim = await claimed(store)
      const finish = shows(claim, 'purchased')
      const found = { ...finish.found, record: { ...finish.found?.record, business_uid: 'b2' } }
      await store.finishRead(claim, { ...finish, found: found as never, failure: 'token_refused' })
      await store.accept([eventOf('s1', { businessUid: 'forged' })])
      same(uidsOf(await store.subscriptionsOf('b2')), ['s1'])
      same([await store.subscriptionsOf('forged'), await store.subscriptionsOf('b1')].flat(), [])
    },
  },
  {
    name: 'subscriptionsOf: returns all subscriptions of a business in the order in which they were stored',
    async check(lab) {
      const { store } = lab
      const stored = ['s3', 's1', 's9', 's2']
      for (const uid of stored) {
        await store.requestRefresh(named(uid, 'b1'))
        // Two subscriptions of the same millisecond have no order.
        await lab.pass(3)
      }
      await store.requestRefresh(named('s0', 'b2'))
      await store.requestRefresh(named('s1', 'b1'))
      const [claim] = await claimedAll(store)
      if (claim) await store.finishRead(claim, shows(claim, 'purchased'))
      same(uidsOf(await store.subscriptionsOf('b1')), stored)
      same(await store.subscriptionsOf('b'), [])
    },
  },
  {
    name: 'requestRefresh: a read is pending until its generation is settled',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const claim = await claimed(store)
      await store.requestRefresh(named('s1', 'b1'))
      await store.finishRead(claim, shows(claim, 'purchased'))
      has(await only(store, 'b1'), { pending: true })
      const next = await lab.until('it is due', async () => (await claimedAll(store))[0])
      has(next, { generation: 2, settledGeneration: 1 })
      await store.finishRead(next, { ...shows(next, 'purchased'), settled: false })
      has(await only(store, 'b1'), { pending: true })
      await store.requestRefresh(named('s1', 'b1'))
      const last = await lab.until('it is due', async () => (await claimedAll(store))[0])
      has(last, { generation: 3, settledGeneration: 1 })
      await store.finishRead(last, shows(last, 'purchased'))
      has(await only(store, 'b1'), { pending: false })
    },
  },
]

const uidsOf = (subscriptions: readonly { subscriptionUid: string }[]) =>
  subscriptions.map(({ subscriptionUid }) => subscriptionUid)
