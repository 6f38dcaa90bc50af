import assert from 'node:assert/strict'
import { type EntryFilter, EVERY_EVENT } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  DEAD,
  DONE,
  ending,
  eventOf,
  finish,
  has,
  idsOf,
  LATER,
  LONG,
  leasedEntries,
  renew,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const LISTING: readonly Check[] = [
  {
    name: 'listEntries: newest first, filtered by status, kind, business, subscription, and all of them',
    async check({ store }) {
      const of = (id: string, subscriptionUid: string, businessUid: string) =>
        eventOf(subscriptionUid, { id, key: id, businessUid })
      await store.accept([of('e1', 's1', 'b1'), of('e2', 's2', 'b1'), of('e3', 's1', 'b1')])
      await store.accept([{ ...of('u1', 's3', 'b2'), kind: 'unrecognised', issues: ['no'], refresh: null }])
      const [first, second] = await leasedEntries(store, { topics: [EVERY_EVENT], limit: 2 })
      assert(first && second)
      await finish(store, [ending(first, DONE), ending(second, DEAD)])
      const claim = await claimed(store)
      const change = { id: 'c1', key: 'c1', businessUid: 'b', cause: 'event' as const, payload: '1' }
      await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] }))

      const list = async (filter: Parameters<typeof store.listEntries>[0]) =>
        idsOf(await store.listEntries(filter))
      same(await list({}), ['c1', 'u1', 'e3', 'e2', 'e1'])
      same(await list({ status: 'pending' }), ['c1', 'u1', 'e3'])
      same(await list({ status: 'retrying' }), [])
      same(await list({ status: 'done' }), ['e1'])
      same(await list({ status: 'dead' }), ['e2'])
      same(await list({ kind: 'event' }), ['e3', 'e2', 'e1'])
      same(await list({ kind: 'unrecognised' }), ['u1'])
      same(await list({ kind: 'change' }), ['c1'])
      same(await list({ businessUid: 'b2' }), ['u1'])
      same(await list({ subscriptionUid: 's2', kind: 'event' }), ['e2'])
      same(await list({ subscriptionUid: 's1', businessUid: 'b1', kind: 'event', status: 'pending' }), ['e3'])
      same(await list({ businessUid: 'b2', subscriptionUid: 's1' }), [])
    },
  },
  {
    name: 'listEntries: the pages contain every entry once',
    async check({ store }) {
      const events = Array.from({ length: 25 }, (_, i) => eventOf(`s${i % 3}`, { id: `e${i}` }))
      await store.accept(events)
      const seen: string[] = []
      for (let before: string | undefined; ; ) {
        const page = await store.listEntries({ limit: 4, ...(before === undefined ? {} : { before }) })
        assert(page.length <= 4)
        seen.push(...idsOf(page))
        before = page.at(-1)?.id
        if (before === undefined) break
        assert(seen.length <= events.length, 'the pages do not end')
      }
      same(seen, idsOf(events).reverse())
      const filtered = await store.listEntries({ subscriptionUid: 's0', limit: 2, before: 'e12' })
      same(idsOf(filtered), ['e9', 'e6'])
    },
  },
  {
    name: 'listEntries: the default limit is 100, and a limit out of bounds becomes the nearest bound',
    async check({ store }) {
      await store.accept(Array.from({ length: 1_001 }, (_, i) => eventOf('s1', { id: `e${i}` })))
      const shown = async (limit?: number) =>
        (await store.listEntries(limit === undefined ? {} : { limit })).length
      same(await Promise.all([undefined, 0, -5, 1, 1_000, 5_000].map(shown)), [100, 1, 1, 1, 1_000, 1_000])
    },
  },
  {
    name: 'listEntries: returns entries in a form for people',
    async check({ store }) {
      const event = eventOf('s1', { payload: '{"a":[1,null,"€"]}', name: 'application/installed' })
      const odd = eventOf('s2', { kind: 'unrecognised', name: '', issues: ['one', 'two'], refresh: null })
      await store.accept([event, odd])
      const [second, first] = await store.listEntries({})
      has(first, {
        id: event.id,
        kind: 'event',
        name: 'application/installed',
        status: 'pending',
        businessUid: event.businessUid,
        subscriptionUid: 's1',
        payload: { a: [1, null, '€'] },
        issues: null,
        attempts: 0,
        error: null,
      })
      has(second, { kind: 'unrecognised', issues: ['one', 'two'] })
      for (const time of [first?.receivedAt, first?.dueAt]) {
        assert.equal(typeof time, 'string')
        assert.equal(new Date(time as string).toISOString(), time)
      }
    },
  },
  {
    name: 'replayEntry: makes an entry of any status pending again, with the first try',
    async check(lab) {
      const { store } = lab
      await store.accept(['a', 'b', 'c'].map((id) => eventOf(id, { id, key: id })))
      const leased = await leasedEntries(store)
      const results = [DONE, DEAD, { kind: 'retry', inMs: LATER, error: 'no' } as const]
      await finish(
        store,
        leased.map((each, i) => ending(each, results[i] ?? DONE)),
      )
      for (const id of ['a', 'b', 'c']) {
        assert.equal(await store.replayEntry(id), true)
        has(
          (await store.listEntries({})).find((each) => each.id === id),
          { status: 'pending', attempts: 0 },
        )
        has(await lab.until('it is due', async () => (await leasedEntries(store))[0]), {
          id,
          attempt: 1,
          lapses: 0,
        })
      }
      assert.equal(await store.replayEntry('no such entry'), false)
    },
  },
  {
    name: 'replayEntry: takes a leased entry from its holder, and it can be claimed after that lease',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1', { id: 'e1' }), eventOf('s2', { id: 'e2' })])
      const [late] = await leasedEntries(store, { limit: 1, leaseMs: SHORT })
      const [held] = await leasedEntries(store, { limit: 1, leaseMs: LONG })
      assert(late && held)
      for (const lost of [late, held]) {
        assert.equal(await store.replayEntry(lost.id), true)
        assert.equal(await renew(store, lost, LONG), false)
        same(await finish(store, [ending(lost, DEAD)]), [])
      }
      const holder = await lab.until('the lease expires', async () => (await leasedEntries(store))[0])
      has(holder, { id: late.id, attempt: 1 })
      same(await leasedEntries(store), [])
      same(await finish(store, [ending(late, DEAD)]), [])
      same(await finish(store, [ending(holder, DONE)]), [late.id])
    },
  },
  {
    name: 'listEntries: filters retrying entries',
    async check({ store }) {
      const of = (id: string) => eventOf('s1', { id, key: id })
      await store.accept(['a', 'b', 'c'].map(of))
      const [a, b] = await leasedEntries(store, { limit: 2 })
      assert(a && b)
      await finish(store, [ending(a, { kind: 'retry', inMs: LATER, error: 'no' }), ending(b, DONE)])
      const list = async (filter: EntryFilter) =>
        idsOf(await store.listEntries({ status: 'retrying', ...filter }))
      same(await list({}), ['a'])
      same(await list({ kind: 'event', subscriptionUid: 's1' }), ['a'])
      same(await list({ kind: 'change' }), [])
      same(await list({ businessUid: 'another' }), [])
    },
  },
]
