import assert from 'node:assert/strict'
import { EVERY_EVENT, type Store } from '../../../lib/store/store.js'
import {
  type Check,
  claimed,
  DONE,
  ending,
  eventOf,
  finish,
  handling,
  has,
  idsOf,
  LATER,
  type Lab,
  leasedEntries,
  leasedEntry,
  same,
  shows,
} from './lab.js'

export const UPDATE = 'event:purchasable_subscription/update'

export const HANDLED_TOPICS: readonly Check[] = [
  {
    name: 'accept: an event without a handler is unhandled, and is never claimed',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, [])
      await store.accept([eventOf('s1', { id: 'e1' })])
      await store.accept([eventOf('s1', { id: 'u1', key: 'u1', kind: 'unrecognised', refresh: null })])
      await handling(store, ['event:application/installed'])
      has(await store.counts(), { pending: 0, waiting: 0, unrecognised: 1 })
      same(idsOf(await store.listEntries({ status: 'unhandled' })), ['u1', 'e1'])
      same(await leasedEntries(store), [])
    },
  },
  {
    name: 'accept: an event is pending if its name, or every event, has a handler',
    async check(lab) {
      for (const topic of [UPDATE, EVERY_EVENT]) {
        const store = await withoutHandlers(lab)
        await handling(store, [topic])
        await store.accept([eventOf('s1', { id: 'e1', kind: 'event' })])
        await store.accept([eventOf('s1', { id: 'u1', key: 'u1', kind: 'unrecognised', refresh: null })])
        same(idsOf(await store.listEntries({ status: 'pending' })), ['e1'])
        same(idsOf(await store.listEntries({ status: 'unhandled' })), ['u1'])
        assert.equal((await leasedEntry(store, { topics: [topic] })).id, 'e1')
      }
    },
  },
  {
    name: 'handleTopics: changes wait for a handler, and then are claimed in order',
    async check(lab) {
      const store = await withoutHandlers(lab)
      const ids = await manyChanges(store, 3)
      has(await store.counts(), { waiting: 3, pending: 0 })
      same(await leasedEntries(store), [])
      await handling(store, [UPDATE])
      has(await store.counts(), { waiting: 3 })
      await handling(store, ['change'])
      has(await store.counts(), { waiting: 0, pending: 3 })
      same(idsOf(await leasedEntries(store, { entryLimit: 10, topics: ['change'] })), ids)
    },
  },
  {
    name: 'handleTopics: thousands of waiting entries become pending, each in its lane',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, [EVERY_EVENT])
      await handling(store, ['change'])
      await retired(lab, store)
      const events = Array.from({ length: 1_000 }, (_, i) =>
        eventOf('s1', { key: `k${i % 300}`, refresh: null }),
      )
      await store.accept(events)
      has(await store.counts(), { waiting: 1_000, pending: 0 })
      await handling(store, [EVERY_EVENT])
      has(await store.counts(), { waiting: 0, pending: 1_000 })
      const order: string[] = []
      await lab.until('all are handed out', async () => {
        const leased = await leasedEntries(store, { limit: 500 })
        order.push(...idsOf(leased))
        await finish(
          store,
          leased.map((each) => ending(each, DONE)),
        )
        return order.length === 1_000
      })
      for (const key of ['k0', 'k299']) {
        const ofKey = idsOf(events.filter((each) => each.key === key))
        same(
          order.filter((id) => ofKey.includes(id)),
          ofKey,
        )
      }
    },
  },
  {
    name: 'handleTopics: an entry of a retired topic waits and delays nothing in its lane',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, [UPDATE, 'event:application/installed', 'change'])
      await store.accept([
        eventOf('s1', { id: 'e1', key: 'k' }),
        eventOf('s1', { id: 'e2', key: 'k', name: 'application/installed' }),
        eventOf('s1', { id: 'e3', key: 'k' }),
      ])
      await lab.pass(20)
      await store.handleTopics({ topics: ['event:application/installed'], rescueMs: 0, retireMs: 10 })
      same(idsOf(await store.listEntries({ status: 'waiting' })).sort(), ['e1', 'e3'])
      assert.equal((await leasedEntry(store, { topics: ['event:application/installed'] })).id, 'e2')
      await store.accept([eventOf('s2', { id: 'e4', key: 'k4' })])
      assert.equal((await store.listEntries({ limit: 1 }))[0]?.status, 'waiting')
      await handling(store, [UPDATE])
      same(idsOf(await store.listEntries({ status: 'pending' })).sort(), ['e1', 'e2', 'e3', 'e4'])
      assert.equal((await leasedEntry(store)).id, 'e4')
    },
  },
  {
    name: 'handleTopics: an event before the first worker waits for it, then becomes pending or unhandled',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await store.accept([
        eventOf('s1', { id: 'e1', key: 'a' }),
        eventOf('s1', { id: 'other', key: 'a', name: 'application/installed' }),
      ])
      same(idsOf(await store.listEntries({ status: 'waiting' })).sort(), ['e1', 'other'])
      await handling(store, [])
      same(idsOf(await store.listEntries({ status: 'unhandled' })).sort(), ['e1', 'other'])
      // A handler that the first worker adds late, however long the events have waited for it.
      await handling(store, [UPDATE], 1)
      same(idsOf(await store.listEntries({ status: 'unhandled' })), ['other'])
      same(idsOf(await leasedEntries(store, { entryLimit: 10 })), ['e1'])
    },
  },
  {
    name: 'handleTopics: recently unhandled events become pending, older ones do not',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, [])
      await store.accept([eventOf('s1', { id: 'old', key: 'a' })])
      await lab.pass(400)
      await store.accept([
        eventOf('s1', { id: 'e1', key: 'a' }),
        eventOf('s1', { id: 'e2', key: 'a' }),
        eventOf('s1', { id: 'other', key: 'a', name: 'application/installed' }),
      ])
      await handling(store, [UPDATE], 350)
      same(idsOf(await store.listEntries({ status: 'unhandled' })).sort(), ['old', 'other'])
      same(idsOf(await leasedEntries(store, { entryLimit: 10 })), ['e1', 'e2'])
    },
  },
  {
    name: 'replayEntry: an entry without a handler waits, and becomes pending when it has one',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await store.accept([eventOf('s1', { id: 'e1' })])
      assert.equal(await store.replayEntry('e1'), true)
      same(await leasedEntries(store), [])
      await handling(store, [UPDATE])
      has(await leasedEntry(store), { id: 'e1', attempt: 1 })
    },
  },
  {
    name: 'replayEntry: an entry older than the others of its lane comes first',
    async check({ store }) {
      await store.accept([eventOf('s1', { id: 'e1', key: 'k' }), eventOf('s1', { id: 'e2', key: 'k' })])
      await finish(store, [ending(await leasedEntry(store), DONE)])
      const e2 = await leasedEntry(store)
      await finish(store, [ending(e2, { kind: 'retry', inMs: LATER, error: 'no' })])
      assert.equal(await store.replayEntry('e1'), true)
      const e1 = await leasedEntry(store)
      has(e1, { id: 'e1', attempt: 1 })
      await finish(store, [ending(e1, DONE)])
      same(await leasedEntries(store), [])
      assert.equal(await store.replayEntry('e2'), true)
      has(await leasedEntry(store), { id: 'e2', attempt: 1 })
    },
  },
]

export async function withoutHandlers(lab: Lab): Promise<Store> {
  const store = await lab.create()
  await store.open()
  return store
}

/** Retires the topics of events. Changes have a handler. */
async function retired(lab: Lab, store: Store) {
  await lab.pass(20)
  await store.handleTopics({ topics: ['change'], rescueMs: 0, retireMs: 10 })
}

/** Writes changes of one subscription, and returns their ids. */
export async function manyChanges(store: Store, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 1; n <= count; n++) {
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: 'item',
    })
    const claim = await claimed(store).catch(() => undefined)
    assert(claim, 'the subscription is not due')
    const id = `change ${n}`
    const change = { id, key: 'subscription:s1', businessUid: 'b1', cause: 'event' as const, payload: '1' }
    await store.finishRead(claim, shows(claim, n % 2 ? 'purchased' : 'suspended', { changes: [change] }))
    ids.push(id)
    if (n < count) await new Promise((resolve) => setTimeout(resolve, 260))
  }
  return ids
}
