import assert from 'node:assert/strict'
import { type Checks, claimOne, eventOf, idsOf, type Lab, REQUESTED, same } from './lab.js'
import { quietly } from './reads/quiet-reads.js'

/** What a new process finds in the database of a closed one. */
export const REOPENING: Checks = {
  async 'open: data and leases outlive a close'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' }), eventOf('s2')])
    const claim = await lab.claim({ except: ['business of s2'] })
    await lab.succeed(claim, 'purchased', { progress: '{"tries":1}' })
    const held = await lab.claim()
    const before = await seenBy(lab)
    const again = await lab.reopened()
    same(await seenBy(again), before)
    assert.equal(await claimOne(again, { leaseMs: 1_000, except: [], urgencies: REQUESTED }), undefined)
    assert.equal(await again.succeed(held, 'suspended'), true)
    await again.open()
    assert.equal((await again.only('business of s2')).state, 'suspended')
  },

  async 'close: events accepted before it are stored, refused ones are not'(lab) {
    const events = Array.from({ length: 20 }, (_, i) => eventOf(`s${i}`))
    const accepting = Promise.allSettled(events.map((event) => lab.accept([event])))
    const again = await lab.reopened()
    const results = await accepting
    const accepted = events.filter((_, i) => results[i]?.status === 'fulfilled')
    same((await again.ids()).reverse(), idsOf(accepted))
  },

  async 'requestRefresh: outlives a close, also a quiet one'(lab) {
    await lab.requestRefresh(quietly('s1', 'b1'))
    const again = await lab.reopened()
    assert.equal((await again.claim()).id, 's1')
    assert.equal((await again.only('b1')).quiet, true)
  },
}

async function seenBy(lab: Lab) {
  const counts = { ...(await lab.counts()), oldestPendingMs: 0, oldestRequestMs: 0 }
  // Each opening converts times again, so they may differ.
  const { readAt: _read, requestedAt: _asked, refreshAt: _next, ...row } = await lab.only('b1')
  return [counts, await lab.listEntries({}), row]
}
