import assert from 'node:assert/strict'
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
} from '../lab.js'
import { manyChanges, withoutHandlers } from './handled-topics.js'

const RETENTION = { eventsMs: LATER, changesMs: LATER, deadMs: LATER }

/** How entries end that no process handles. */
export const WAITING_IN_VAIN: readonly Check[] = [
  {
    name: 'prune: a change that no process has handled until the end of its retention becomes unhandled if none ever had a handler',
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
    name: 'prune: a pending change is not ended while a process handles changes, however old it is',
    async check(lab) {
      const store = await withoutHandlers(lab)
      const ids = await manyChanges(store, 1)
      await handling(store, ['change'])
      await lab.pass(5)
      same(await store.prune({ ...RETENTION, changesMs: 0 }), { rows: 0, dead: [] })
      same(idsOf(await store.listEntries({ status: 'pending' })), ids)
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
      same(await store.prune({ eventsMs: 0, changesMs: 0, deadMs: 0 }), { rows: 0, dead: [] })
      same(idsOf(await store.listEntries({ status: 'pending' })), [change, 'e1'])
    },
  },
]
