import assert from 'node:assert/strict'
import { URGENCY } from '../../../../lib/store/port/store.js'
import { type Checks, eventOf, fails, has, idsOf, isNumber, LONG, same } from '../lab.js'

/** A read of every subscription, for a database that was restored. */
export const REFRESHING_ALL: Checks = {
  async 'refreshAll: makes a regular read of every subscription due within the time, which no request owes'(
    lab,
  ) {
    for (const uid of ['s1', 's2']) await lab.known(uid)
    same(await lab.claimAll(), [])
    assert.equal(await lab.refreshAll(1), 2)
    const claims = await lab.claimAll()
    same(idsOf(claims).sort(), ['s1', 's2'])
    for (const claim of claims) {
      assert.equal(claim.urgency, URGENCY.reconcile)
      assert.equal(claim.generation, claim.settledGeneration)
    }
  },

  async 'refreshAll: spreads the reads over the time'(lab) {
    for (let i = 0; i < 12; i++) await lab.known(`s${i}`)
    assert.equal(await lab.refreshAll(LONG), 12)
    assert((await lab.claimAll()).length < 12)
  },

  async 'refreshAll: includes every one that was read before, and none that was given up before that, on every page'(
    lab,
  ) {
    await lab.known('known', 'purchased', 'b1')
    await lab.request('known', 'b1')
    await lab.request('made up')
    while ((await lab.counts()).givenUp < 2) await lab.fail(await lab.next(), 'platform_refused', null)
    // A page has 200.
    await lab.accept(Array.from({ length: 200 }, (_, i) => eventOf(`s${i}`)))
    assert.equal(await lab.refreshAll(1), 201)
    has((await lab.subscriptionsNamed(['made up']))[0], { refreshAt: null })
    isNumber((await lab.only('b1')).refreshAt, 'refreshAt')
  },

  async 'refreshAll: one that was never read keeps its class, and so the place behind those that were'(lab) {
    await lab.accept([eventOf('made up', { businessUid: 'b2' })])
    const claim = await lab.next()
    const failure = 'platform_record_missing'
    assert.equal(await lab.finishRead(claim, { ...fails(failure, LONG), settled: true }), true)
    await lab.known('s1', 'purchased', 'b1')
    assert.equal(await lab.refreshAll(1), 2)
    const urgencies = (await lab.claimAll()).map(({ id, urgency }) => [id, urgency])
    same(urgencies.sort(), [
      ['made up', URGENCY.eventOfUnread],
      ['s1', URGENCY.reconcile],
    ])
  },

  async 'refreshAll: a requested read within its pause keeps its class'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.request('s1', 'b1')
    assert.equal(await lab.refreshAll(1), 1)
    has(await lab.next(), { urgency: URGENCY.track })
  },

  async 'refreshAll: leaves a requested read and its class, and a read under way'(lab) {
    await lab.known('s3')
    await lab.request('s1', 'b1')
    const held = await lab.claim()
    await lab.request('s2', 'b2')
    // All three are read within the time.
    assert.equal(await lab.refreshAll(LONG), 3)
    has(await lab.claim(), { id: 's2', urgency: URGENCY.track })
    assert.equal(await lab.renewRead(held, LONG), true)
  },
}
