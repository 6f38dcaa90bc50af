import assert from 'node:assert/strict'
import { MIN_READ_INTERVAL_MS, URGENCY } from '../../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  eventOf,
  fails,
  has,
  idsOf,
  ifKnown,
  isNumber,
  LONG,
  named,
  same,
  shows,
  uidsOf,
} from '../lab.js'

export const REQUESTING: Checks = {
  async 'requestRefresh: stores a subscription without an event'(lab) {
    await lab.request('s1', 'b1')
    has(await lab.counts(), { subscriptions: 1, requested: 1, pending: 0 })
    const claim = await lab.claim()
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

  async 'requestRefresh of a known subscription: marks it, and stores no new one'(lab) {
    await lab.accept([eventOf('s1', { refresh: ifKnown('s1', 'b1') })])
    has(await lab.counts(), { pending: 1, subscriptions: 0, requested: 0 })
    await lab.request('s1', 'b1')
    await lab.requestRefresh(ifKnown('s1', 'b1'))
    await lab.requestRefresh(ifKnown('s2', 'b1'))
    const [claim, ...others] = await lab.claimAll()
    has(claim, { id: 's1', generation: 2 })
    same(others, [])
  },

  async 'requestRefresh of a business: marks all of its subscriptions, and no others'(lab) {
    for (const uid of ['s1', 's2']) await lab.known(uid, 'purchased', 'b1')
    await lab.known('s3', 'purchased', 'b2')
    await lab.requestRefresh(business('b1'))
    await lab.requestRefresh(business('nobody'))
    for (const each of await lab.subscriptionsOf('b1')) has(each, { pending: true })
    has(await lab.only('b2'), { pending: false })
    has(await lab.counts(), { subscriptions: 3, requested: 2 })
  },

  async 'requestRefresh: resumes the reads of a subscription that was given up'(lab) {
    const ways = [
      () => lab.request('s1', 'b1'),
      () => lab.requestRefresh(business('b1')),
      () => lab.accept([eventOf('s1', { businessUid: 'b1' })]),
    ]
    await lab.request('s1', 'b1')
    for (const revive of ways) {
      await lab.fail(await lab.next(), 'platform_record_missing', null)
      has(await lab.only('b1'), { refreshAt: null, failure: 'platform_record_missing', pending: true })
      has(await lab.counts(), { givenUp: 1, requested: 0 })
      // First within the pause between two reads, then after it.
      if (revive !== ways[0]) await lab.pass(MIN_READ_INTERVAL_MS + 20)
      await revive()
      has(await lab.counts(), { givenUp: 0, requested: 1 })
    }
    has(await lab.next(), { generation: ways.length + 1 })
  },

  async 'requestRefresh: a row that is due keeps its place; one that is given up has the cause and one that is settled the urgency of its request'(
    lab,
  ) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const { refreshAt } = await lab.only('b1')
    for (const again of [business('b1'), named('s1', 'b1'), ifKnown('s1', 'b1')]) {
      await lab.pass(3)
      await lab.requestRefresh(again)
      has(await lab.only('b1'), { refreshAt, owedSince: refreshAt })
    }
    await lab.fail(await lab.claim(), 'platform_record_missing', null)
    await lab.request('s1', 'b1')
    has(await lab.read('purchased'), { cause: 'request' })
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    has(await lab.read('purchased'), { urgency: URGENCY.event })
    await lab.request('s1', 'b1')
    has(await lab.next(), { urgency: URGENCY.track })
  },

  async 'requestRefresh: a due row that gets another class is due there from now on'(lab) {
    await lab.request('s1', 'b1')
    const { refreshAt } = await lab.only('b1')
    await lab.pass(3)
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    assert(Number((await lab.only('b1')).refreshAt) > Number(refreshAt))
    has(await lab.claim(), { urgency: URGENCY.eventOfUnread })
  },

  async 'requestRefresh: of a business leaves what was never read in its class, so it delays no other read of the business'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.accept([eventOf('made up', { businessUid: 'b1' })])
    const denied = { ...fails('platform_record_missing', LONG), settled: true }
    assert.equal(await lab.finishRead(await lab.next(), denied), true)
    await lab.request('tracked', 'b1')
    await lab.requestRefresh(business('b1'))
    await lab.pass(MIN_READ_INTERVAL_MS)
    has(await lab.claim({ urgencies: [URGENCY.eventOfUnread] }), { id: 'made up' })
    const tracks = [URGENCY.track]
    const others = [await lab.claim({ urgencies: tracks }), await lab.claim({ urgencies: tracks })]
    same(idsOf(others).sort(), ['s1', 'tracked'])
  },

  async 'requestRefresh: clears the failure of the last read, and preserves the record'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    for (const way of [business('b1'), named('s1', 'b1'), ifKnown('s1', 'b1')]) {
      await lab.requestRefresh(way)
      await lab.fail(await lab.next(), 'platform_timeout')
      has(await lab.only('b1'), { failure: 'platform_timeout' })
      await lab.requestRefresh(way)
      has(await lab.only('b1'), { failure: null, state: 'purchased', pending: true })
    }
  },

  async 'requestRefresh: the first request decides the business of an unread subscription; a later one is its candidate'(
    lab,
  ) {
    for (const businessUid of ['first', 'second']) await lab.accept([eventOf('s1', { businessUid })])
    // The last one names the first business again, and so no candidate.
    for (const businessUid of ['third', 'first']) await lab.request('s1', businessUid)
    const claim = await lab.claim()
    assert.equal(claim.candidateBusinessUid, 'third')
    assert.equal(claim.subscription.businessUid, 'first')
    same(await lab.subscriptionsOf('third'), [])
  },

  async 'finishRead: a failed read preserves the business, and may remove the candidate'(lab) {
    for (const failure of ['platform_unreachable', 'platform_record_missing', 'token_refused']) {
      for (const businessUid of ['first', 'second']) await lab.accept([eventOf('s1', { businessUid })])
      await lab.fail(await lab.next(), failure, 0)
      const claim = await lab.next()
      assert.equal(claim.candidateBusinessUid, 'second')
      await lab.finishRead(claim, { ...fails(failure, 0), candidate: null })
      const last = await lab.next()
      assert.equal(last.candidateBusinessUid, null)
      await lab.fail(last, failure)
    }
    has(await lab.only('first'), { subscriptionUid: 's1' })
  },

  async 'finishRead: after a read the record decides the business, and no event can change it'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const claim = await lab.claim()
    const { found } = shows(
      { ...claim, subscription: { ...claim.subscription, businessUid: 'b2' } },
      'purchased',
    )
    assert(found)
    await lab.succeed(claim, 'purchased', { found, failure: 'token_refused' })
    await lab.accept([eventOf('s1', { businessUid: 'forged' })])
    has(await lab.only('b2'), { subscriptionUid: 's1' })
    same([await lab.subscriptionsOf('forged'), await lab.subscriptionsOf('b1')], [[], []])
  },

  async 'subscriptionsOf: returns all subscriptions of a business in the order in which they were stored'(
    lab,
  ) {
    const stored = ['s3', 's1', 's9', 's2']
    for (const uid of stored) {
      await lab.request(uid, 'b1')
      // Those of the same millisecond are in the order of their uids.
      await lab.pass(3)
    }
    await lab.request('s0', 'b2')
    await lab.request('s1', 'b1')
    const claims = await lab.claimAll()
    same(idsOf(claims).sort(), ['s0', ...stored].sort())
    for (const claim of claims.slice(0, 1)) await lab.succeed(claim, 'purchased')
    same(uidsOf(await lab.subscriptionsOf('b1')), stored)
    same(await lab.subscriptionsOf('b'), [])
    await lab.accept(['t3', 't1', 't2'].map((uid) => eventOf(uid, { businessUid: 'b3' })))
    same(uidsOf(await lab.subscriptionsOf('b3')), ['t1', 't2', 't3'])
  },

  async 'requestRefresh: a read is pending until its generation is settled'(lab) {
    const isPending = async () => (await lab.only('b1')).pending
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const claim = await lab.claim()
    await lab.request('s1', 'b1')
    await lab.succeed(claim, 'purchased')
    assert.equal(await isPending(), true)
    has(await lab.read('purchased', { settled: false }), { generation: 2, settledGeneration: 1 })
    assert.equal(await isPending(), true)
    await lab.request('s1', 'b1')
    has(await lab.read('purchased'), { generation: 3, settledGeneration: 1 })
    assert.equal(await isPending(), false)
  },
}
