import assert from 'node:assert/strict'
import type { Retention } from '../../../../lib/store/port/store.js'
import {
  type Checks,
  changeOf,
  DEAD,
  DONE,
  eventOf,
  has,
  LATER,
  type Lab,
  retry,
  same,
  UPDATE,
} from '../lab.js'

const INSTALLED = 'application/installed'
const EVERYTHING: Retention = { eventsMs: 0, changesMs: 0, actionsMs: 0, deadMs: 0 }

export const PRUNING: Checks = {
  async 'prune: deletes finished entries past their retention, and nothing else'(lab) {
    await lab.accept(['done', 'dead', 'leased'].map((id) => eventOf(id, { id, key: id })))
    await lab.end((await lab.lease()).slice(0, 2), DONE, DEAD)
    await lab.read('purchased', { changes: [changeOf('change')] })
    await lab.end([await lab.leaseOne()], DONE)
    await lab.accept([eventOf('pending', { id: 'pending' })])
    await lab.pass(5)

    const left = async () => (await lab.ids()).sort()
    assert.equal(await pruneAll(lab, {}), 0)
    assert.equal(await pruneAll(lab, { eventsMs: 0 }), 1)
    same(await left(), ['change', 'dead', 'leased', 'pending'])
    assert.equal(await pruneAll(lab, { eventsMs: 0, changesMs: 0 }), 1)
    same(await left(), ['dead', 'leased', 'pending'])
    assert.equal(await pruneAll(lab, EVERYTHING), 1)
    same(await left(), ['leased', 'pending'])
    assert.equal(await pruneAll(lab, EVERYTHING), 0)
  },

  async 'prune: deletes one small batch at a time, and returns 0 at the end'(lab) {
    await lab.accept(Array.from({ length: 1_500 }, (_, i) => eventOf('s1', { key: `${i}`, refresh: null })))
    for (let left = 1; left > 0; ) left = (await lab.end(await lab.lease({ limit: 500 }), DONE)).length
    await lab.pass(5)
    const { rows: first } = await lab.prune({
      eventsMs: 0,
      changesMs: LATER,
      actionsMs: LATER,
      deadMs: LATER,
    })
    assert(first > 0 && first <= 1_000, `the first batch was of ${first} rows`)
    assert.equal(first + (await pruneAll(lab, { eventsMs: 0 })), 1_500)
    same(await lab.ids(), [])
  },

  async 'prune: ends no entry of a lane that is leased, so the holder keeps it'(first) {
    const topics = [UPDATE]
    const lab = await first.withoutHandlers()
    await lab.handle(topics)
    await lab.accept([
      eventOf('s1', { id: 'held', key: 'shared' }),
      eventOf('s1', { id: 'behind', key: 'shared', name: INSTALLED }),
    ])
    await lab.accept([eventOf('s2', { id: 'alone', key: 'other', name: INSTALLED })])
    // No process handles them, and a replay makes the first wait behind another entry.
    for (const id of ['behind', 'alone']) await lab.replayEntry(id)
    const held = await lab.leaseOne({ topics })
    assert.equal(held.id, 'held')
    await lab.pass(5)
    // It ends the other one, which then is deleted.
    assert.equal(await pruneAll(lab, { eventsMs: 0 }), 2)
    same(await lab.ids(), ['behind', 'held'])
    same(await lab.lease({ topics }), [])
    same(await lab.end([held], DONE), ['held'])
    await lab.pass(5)
    assert.equal(await pruneAll(lab, { eventsMs: 0 }), 3)
  },

  async 'prune: a retrying entry is never deleted'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1' })])
    await lab.read('purchased', { changes: [changeOf('change')] })
    await lab.end(await lab.lease(), retry(LATER))
    await lab.pass(5)
    same(await lab.prune(EVERYTHING), { rows: 0, dead: [] })
    same(await lab.ids({ status: 'pending' }), ['change', 'e1'])
  },

  async 'prune: a change that no process has handled until the end of its retention becomes unhandled if none ever had a handler'(
    first,
  ) {
    const lab = await withChange(first)
    await lab.handle([`event:${INSTALLED}`])
    const retention = { eventsMs: LATER, changesMs: 0, actionsMs: 0, deadMs: LATER }
    same(await lab.prune(retention), { rows: 1, dead: [] })
    same(await lab.prune(retention), { rows: 0, dead: [] })
    has(await lab.counts(), { dead: 0, pending: 0 })
    same(await lab.ids({ status: 'unhandled' }), ['change'])
    await lab.pass(5)
    assert.equal(await pruneAll(lab, EVERYTHING), 1)
    same(await lab.ids(), [])
  },

  async 'prune: a change that is unhandled can be replayed for as long as a dead one'(first) {
    const lab = await withChange(first)
    await lab.handle([`event:${INSTALLED}`])
    assert.equal(await pruneAll(lab, { changesMs: 0 }), 1)
    assert.equal(await lab.replayEntry('change'), true)
    await lab.handle(['change'])
    has(await lab.leaseOne({ topics: ['change'] }), { id: 'change', attempt: 1 })
  },

  async 'prune: an event that came before its handler, and was never set aside, is not dead'(first) {
    const lab = await first.withoutHandlers()
    await lab.handle(['change'])
    await lab.accept([eventOf('s1', { id: 'e1' })])
    await lab.handle([UPDATE])
    await lab.pass(5)
    same(await lab.prune(EVERYTHING), { rows: 1, dead: [] })
    same(await lab.ids(), [])
  },

  async 'prune: the retention of an event that was set aside begins with its last replay'(first) {
    const lab = await first.withoutHandlers()
    await lab.handle([UPDATE])
    await lab.accept([eventOf('s1', { id: 'e1' })])
    await lab.pass(1_600)
    await lab.replayEntry('e1')
    await lab.handleTopics({ topics: [`event:${INSTALLED}`], rescueMs: 0, retireMs: 10 })
    same(await lab.ids({ status: 'unhandled' }), ['e1'])
    same(await pruneAll(lab, { eventsMs: 1_500 }), 0)
    await lab.pass(5)
    has((await lab.prune(EVERYTHING)).dead[0], { id: 'e1' })
  },

  async 'prune: a pending change is not ended while a process handles changes, however old it is'(first) {
    const lab = await withChange(first)
    await lab.handle(['change'])
    await lab.pass(5)
    same(await lab.prune(EVERYTHING), { rows: 0, dead: [] })
    same(await lab.ids({ status: 'pending' }), ['change'])
  },

  async 'prune: deletes subscriptions that were given up unread, and no others'(lab) {
    await lab.request('made up', 'b1')
    await lab.fail(await lab.claim(), 'platform_record_missing', null)
    for (const uid of ['read', 'read, given up']) await lab.known(uid, 'purchased', 'b1')
    await lab.request('read, given up', 'b1')
    await lab.fail(await lab.next(), 'platform_refused', null)
    await lab.request('failing', 'b1')
    await lab.fail(await lab.claim(), 'platform_timeout')
    await lab.request('owed', 'b1')
    await lab.pass(5)
    assert.equal(await pruneAll(lab, { eventsMs: 0, changesMs: 0 }), 0)
    assert.equal(await pruneAll(lab, EVERYTHING), 1)
    same(await lab.uids(), ['failing', 'owed', 'read', 'read, given up'])
  },
}

/** A database without handlers, with a change that is a little old. */
async function withChange(first: Lab): Promise<Lab> {
  const lab = await first.withoutHandlers()
  await lab.request('s1', 'b1')
  await lab.read('purchased', { changes: [changeOf('change')] })
  await lab.pass(5)
  return lab
}

async function pruneAll(lab: Lab, retention: Partial<Retention>): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await lab.prune({
      eventsMs: LATER,
      changesMs: LATER,
      actionsMs: LATER,
      deadMs: LATER,
      ...retention,
    })
    if (rows === 0) return total
    total += rows
    assert(total < 10_000, 'prune never returns 0')
  }
}
