import assert from 'node:assert/strict'
import { manyChanges, UPDATE, withoutHandlers } from './handled-topics.js'
import {
  type Check,
  ending,
  eventOf,
  finish,
  handling,
  has,
  idsOf,
  LATER,
  leasedEntries,
  leasedEntry,
  same,
} from './lab.js'

const RETENTION = { doneMs: LATER, changesMs: LATER, deadMs: LATER }

/** How entries end that no process handles. */
export const WAITING_IN_VAIN: readonly Check[] = [
  {
    name: 'prune: an entry that waited for a handler until the end of its retention becomes unhandled if no process ever had one',
    async check(lab) {
      const store = await withoutHandlers(lab)
      const [id = ''] = await manyChanges(store, 1)
      await lab.pass(5)
      await handling(store, ['event:application/installed'])
      same(await store.prune({ ...RETENTION, changesMs: 0 }), { rows: 1, dead: [] })
      same(await store.prune({ ...RETENTION, changesMs: 0 }), { rows: 0, dead: [] })
      has(await store.counts(), { dead: 0, pending: 0 })
      same(idsOf(await store.listEntries({ status: 'unhandled' })), [id])
      // It may be replayed until its second retention ends.
      assert.equal(await store.replayEntry(id), true)
      await handling(store, ['change'])
      has(await leasedEntry(store, { topics: ['change'] }), { id, attempt: 1 })
    },
  },
  {
    name: 'prune: an entry that waited until the end of its retention for a handler that a process once had becomes dead, is returned once, and is not deleted',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, ['change'])
      await lab.pass(20)
      await store.handleTopics({ topics: [UPDATE], rescueMs: 0, retireMs: 10 })
      const ids = await manyChanges(store, 3)
      await lab.pass(5)
      same(await store.prune(RETENTION), { rows: 0, dead: [] })
      const { rows, dead } = await store.prune({ ...RETENTION, changesMs: 0 })
      assert.equal(rows, 3)
      same(idsOf(dead).sort(), [...ids].sort())
      has(dead[0], { kind: 'change', businessUid: 'b1', subscriptionUid: 's1', attempts: 0 })
      assert.match(dead[0]?.error ?? '', /handler/)
      same(await store.prune({ ...RETENTION, changesMs: 0 }), { rows: 0, dead: [] })
      has(await store.counts(), { dead: 3, pending: 0 })
    },
  },
  {
    name: 'prune: a retrying entry is never deleted',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1', { id: 'e1' })])
      const [change] = await manyChanges(store, 1)
      for (const each of await leasedEntries(store))
        await finish(store, [ending(each, { kind: 'retry', inMs: LATER, error: 'no' })])
      await lab.pass(5)
      same(await store.prune({ doneMs: 0, changesMs: 0, deadMs: 0 }), { rows: 0, dead: [] })
      same(idsOf(await store.listEntries({ status: 'pending' })), [change, 'e1'])
    },
  },
]
