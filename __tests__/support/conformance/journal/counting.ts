import assert from 'node:assert/strict'
import {
  type Checks,
  DEAD,
  DONE,
  EVERY_TOPIC,
  eventOf,
  has,
  isNumber,
  LATER,
  type Lab,
  retry,
} from '../lab.js'

export const COUNTING: Checks = {
  async 'counts: counts everything, as numbers'(lab) {
    await lab.known('read')
    await lab.request('given up')
    await lab.fail(await lab.claim(), 'platform_refused', null)
    await lab.accept(['e1', 'e2', 'e3', 'e4', 'e5'].map((id) => eventOf('owed', { id, key: id })))
    await lab.accept([eventOf('x', { id: 'u1', key: 'u1', kind: 'unrecognised', refresh: null })])
    await lab.end(await lab.lease({ limit: 3 }), DONE, DEAD)
    const counts = await lab.counts()
    has(counts, { subscriptions: 3, requested: 1, givenUp: 1, knownGivenUp: 0, active: 1, refused: 0 })
    has(counts, { pending: 3, retrying: 0, dead: 2, unrecognised: 1 })
    isNumber(counts.oldestPendingMs, 'oldestPendingMs')
    isNumber(counts.oldestRequestMs, 'oldestRequestMs')
    assert(counts.oldestRequestMs >= 0 && counts.oldestRequestMs < 60_000)
    await lab.succeed(await lab.claim(), 'purchased', { nextInMs: 0, settled: false })
    await lab.fail(await lab.next(), 'token_refused')
    has(await lab.counts(), { requested: 0, oldestRequestMs: null, active: 2, refused: 1 })
  },

  async 'counts: counts retrying entries, and how long the longest due entry has been due, which those behind a retrying one are not'(
    lab,
  ) {
    await lab.accept([eventOf('s1', { id: 'a1', key: 'a' }), eventOf('s1', { id: 'a2', key: 'a' })])
    await lab.pass(30)
    await lab.accept([eventOf('s1', { id: 'b1', key: 'b' })])
    assert((await dueForMs(lab)) >= 25)
    await lab.end(await lab.lease(), retry(LATER), retry(30))
    has(await lab.counts(), { pending: 3, retrying: 2 })
    await lab.until('the next try of the second is due', async () => (await dueForMs(lab)) > 0)
    await lab.end([await lab.leaseOne()], DONE)
    has(await lab.counts(), { pending: 2, retrying: 1, oldestPendingMs: null })
  },

  async 'counts: an entry behind others is due since the one before it ended, and none is while its lane is leased'(
    lab,
  ) {
    await lab.accept(['a1', 'a2', 'a3'].map((id) => eventOf('s1', { id, key: 'a' })))
    for (const end of [DONE, DEAD]) {
      await lab.pass(200)
      const old = await dueForMs(lab)
      assert(old >= 195, `${old} ms`)
      const head = await lab.leaseOne()
      has(await lab.counts(), { oldestPendingMs: null })
      await lab.end([head], end)
      const next = await dueForMs(lab)
      assert(next >= 0 && next < 195, `${next} ms`)
    }
  },

  async 'counts: an entry that is replayed is due since then, and so is one that had no handler before'(
    first,
  ) {
    const lab = await first.withoutHandlers()
    await lab.accept(['a', 'b'].map((key) => eventOf('s1', { id: `${key}1`, key })))
    const isDueSince = async (time: number) => {
      const ms = await dueForMs(lab)
      assert(ms >= 0 && ms <= Date.now() - time + 50, `${ms} ms`)
    }
    await lab.pass(200)
    const handledAt = Date.now()
    await lab.handle(EVERY_TOPIC, 10_000)
    has(await lab.counts(), { pending: 2 })
    await isDueSince(handledAt)
    await lab.end(await lab.lease(), DEAD)
    has(await lab.counts(), { pending: 0, oldestPendingMs: null })
    await lab.pass(200)
    const replayedAt = Date.now()
    assert.equal(await lab.replayEntry('a1'), true)
    await isDueSince(replayedAt)
  },

  async 'counts: how long the longest due read has been due, whatever its cause'(lab) {
    has(await lab.counts(), { oldestOverdueMs: null })
    await lab.known('read')
    has(await lab.counts(), { oldestOverdueMs: null })
    await lab.request('other')
    await lab.pass(30)
    const { oldestOverdueMs } = await lab.counts()
    assert(oldestOverdueMs !== null && oldestOverdueMs >= 25, `${oldestOverdueMs} ms`)
    await lab.claim()
    has(await lab.counts(), { oldestOverdueMs: null })
  },
}

/** How long the longest due entry has been due; below 0 if none is due. */
async function dueForMs(lab: Lab): Promise<number> {
  return (await lab.counts()).oldestPendingMs ?? -1
}
