import assert from 'node:assert/strict'
import type { SubscriptionRecord } from '../../../../lib/base/record.js'
import { MIN_READ_INTERVAL_MS, type ReadClaim, type Store } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  eventOf,
  fails,
  has,
  isNumber,
  known,
  LATER,
  type Lab,
  leasedEntries,
  named,
  only,
  same,
  shows,
} from '../lab.js'

/** A statement and its transaction may read the clock at different moments. */
const MOMENT_MS = 1_000

export const FINISHING: readonly Check[] = [
  {
    name: 'finishRead: stores the record unchanged, with its state and the time',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      const record: SubscriptionRecord = {
        uid: 's1',
        business_uid: 'b1',
        purchasable_uid: 'item',
        purchase_state: 'purchased',
        purchase_price: 99.99,
        cancellation_date: null,
        display_name: '\u0000 \ud83d "🧾" \\ é e\u0301',
        is_active: true,
        nested: { list: [1, '2', [], {}, null], number: 1e300 },
      }
      const found = { record, state: 'purchased', gone: null }
      assert.equal(await store.finishRead(claim, { ...shows(claim, 'purchased'), found }), true)
      const subscription = await only(store, 'b1')
      has(subscription, { record, state: 'purchased', gone: null, pending: false, failure: null })
      isNumber(subscription.readAt, 'readAt')
      assert(subscription.readAt >= (subscription.requestedAt ?? Number.NaN), 'read before it was requested')
    },
  },
  {
    name: 'finishRead: a failed read preserves the record and stores the failure',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      const before = await only(store, 'b1')
      const claim = await due(lab, named('s1', 'b1'))
      assert.equal(await store.finishRead(claim, fails('platform_timeout')), true)
      const { record, state, gone, readAt } = before
      has(await only(store, 'b1'), {
        record,
        state,
        gone,
        readAt,
        pending: true,
        failure: 'platform_timeout',
      })
    },
  },
  {
    name: 'finishRead: preserves the record of a subscription that is gone; only a confirmed read changes readAt',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      const { record, readAt } = await only(store, 'b1')
      const claim = await due(lab, named('s1', 'b1'))
      const found = { record, state: null, gone: 'revoked' } as const
      await store.finishRead(claim, { ...shows(claim, ''), found, failure: 'token_refused' })
      has(await only(store, 'b1'), { record, state: null, gone: 'revoked', failure: 'token_refused' })
      const again = await due(lab, named('s1', 'b1'))
      assert.equal(again.subscription.gone, 'revoked')
      await store.finishRead(again, {
        ...shows(again, ''),
        found: { record, state: 'canceled', gone: null },
      })
      const after = await only(store, 'b1')
      has(after, { state: 'canceled', gone: null })
      assert((after.readAt ?? 0) > (readAt ?? 0), 'a read that found something did not move readAt')
    },
  },
  {
    name: 'finishRead: returns progress unchanged with the next claim',
    async check(lab) {
      const { store } = lab
      const progress = '{ "tries": 2, "why": "\\u0000 €" }'
      await store.requestRefresh(named('s1'))
      await store.finishRead(await claimed(store), { ...fails('platform_timeout', 0), progress })
      const claim = await next(lab)
      assert.equal(claim.progress, progress)
      await store.finishRead(claim, fails('platform_timeout', 0))
      assert.equal((await next(lab)).progress, null)
    },
  },
  {
    name: 'finishRead: makes the next read due after nextInMs, at once for 0, and never for null',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      await store.finishRead(claim, shows(claim, 'purchased', { nextInMs: 0 }))
      const again = await next(lab)
      await store.finishRead(again, shows(again, 'purchased', { nextInMs: LATER }))
      const { readAt, refreshAt } = await only(store, 'b1')
      isNumber(refreshAt, 'refreshAt')
      assertAbout(refreshAt - (readAt ?? 0), LATER)
      const third = await due(lab, named('s1', 'b1'))
      await store.finishRead(third, shows(third, 'purchased', { nextInMs: null }))
      has(await only(store, 'b1'), { refreshAt: null })
      has(await store.counts(), { givenUp: 1 })
    },
  },
  ...[null, LATER, 0].map(
    (nextInMs): Check => ({
      name: `finishRead: a read requested during a read is due after the pause, whatever nextInMs is (${nextInMs})`,
      async check(lab) {
        const { store } = lab
        await store.requestRefresh(named('s1', 'b1'))
        const claim = await claimed(store)
        await store.accept([eventOf('s1', { businessUid: 'b1' })])
        assert.equal(await store.finishRead(claim, shows(claim, 'purchased', { nextInMs })), true)
        const { readAt, refreshAt, pending } = await only(store, 'b1')
        assert.equal(pending, true)
        isNumber(refreshAt, 'refreshAt')
        assertAbout(refreshAt - (readAt ?? 0), MIN_READ_INTERVAL_MS)
        has(await next(lab), { generation: 2, settledGeneration: 1 })
      },
    }),
  ),
  {
    name: 'finishRead: an event after a read makes the next one due exactly after the pause',
    async check({ store }) {
      await known(store, 's1', 'purchased', 'b1')
      for (let i = 0; i < 5; i++) await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const { readAt, refreshAt, requestedAt } = await only(store, 'b1')
      const earliest = Math.max((readAt ?? 0) + MIN_READ_INTERVAL_MS, 0)
      assert((refreshAt ?? 0) >= earliest - MOMENT_MS / 10, 'due before the pause between two reads was over')
      assert((refreshAt ?? Infinity) <= Math.max(earliest, requestedAt ?? 0) + MOMENT_MS, 'due too late')
    },
  },
  {
    name: 'finishRead: clears the uninstall only with clearUninstalled',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1', 'b1'))
      await store.requestRefresh({
        kind: 'business',
        businessUid: 'b1',
        install: { installed: false, at: null },
      })
      const claim = await claimed(store)
      await store.finishRead(claim, shows(claim, 'purchased', { nextInMs: 0 }))
      const second = await next(lab)
      assert.equal(second.uninstalledAt, claim.uninstalledAt)
      await store.finishRead(second, shows(second, 'purchased', { nextInMs: 0, clearUninstalled: true }))
      assert.equal((await next(lab)).uninstalledAt, null)
    },
  },
  {
    name: 'finishRead: writes the change of the read, with its cause, in the same transaction',
    async check({ store }) {
      await store.requestRefresh(named('s2', 'b1'))
      const claim = await claimed(store)
      const payload = '{"to":"purchased"}'
      const change = { id: 'c1', key: 'subscription:s2', businessUid: 'b1', cause: claim.cause, payload }
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] })), true)
      const [listed] = await store.listEntries({ kind: 'change' })
      has(listed, { id: 'c1', name: '', status: 'pending', businessUid: 'b1', subscriptionUid: 's2' })
      same(listed?.payload, { to: 'purchased' })
      const [leased] = await leasedEntries(store, { topics: ['change'] })
      has(leased, { id: 'c1', kind: 'change', key: 'subscription:s2', payload, attempt: 1 })
      isNumber(leased?.receivedAt, 'receivedAt')
    },
  },
  {
    name: 'finishRead: writes nothing when the change cannot be written, and the lease remains',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      const change = { id: 'c1', key: 'k', businessUid: 'b1', cause: claim.cause, payload: '1' }
      const broken = { ...change, payload: null as unknown as string }
      await assert.rejects(store.finishRead(claim, shows(claim, 'purchased', { changes: [broken] })))
      has(await only(store, 'b1'), { record: null, state: null, readAt: null, pending: true })
      same(await store.listEntries({}), [])
      same(await claimedAll(store), [])
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] })), true)
      assert.equal((await store.listEntries({})).length, 1)
    },
  },
]

/** Requests the read, and leases it after the pause. */
async function due(lab: Lab, request: Parameters<Store['requestRefresh']>[0]): Promise<ReadClaim> {
  await lab.store.requestRefresh(request)
  return next(lab)
}

function next({ store, until }: Lab): Promise<ReadClaim> {
  return until('the next read is due', async () => (await claimedAll(store))[0])
}

function assertAbout(ms: number, expected: number) {
  assert(
    ms >= expected - MOMENT_MS / 10 && ms <= expected + MOMENT_MS,
    `${ms} ms, expected about ${expected} ms`,
  )
}
