import assert from 'node:assert/strict'
import type { Retention, Store } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  DEAD,
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  fails,
  finish,
  handling,
  has,
  idsOf,
  isNumber,
  known,
  LATER,
  leasedEntries,
  leasedEntry,
  named,
  same,
  shows,
} from '../lab.js'

const FOR_EVER: Retention = { eventsMs: LATER, changesMs: LATER, deadMs: LATER }

export const PRUNING_AND_COUNTS: readonly Check[] = [
  {
    name: 'prune: deletes finished entries past their retention, and nothing else',
    async check(lab) {
      const { store } = lab
      await store.accept(['done', 'dead', 'leased'].map((id) => eventOf(id, { id, key: id })))
      const leased = await leasedEntries(store)
      await finish(
        store,
        leased.slice(0, 2).map((each, i) => ending(each, i === 0 ? DONE : DEAD)),
      )
      const claim = await claimed(store)
      const change = { id: 'change', key: 'change', businessUid: 'b', cause: 'event' as const, payload: '1' }
      await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] }))
      await finish(store, [ending(await leasedEntry(store), DONE)])
      await store.accept([eventOf('pending', { id: 'pending' })])
      await lab.pass(5)

      const left = async () => idsOf(await store.listEntries({})).sort()
      assert.equal(await pruneAll(store, FOR_EVER), 0)
      assert.equal(await pruneAll(store, { ...FOR_EVER, eventsMs: 0 }), 1)
      same(await left(), ['change', 'dead', 'leased', 'pending'])
      assert.equal(await pruneAll(store, { ...FOR_EVER, eventsMs: 0, changesMs: 0 }), 1)
      same(await left(), ['dead', 'leased', 'pending'])
      assert.equal(await pruneAll(store, { eventsMs: 0, changesMs: 0, deadMs: 0 }), 1)
      same(await left(), ['leased', 'pending'])
      assert.equal(await pruneAll(store, { eventsMs: 0, changesMs: 0, deadMs: 0 }), 0)
    },
  },
  {
    name: 'prune: ends no entry of a lane that is leased, so the holder keeps it',
    async check(lab) {
      const store = await lab.create()
      await store.open()
      const topics = ['event:purchasable_subscription/update' as const]
      await handling(store, topics)
      const key = { key: 'shared' }
      await store.accept([
        eventOf('s1', { id: 'held', ...key }),
        eventOf('s1', { id: 'behind', name: 'application/installed', ...key }),
      ])
      // No process handles it, and a replay makes it wait behind the other.
      await store.replayEntry('behind')
      const held = await leasedEntry(store, { topics })
      assert.equal(held.id, 'held')
      await lab.pass(5)
      assert.equal(await pruneAll(store, { ...FOR_EVER, eventsMs: 0 }), 0)
      same(await leasedEntries(store, { topics }), [])
      same(await finish(store, [ending(held, DONE)]), ['held'])
      await lab.pass(5)
      assert.equal(await pruneAll(store, { ...FOR_EVER, eventsMs: 0 }), 3)
    },
  },
  {
    name: 'prune: deletes one small batch at a time, and returns 0 at the end',
    async check(lab) {
      const { store } = lab
      await store.accept(
        Array.from({ length: 1_500 }, (_, i) => eventOf('s1', { key: `${i}`, refresh: null })),
      )
      for (let left = 1; left > 0; ) {
        const leased = await leasedEntries(store, { limit: 500 })
        left = leased.length
        await finish(
          store,
          leased.map((each) => ending(each, DONE)),
        )
      }
      await lab.pass(5)
      const { rows: first } = await store.prune({ eventsMs: 0, changesMs: LATER, deadMs: LATER })
      isNumber(first, 'the answer of prune')
      assert(first > 0 && first <= 1_000, `the first batch was of ${first} rows`)
      assert.equal(first + (await pruneAll(store, { eventsMs: 0, changesMs: LATER, deadMs: LATER })), 1_500)
      same(await store.listEntries({}), [])
    },
  },
  {
    name: 'prune: deletes subscriptions that were given up unread, and no others',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('made up', 'b1'))
      await store.finishRead(await claimed(store), fails('platform_record_missing', null))
      await known(store, 'read', 'purchased', 'b1')
      await store.requestRefresh(named('failing', 'b1'))
      await store.finishRead(await claimed(store), fails('platform_timeout'))
      await store.requestRefresh(named('owed', 'b1'))
      await lab.pass(5)
      const left = async () =>
        (await store.subscriptionsOf('b1')).map(({ subscriptionUid }) => subscriptionUid).sort()
      assert.equal(await pruneAll(store, { eventsMs: 0, changesMs: 0, deadMs: LATER }), 0)
      assert.equal(await pruneAll(store, { eventsMs: 0, changesMs: 0, deadMs: 0 }), 1)
      same(await left(), ['failing', 'owed', 'read'])
    },
  },
  {
    name: 'counts: counts everything, as numbers',
    async check(lab) {
      const { store } = lab
      await known(store, 'read')
      await store.requestRefresh(named('given up'))
      await store.finishRead(await claimed(store), fails('platform_refused', null))
      await store.accept(['e1', 'e2', 'e3', 'e4', 'e5'].map((id) => eventOf('owed', { id, key: id })))
      await store.accept([eventOf('x', { id: 'u1', key: 'u1', kind: 'unrecognised', refresh: null })])
      const leased = await leasedEntries(store, { limit: 4 })
      await finish(
        store,
        leased.slice(0, 3).map((each, i) => ending(each, i === 0 ? DONE : DEAD)),
      )
      const counts = await store.counts()
      has(counts, { subscriptions: 3, requested: 1, givenUp: 1, knownGivenUp: 0, active: 1, refused: 0 })
      has(counts, { pending: 3, retrying: 0, dead: 2, unrecognised: 1 })
      isNumber(counts.oldestPendingMs, 'oldestPendingMs')
      isNumber(counts.oldestRequestMs, 'oldestRequestMs')
      assert(counts.oldestRequestMs >= 0 && counts.oldestRequestMs < 60_000)
      const owed = await claimed(store)
      await store.finishRead(owed, shows(owed, 'purchased', { nextInMs: 0, settled: false }))
      const again = await lab.until('it is due', async () => (await claimedAll(store))[0])
      await store.finishRead(again, fails('token_refused'))
      has(await store.counts(), { requested: 0, oldestRequestMs: null, active: 2, refused: 1 })
    },
  },
  {
    name: 'counts: counts retrying entries, and how long the longest due entry has been due, which those behind a retrying one are not',
    async check(lab) {
      const { store } = lab
      const dueForMs = async () => (await store.counts()).oldestPendingMs
      await store.accept([eventOf('s1', { id: 'a1', key: 'a' }), eventOf('s1', { id: 'a2', key: 'a' })])
      await lab.pass(30)
      await store.accept([eventOf('s1', { id: 'b1', key: 'b' })])
      const old = await dueForMs()
      assert(old !== null && old >= 25, `${old} ms`)
      const [first, second] = await leasedEntries(store)
      assert(first && second)
      await finish(store, [
        ending(first, { kind: 'retry', inMs: LATER, error: 'no' }),
        ending(second, { kind: 'retry', inMs: 30, error: 'no' }),
      ])
      has(await store.counts(), { pending: 3, retrying: 2 })
      await lab.until('the next try of the second is due', async () => ((await dueForMs()) ?? 0) > 0)
      const again = await leasedEntry(store)
      await finish(store, [ending(again, DONE)])
      has(await store.counts(), { pending: 2, retrying: 1, oldestPendingMs: null })
    },
  },
  {
    name: 'counts: an entry behind others is due since the one before it ended, and none is while its lane is leased',
    async check(lab) {
      const { store } = lab
      const dueForMs = async () => (await store.counts()).oldestPendingMs
      await store.accept(['a1', 'a2', 'a3'].map((id) => eventOf('s1', { id, key: 'a' })))
      for (const end of [DONE, DEAD]) {
        await lab.pass(200)
        const old = await dueForMs()
        assert(old !== null && old >= 195, `${old} ms`)
        const head = await leasedEntry(store)
        assert.equal(await dueForMs(), null)
        await finish(store, [ending(head, end)])
        const next = await dueForMs()
        assert(next !== null && next < 195, `${next} ms`)
      }
    },
  },
  {
    name: 'counts: an entry that is replayed is due since then, and so is one that had no handler before',
    async check(lab) {
      const store = await lab.create()
      await store.open()
      const entries = ['a', 'b'].map((key) => eventOf('s1', { id: `${key}1`, key }))
      await store.accept(entries)
      const isDueSince = async (time: number) => {
        const { oldestPendingMs } = await store.counts()
        assert(oldestPendingMs !== null && oldestPendingMs <= Date.now() - time + 50, `${oldestPendingMs} ms`)
      }
      await lab.pass(200)
      const handledAt = Date.now()
      await handling(store, EVERY_TOPIC, 10_000)
      has(await store.counts(), { pending: 2 })
      await isDueSince(handledAt)
      await finish(
        store,
        (await leasedEntries(store)).map((each) => ending(each, DEAD)),
      )
      has(await store.counts(), { pending: 0, oldestPendingMs: null })
      await lab.pass(200)
      const replayedAt = Date.now()
      assert.equal(await store.replayEntry('a1'), true)
      await isDueSince(replayedAt)
    },
  },
  {
    name: 'counts: how long the longest due read has been due, whatever its cause',
    async check(lab) {
      const { store } = lab
      has(await store.counts(), { oldestOverdueMs: null })
      await known(store, 'read')
      has(await store.counts(), { oldestOverdueMs: null })
      await store.requestRefresh(named('other'))
      await lab.pass(30)
      const { oldestOverdueMs } = await store.counts()
      assert(oldestOverdueMs !== null && oldestOverdueMs >= 25, `${oldestOverdueMs} ms`)
      await claimed(store)
      has(await store.counts(), { oldestOverdueMs: null })
    },
  },
]

async function pruneAll(store: Store, retention: Retention): Promise<number> {
  for (let total = 0; ; ) {
    const { rows: deleted } = await store.prune(retention)
    if (deleted === 0) return total
    total += deleted
    assert(total < 10_000, 'prune never returns 0')
  }
}
