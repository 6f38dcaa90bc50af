import assert from 'node:assert/strict'
import type { SubscriptionRecord } from '../../../../lib/base/record.js'
import { MIN_READ_INTERVAL_MS } from '../../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  changeOf,
  eventOf,
  fails,
  has,
  idsOf,
  isNumber,
  LATER,
  type Lab,
  SHORT,
  same,
  shows,
} from '../lab.js'

/** A statement and its transaction may read the clock at different moments. */
const MOMENT_MS = 1_000

export const FINISHING: Checks = {
  async 'finishRead: stores the record unchanged, with its state and the time'(lab) {
    await lab.request('s1', 'b1')
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
    await lab.read('purchased', { found: { record, state: 'purchased', gone: null } })
    const { readAt, requestedAt, ...row } = await lab.only('b1')
    has(row, { record, state: 'purchased', gone: null, pending: false, failure: null })
    isNumber(readAt, 'readAt')
    assert(readAt >= (requestedAt ?? Number.NaN), 'read before it was requested')
  },

  async 'finishRead: a failed read preserves the record and stores the failure'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    const { record, state, gone, readAt } = await lab.only('b1')
    await lab.request('s1', 'b1')
    assert.equal(await lab.fail(await lab.next(), 'platform_timeout'), true)
    const failure = 'platform_timeout'
    has(await lab.only('b1'), { record, state, gone, readAt, pending: true, failure })
  },

  async 'finishRead: preserves the record of a subscription that is gone; only a confirmed read changes readAt'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    const { record, readAt } = await lab.only('b1')
    await lab.request('s1', 'b1')
    await lab.read('', { found: { record, state: null, gone: 'revoked' }, failure: 'token_refused' })
    has(await lab.only('b1'), { record, state: null, gone: 'revoked', failure: 'token_refused' })
    await lab.request('s1', 'b1')
    const again = await lab.read('', { found: { record, state: 'canceled', gone: null } })
    assert.equal(again.subscription.gone, 'revoked')
    const after = await lab.only('b1')
    has(after, { state: 'canceled', gone: null })
    assert((after.readAt ?? 0) > (readAt ?? 0), 'a read that found something did not move readAt')
  },

  async 'finishRead: returns progress unchanged with the next claim'(lab) {
    const progress = '{ "tries": 2, "why": "\\u0000 €" }'
    await lab.request('s1')
    await lab.finishRead(await lab.claim(), { ...fails('platform_timeout', 0), progress })
    const claim = await lab.next()
    assert.equal(claim.progress, progress)
    await lab.fail(claim, 'platform_timeout', 0)
    has(await lab.next(), { progress: null })
  },

  async 'finishRead: makes the next read due after nextInMs, at once for 0, and never for null'(lab) {
    await lab.request('s1', 'b1')
    await lab.read('purchased', { nextInMs: 0 })
    await lab.read('purchased', { nextInMs: LATER })
    await isDueAfterTheRead(lab, LATER)
    await lab.request('s1', 'b1')
    await lab.read('purchased', { nextInMs: null })
    has(await lab.only('b1'), { refreshAt: null })
    has(await lab.counts(), { givenUp: 1 })
  },

  async 'finishRead: a read requested during a read is due after the pause, whatever nextInMs is'(lab) {
    for (const [i, nextInMs] of [null, LATER, 0].entries()) {
      const [uid, businessUid] = [`s${i}`, `b${i}`]
      await lab.request(uid, businessUid)
      const claim = await lab.claim()
      await lab.accept([eventOf(uid, { businessUid })])
      assert.equal(await lab.succeed(claim, 'purchased', { nextInMs }), true)
      has(await lab.only(businessUid), { pending: true })
      await isDueAfterTheRead(lab, MIN_READ_INTERVAL_MS, businessUid)
      has(await lab.read('purchased'), { id: uid, generation: 2, settledGeneration: 1 })
    }
  },

  async 'finishRead: every read has been tried, also one that showed nothing'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    const { readAt, triedAt } = await lab.only('b1')
    isNumber(triedAt, 'triedAt')
    await lab.pass(3)
    await lab.refuse('s1')
    const after = await lab.only('b1')
    same(after.readAt, readAt)
    assert(Number(after.triedAt) > triedAt, 'the refused read does not count')
  },

  async 'finishRead: of a read during which another was requested, the failure does not count, and the second is owed since it was requested'(
    lab,
  ) {
    await lab.request('s1', 'b1')
    for (const finish of [() => fails('platform_timeout'), shows]) {
      const claim = await lab.next()
      await lab.pass(3)
      await lab.request('s1', 'b1')
      const { requestedAt } = await lab.only('b1')
      isNumber(requestedAt, 'requestedAt')
      assert.equal(await lab.finishRead(claim, finish(claim, 'purchased')), true)
      const { owedSince, ...row } = await lab.only('b1')
      has(row, { failure: null, pending: true })
      if (finish === shows) same(owedSince, requestedAt)
      else assert(Number(owedSince) < requestedAt, 'the first request is no longer owed')
    }
  },

  async 'finishRead: a read that ends after its lease counts as of the end of the lease'(lab) {
    const beganAt = performance.now()
    await lab.request('s1', 'b1')
    const claim = await lab.claim({ leaseMs: SHORT })
    const leasedMs = performance.now() - beganAt + SHORT
    const { requestedAt } = await lab.only('b1')
    await lab.pass(200)
    assert.equal(await lab.succeed(claim, 'purchased'), true)
    const { readAt } = await lab.only('b1')
    const ms = Number(readAt) - Number(requestedAt)
    assert(ms < leasedMs + 20, `read ${ms} ms after it was requested, with a lease until ${leasedMs} ms`)
  },

  async 'finishRead: an announced end of one that has ended before is written, also if it is requested meanwhile'(
    lab,
  ) {
    const gone = { found: { record: null, state: null, gone: 'revoked' }, nextInMs: 0 } as const
    await lab.known('s1', 'purchased', 'b1')
    await lab.request('s1', 'b1')
    await lab.read('', gone)
    const claim = await lab.next()
    await lab.request('s1', 'b1')
    assert.equal(await lab.succeed(claim, '', gone), true)
  },

  async 'D6 finishRead: of two holders of one subscription that finish together, only the last one writes'(
    lab,
  ) {
    for (const uid of ['s1', 's2']) await lab.request(uid, `of ${uid}`)
    const ahead = await lab.next('s2')
    await lab.request('s3')
    const late = await lab.next()
    await lab.renewRead(late, SHORT)
    const holder = await lab.next()
    same([late.id, holder.id], ['s3', 's3'])
    const finish = (claim: typeof late) =>
      lab.succeed(claim, 'purchased', { changes: [changeOf(claim.leaseToken)] })
    same(await Promise.all([finish(ahead), finish(late), finish(holder)]), [true, false, true])
    same(
      (await lab.ids({ kind: 'change' })).sort(),
      [ahead, holder].map(({ leaseToken }) => leaseToken).sort(),
    )
  },

  async 'finishRead: an event after a read makes the next one due exactly after the pause'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    for (let i = 0; i < 5; i++) await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const { readAt, refreshAt, requestedAt } = await lab.only('b1')
    const earliest = (readAt ?? 0) + MIN_READ_INTERVAL_MS
    assert((refreshAt ?? 0) >= earliest - MOMENT_MS / 10, 'due before the pause between two reads was over')
    assert((refreshAt ?? Infinity) <= Math.max(earliest, requestedAt ?? 0) + MOMENT_MS, 'due too late')
  },

  async 'finishRead: clears the uninstall only with clearUninstalled'(lab) {
    await lab.request('s1', 'b1')
    await lab.requestRefresh(business('b1', false))
    const { uninstalledAt } = await lab.read('purchased', { nextInMs: 0 })
    has(await lab.read('purchased', { nextInMs: 0, clearUninstalled: true }), { uninstalledAt })
    has(await lab.next(), { uninstalledAt: null })
  },

  async 'finishRead: writes the change of the read, with its cause, in the same transaction'(lab) {
    const payload = '{"to":"purchased"}'
    await lab.request('s2', 'b1')
    await lab.read('purchased', { changes: [changeOf('c1', { key: 'k', cause: 'request', payload })] })
    const [listed] = await lab.listEntries({ kind: 'change' })
    has(listed, { id: 'c1', name: '', status: 'pending', businessUid: 'b1', subscriptionUid: 's2' })
    same(listed?.payload, { to: 'purchased' })
    const leased = await lab.leaseOne({ topics: ['change'] })
    has(leased, { id: 'c1', kind: 'change', key: 'k', payload, attempt: 1 })
    isNumber(leased.receivedAt, 'receivedAt')
  },

  async 'finishRead: writes nothing when the change cannot be written, and the lease remains'(lab) {
    await lab.request('s1', 'b1')
    const claim = await lab.claim()
    const broken = changeOf('c1', { payload: null as unknown as string })
    await assert.rejects(lab.succeed(claim, 'purchased', { changes: [broken] }))
    has(await lab.only('b1'), { record: null, state: null, readAt: null, pending: true })
    same(await lab.ids(), [])
    same(await lab.claimAll(), [])
    assert.equal(await lab.succeed(claim, 'purchased', { changes: [changeOf('c1')] }), true)
    same(await lab.ids(), ['c1'])
  },

  async 'finishRead: of reads that end together, one that cannot be written and one without its lease fail alone'(
    lab,
  ) {
    for (let i = 0; i < 12; i++) await lab.request(`s${i}`)
    const claims = await lab.claimAll()
    const finished = await Promise.allSettled(
      claims.map((claim, i) => {
        const payload = (i === 2 ? null : '1') as string
        const held = i === 5 ? { ...claim, leaseToken: 'another' } : claim
        return lab.finishRead(
          held,
          shows(held, 'purchased', { changes: [changeOf(`of ${claim.id}`, { payload })] }),
        )
      }),
    )
    const results = finished.map((each) => (each.status === 'fulfilled' ? each.value : each.status))
    same(
      results,
      claims.map((_, i) => (i === 2 ? 'rejected' : i !== 5)),
    )
    const written = idsOf(claims.filter((_, i) => i !== 2 && i !== 5))
    same((await lab.ids({ kind: 'change' })).sort(), written.map((id) => `of ${id}`).sort())
    for (const { id } of claims)
      has(await lab.only(`business of ${id}`), { state: written.includes(id) ? 'purchased' : null })
  },
}

async function isDueAfterTheRead(lab: Lab, expectedMs: number, businessUid = 'b1') {
  const { readAt, refreshAt } = await lab.only(businessUid)
  isNumber(refreshAt, 'refreshAt')
  const ms = refreshAt - (readAt ?? 0)
  assert(
    ms >= expectedMs - MOMENT_MS / 10 && ms <= expectedMs + MOMENT_MS,
    `due after ${ms} ms, expected about ${expectedMs} ms`,
  )
}
