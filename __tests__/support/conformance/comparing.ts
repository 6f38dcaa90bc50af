import assert from 'node:assert/strict'
import type { ReadFinish } from '../../../lib/store/port/store.js'
import { business, type Checks, fails, has, idsOf, type Lab, same, shows, uidsOf } from './lab.js'

export const COMPARING: Checks = {
  async 'otherBusinesses: compares the failing businesses with those that were served since'(lab) {
    await purchased(lab, 1, 2, 3)
    await lab.known('s4', 'canceled', 'b4')
    const first = await lab.refuse('s1')
    const alone = { failing: 1, served: 0, recovered: 0, isSteady: false, exist: true, untested: 2 }
    has(await lab.otherBusinesses(first, 0), { ...alone, lately: { failing: 1, served: 0 } })
    await lab.pass(50)
    await lab.request('s2', 'b2')
    await lab.read('purchased')
    has(await lab.otherBusinesses(first, 40), { failing: 1, served: 1, isSteady: true, exist: true })
    has(await lab.counts(), { refusedLately: 1, servedMeanwhile: 1 })
    await lab.refuse('s2')
    has(await lab.otherBusinesses(first, 40), { failing: 2, served: 0, exist: true })
    await lab.refuse('s3')
    has(await lab.otherBusinesses(first, 40), { untested: 0, lately: { failing: 3, served: 0 } })
    has(await lab.counts(), { active: 3, refused: 3, withoutToken: 3, hidden: 0, leaving: 0 })
    has(await lab.counts(), { refusedLately: 3, servedMeanwhile: 0 })
    for (const uid of ['b2', 'b3']) await lab.requestRefresh(business(uid, false))
    // Those whose end is announced are not expected to be served.
    const announced = { failing: 3, served: 0, exist: false, lately: { failing: 1, served: 0 } }
    has(await lab.otherBusinesses(first, 40), announced)
    has(await lab.counts(), { active: 3, refused: 3, leaving: 2, refusedLately: 1 })
    await lab.pass(1_000)
    await lab.request('s2', 'b2')
    await lab.succeed(await lab.next('s2'), 'purchased')
    has(await lab.otherBusinesses(first, 1_000), { failing: 2, served: 1, recovered: 1, isSteady: false })
  },

  async 'otherBusinesses, counts: a business counts once, however many subscriptions it has, and as hidden, leaving or stale only if all of them are'(
    lab,
  ) {
    const uids = ['s1', 's1 too', 's2', 's2 too', 's3', 's3 too', 's4', 's4 too']
    for (const uid of uids) await lab.known(uid, 'purchased', uid.slice(0, 2))
    await lab.pass(1_000)
    const [, , , later, ...served] = uids
    for (const uid of [String(later), ...served.slice(0, 2)]) {
      await lab.request(uid, uid.slice(0, 2))
      await lab.read('purchased')
    }
    for (const uid of ['s2', 's2 too', 's1 too']) await lab.refuse(uid)
    await lab.request('s1', 's1')
    const claim = await lab.next()
    await lab.fail(claim, 'platform_record_missing')
    has(await lab.counts(), {
      active: 4,
      refused: 2,
      hidden: 0,
      withoutToken: 2,
      leaving: 0,
      refusedLately: 2,
    })
    for (const uid of served.slice(0, 2)) {
      await lab.request(uid, uid.slice(0, 2))
      await lab.read('purchased')
    }
    has(await lab.counts(), { servedMeanwhile: 1 })
    has(await lab.otherBusinesses(claim, 600_000), { failing: 2, served: 2, exist: true })
    has(await lab.otherBusinesses(claim, 0), { failing: 2, served: 0, untested: 2 })
  },

  async 'counts: a business that is refused is stale only if none of its subscriptions was confirmed'(lab) {
    for (const uid of ['s1', 's1 too']) await lab.known(uid, 'purchased', 'b1')
    await lab.pass(3_000)
    await lab.request('s1 too', 'b1')
    await lab.read('purchased')
    for (const uid of ['s1', 's1 too']) await lab.refuse(uid)
    has(await lab.counts(3_000), { refused: 1, stale: 0 })
  },

  async 'otherBusinesses, counts: leave out purchases of other items, which are never served'(lab) {
    await purchased(lab, 1, 2)
    for (const i of [3, 4, 5]) {
      await lab.known(`s${i}`, 'canceled', `b${i}`)
      await lab.request(`s${i}`, `b${i}`)
      const read = await lab.next()
      const found = { record: read.subscription.record, state: null, gone: null }
      await lab.finishRead(read, { ...shows(read, 'purchased'), found })
    }
    for (const i of [3, 4, 5]) await lab.refuse(`s${i}`)
    const first = await lab.refuse('s1')
    const others = await lab.otherBusinesses(first, 1_000)
    assert.deepEqual([others.failing, others.lately.failing], [1, 1])
    has(await lab.counts(), { active: 2, refused: 1, refusedLately: 1 })
    // Nor do they once they have ended.
    for (const i of [3, 4, 5]) {
      await lab.request(`s${i}`, `b${i}`)
      const read = await lab.next()
      const found = { record: read.subscription.record, state: null, gone: 'missing' } as const
      await lab.finishRead(read, { ...fails('platform_record_missing', 0), settled: true, found })
    }
    assert.equal((await lab.otherBusinesses(first, 1_000)).failing, 1)
  },

  async 'otherBusinesses, counts: a canceled subscription no longer counts as failing when its access has ended'(
    lab,
  ) {
    await purchased(lab, 1)
    await lab.request('s2', 'b2')
    await lab.read('canceled', { entitles: true })
    await lab.refuse('s2')
    const first = await lab.refuse('s1')
    has(await lab.otherBusinesses(first, 1_000), { failing: 2, exist: true })
    has(await lab.counts(), { active: 2, refused: 2 })
    const refused = async (entitles: boolean, failure = 'token_refused') => {
      await lab.request('s2', 'b2')
      const read = await lab.next('s2')
      await lab.finishRead(read, { ...fails(failure), entitles })
      return read
    }
    await refused(false, 'platform_timeout')
    has(await lab.otherBusinesses(first, 1_000), { failing: 1, exist: false })
    has(await lab.counts(), { active: 1, refused: 1 })
    // If the app's rule gives access again, it fails from then on.
    await refused(true)
    assert.equal((await refused(true)).failingSince, null)
    has(await lab.counts(), { active: 2, refused: 2 })
  },

  async 'otherBusinesses, counts, readOthers: a canceled subscription counts as served while it gives access'(
    lab,
  ) {
    await purchased(lab, 1)
    for (const i of [2, 3, 4]) {
      await lab.request(`s${i}`, `b${i}`)
      await lab.read('canceled', { entitles: i !== 4 })
    }
    await lab.pass(600)
    const first = await lab.refuse('s1')
    has(await lab.otherBusinesses(first, 0), { failing: 1, served: 0, untested: 2, exist: true })
    has(await lab.counts(), { active: 3, refused: 1 })
    assert.equal(await lab.readOthers(first, { which: 'served', untestedForMs: 300, limit: 5 }), 2)
    const others = await lab.claimAll()
    same(idsOf(others).sort(), ['s2', 's3'])
    for (const other of others) await lab.succeed(other, 'canceled', { entitles: other.id === 's2' })
    has(await lab.otherBusinesses(first, 300), { failing: 1, served: 1, untested: 0, exist: true })
    has(await lab.counts(), { active: 2, refused: 1 })
  },

  async 'counts: with maxStaleMs, counts businesses that no read has confirmed for so long, and the others'(
    lab,
  ) {
    await purchased(lab, 1, 2, 3, 4)
    await lab.known('s5', 'canceled', 'b5')
    await lab.refuse('s1')
    has(await lab.counts(60_000), { stale: 0, confirmed: 0 })
    await lab.pass(1_000)
    has(await lab.counts(), { stale: 0, confirmed: 0 })
    await lab.request('s2', 'b2')
    await lab.read('purchased')
    await lab.request('s4', 'b4')
    const read = await lab.next()
    const { record } = read.subscription
    await lab.succeed(read, 'purchased', { found: { record, state: null, gone: 'ended' } })
    // One that is refused, and one whose reads get no answer.
    has(await lab.counts(950), { stale: 2, confirmed: 1 })
    await lab.refuse('s2')
    has(await lab.counts(950), { stale: 2, confirmed: 1 })
  },

  async 'readOthers: makes other served businesses due, each once for a streak, and no more than the limit'(
    lab,
  ) {
    await purchased(lab, 1, 2, 3, 4)
    await lab.known('s5', 'canceled', 'b5')
    await lab.pass(600)
    const claim = await lab.refuse('s1')
    await lab.refuse('s2')
    const readServed = (limit: number) =>
      lab.readOthers(claim, { which: 'served', untestedForMs: 300, limit })
    assert.equal(await readServed(1), 1)
    assert.equal(await readServed(5), 1)
    const others = await lab.claimAll()
    same(idsOf(others).sort(), ['s3', 's4'])
    for (const other of others) await lab.succeed(other, 'purchased')
    assert.equal(await readServed(5), 0)
  },

  async 'readOthers: makes other failing businesses due, those that an event named a minute later'(lab) {
    await purchased(lab, 1, 2, 3, 4)
    const claim = await lab.refuse('s1')
    for (const i of [2, 3, 4]) await lab.refuse(`s${i}`)
    await lab.requestRefresh(business('b4', false))
    await lab.fail(await lab.next(), 'token_refused')
    const readFailing = (limit: number) => lab.readOthers(claim, { which: 'failing', pauseMs: 20, limit })
    assert.equal(await readFailing(2), 2)
    assert.equal(await readFailing(5), 1)
    assert.equal(await readFailing(5), 0)
    same(idsOf(await lab.claimAll()).sort(), ['s2', 's3'])
  },

  async 'readOthers: those that were never shown come behind the failing ones, the newest first, a minute later'(
    lab,
  ) {
    await purchased(lab, 1, 2)
    const claim = await lab.refuse('s1')
    await lab.refuse('s2')
    const never: Record<string, Partial<ReadFinish>> = {
      older: { verifying: true },
      newer: { verifying: true },
      soon: { verifying: true, nextInMs: 30_000 },
      decided: {},
      'given up': { nextInMs: null },
    }
    for (const [uid, finish] of Object.entries(never)) {
      await lab.request(uid)
      await lab.finishRead(await lab.claim(), { ...fails('token_refused'), ...finish })
      await lab.pass(5)
    }
    const [row] = await lab.subscriptionsNamed(['given up'])
    const before = row?.requestedAt ?? 0
    const due = async () => {
      const rows = await lab.subscriptionsNamed(['s2', ...Object.keys(never)])
      return uidsOf(rows.filter(({ refreshAt }) => refreshAt !== null && refreshAt < before + 90_000)).sort()
    }
    const readFailing = (limit: number) => lab.readOthers(claim, { which: 'failing', pauseMs: 20, limit })
    same(await due(), ['soon'])
    assert.equal(await readFailing(1), 1)
    same(await due(), ['s2', 'soon'])
    assert.equal(await readFailing(1), 1)
    same(await due(), ['newer', 's2', 'soon'])
    assert.equal(await readFailing(5), 1)
    assert.equal(await readFailing(5), 0)
    same(await due(), ['newer', 'older', 's2', 'soon'])
    same(idsOf(await lab.claimAll()), ['s2'])
  },
}

/** Purchases `s1` of `b1`, and so on. */
async function purchased(lab: Lab, ...numbers: number[]) {
  for (const i of numbers) await lab.known(`s${i}`, 'purchased', `b${i}`)
}
