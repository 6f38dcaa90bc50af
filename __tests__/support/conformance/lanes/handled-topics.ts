import assert from 'node:assert/strict'
import { EVERY_EVENT, type Store } from '../../../../lib/store/port/store.js'
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
} from '../lab.js'

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
      has(await store.counts(), { pending: 0, unrecognised: 1 })
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
    name: 'handleTopics: changes without a handler are pending, and are claimed in order once there is one',
    async check(lab) {
      const store = await withoutHandlers(lab)
      const ids = await manyChanges(store, 3)
      has(await store.counts(), { pending: 3, oldestPendingMs: null, oldestMissedMs: null })
      await handling(store, [UPDATE])
      same(await leasedEntries(store, { topics: [UPDATE] }), [])
      await handling(store, ['change'])
      same(idsOf(await leasedEntries(store, { entryLimit: 10, topics: ['change'] })), ids)
    },
  },
  {
    name: 'handleTopics: thousands of unhandled events become pending, each in its lane',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, ['change'])
      const events = Array.from({ length: 1_000 }, (_, i) =>
        eventOf('s1', { key: `k${i % 300}`, refresh: null }),
      )
      await store.accept(events)
      has(await store.counts(), { pending: 0 })
      await handling(store, [EVERY_EVENT], LATER)
      has(await store.counts(), { pending: 1_000 })
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
    name: 'handleTopics: an event whose topic no process names any more is set aside, delays nothing in its lane, and is pending again when one does',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await handling(store, [UPDATE, 'event:application/installed', 'change'])
      await store.accept([
        eventOf('s1', { id: 'e1', key: 'k' }),
        eventOf('s1', { id: 'e2', key: 'k', name: 'application/installed' }),
        eventOf('s1', { id: 'e3', key: 'k' }),
      ])
      await lab.pass(20)
      const look = () =>
        store.handleTopics({ topics: ['event:application/installed'], rescueMs: 0, retireMs: 10 })
      await look()
      same(idsOf(await store.listEntries({ status: 'unhandled' })).sort(), ['e1', 'e3'])
      assert.equal((await leasedEntry(store, { topics: ['event:application/installed'] })).id, 'e2')
      await store.accept([eventOf('s2', { id: 'e4', key: 'k4' })])
      await look()
      assert.equal((await store.listEntries({ limit: 1 }))[0]?.status, 'unhandled')
      await handling(store, [UPDATE])
      same(idsOf(await store.listEntries({ status: 'pending' })).sort(), ['e1', 'e2', 'e3', 'e4'])
      assert.equal((await leasedEntry(store)).id, 'e4')
    },
  },
  {
    name: 'handleTopics: the first process with handlers gets every event that came before, also for a handler that it adds late',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await store.accept([
        eventOf('s1', { id: 'e1', key: 'a' }),
        eventOf('s1', { id: 'other', key: 'a', name: 'application/installed' }),
      ])
      await handling(store, [])
      same(idsOf(await store.listEntries({ status: 'unhandled' })).sort(), ['e1', 'other'])
      await lab.pass(200)
      const begunAt = Date.now()
      const sinceItBegan = () => Date.now() - begunAt + 100
      await handling(store, ['change'], sinceItBegan())
      await handling(store, ['change', UPDATE], sinceItBegan())
      same(idsOf(await store.listEntries({ status: 'unhandled' })), ['other'])
      same(idsOf(await leasedEntries(store, { entryLimit: 10 })), ['e1'])
    },
  },
  {
    name: 'replayEntry: an entry without a handler is pending, and is claimed when it has one',
    async check(lab) {
      const store = await withoutHandlers(lab)
      await store.accept([eventOf('s1', { id: 'e1' })])
      assert.equal(await store.replayEntry('e1'), true)
      same(idsOf(await store.listEntries({ status: 'pending' })), ['e1'])
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
