import assert from 'node:assert/strict'
import type { TimelinePlace } from '../../../../lib/store/port/store.js'
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
  known,
  LATER,
  leasedEntries,
  named,
  same,
  shows,
} from '../lab.js'

export const LOOKING: readonly Check[] = [
  {
    name: 'timelineOf: entries and their outcomes, newest first; the pages contain each once',
    async check(lab) {
      const { store } = lab
      const of = (id: string) => eventOf('s1', { id, key: id, businessUid: 'b1', refresh: null })
      await store.accept(['e1', 'e2', 'e3', 'e4'].map(of))
      await store.accept([eventOf('s2', { id: 'other', key: 'other', refresh: null })])
      await lab.pass(2)
      const held = (await leasedEntries(store)).filter(({ id }) => id !== 'other')
      const results = [DONE, DEAD, { kind: 'retry', inMs: LATER, error: 'not yet' } as const]
      for (const [i, result] of results.entries()) {
        await finish(store, [ending(held[i] as (typeof held)[0], result)])
        await lab.pass(2)
      }
      await store.recordAction({ id: 'a1', name: 'look', businessUid: 'b1', payload: '{"actor":"me"}' })
      const expected = [
        ...['a1 entry', 'e3 outcome', 'e2 outcome', 'e1 outcome'],
        ...['e4 entry', 'e3 entry', 'e2 entry', 'e1 entry'],
      ]
      for (const limit of [1, 2, 3, 100]) {
        const seen: string[] = []
        for (let before: TimelinePlace | undefined; ; ) {
          const page = await store.timelineOf('b1', { limit, ...(before && { before }) })
          seen.push(...page.map(({ entryId, of: part }) => `${entryId} ${part}`))
          if (page.length < limit) break
          before = page.at(-1)?.place
          assert(seen.length <= 20, 'the pages do not end')
        }
        same(seen, expected)
      }
      const items = await store.timelineOf('b1', { limit: 100 })
      has(items[0], { kind: 'action', name: 'look', payload: '{"actor":"me"}', dueAt: null })
      has(items[1], { status: 'pending', attempts: 1, error: 'not yet' })
      assert((items[1]?.dueAt ?? 0) > (items[1]?.at ?? 0))
      has(items[2], { status: 'dead', error: 'gave up', subscriptionUid: 's1', payload: null })
      same(
        (await store.timelineOf('b1', { limit: 9, before: items[4]?.at as number })).map(
          ({ of: what }) => what,
        ),
        [],
      )
      assert.equal((await store.timelineOf('b1', { limit: 9, before: Number(items[0]?.at) + 1 })).length, 8)
    },
  },
  {
    name: 'recordAction: an action is done from the start, stored once, never claimed or replayed, and deleted like done entries',
    async check(lab) {
      const { store } = lab
      const action = { id: 'a1', name: 'replay', businessUid: 'b1', payload: '{"actor":"me"}' }
      await store.recordAction(action)
      await store.recordAction(action)
      same(idsOf(await store.listEntries({ kind: 'action' })), ['a1'])
      same(idsOf(await store.listEntries({ name: 'replay', businessUid: 'b1' })), ['a1'])
      has(await store.getEntry('a1'), {
        kind: 'action',
        status: 'done',
        payload: { actor: 'me' },
        dueAt: null,
      })
      same(await leasedEntries(store), [])
      assert.equal(await store.replayEntry('a1'), false)
      same(await leasedEntries(store), [])
      await lab.pass(5)
      assert.equal((await store.prune({ eventsMs: LATER, changesMs: 0, deadMs: 0 })).rows, 0)
      assert.equal((await store.prune({ eventsMs: 0, changesMs: LATER, deadMs: LATER })).rows, 1)
      assert.equal(await store.getEntry('a1'), undefined)
    },
  },
  {
    name: 'listEntries: filters by name and time, also among more entries than it examines at once',
    async check(lab) {
      const { store } = lab
      const of = (id: string, name: string) => eventOf('s1', { id, name, businessUid: 'b1', refresh: null })
      await store.accept([of('first', 'a')])
      await lab.pass(5)
      await store.accept(Array.from({ length: 2_100 }, (_, i) => of(`e${i}`, 'b')))
      await lab.pass(5)
      await store.accept([of('last', 'a')])
      const at = async (id: string) => Date.parse((await store.getEntry(id))?.receivedAt ?? '')
      const [first, last] = [await at('first'), await at('last')]
      for (const owner of [{}, { businessUid: 'b1' }, { subscriptionUid: 's1' }]) {
        const list = async (filter: object) => idsOf(await store.listEntries({ ...owner, ...filter }))
        same(await list({ name: 'a' }), ['last', 'first'])
        same(await list({ name: 'a', status: 'pending', kind: 'event', limit: 1, before: 'last' }), ['first'])
        same(await list({ name: 'c' }), [])
        same(await list({ since: last }), ['last'])
        same(await list({ until: first + 1 }), ['first'])
        same(await list({ until: first }), [])
        same(await list({ name: 'a', since: first, until: last }), ['first'])
      }
    },
  },
  {
    name: 'listSubscriptions: in the order of the bytes of the uid, in pages, for one uid or one business',
    async check({ store }) {
      for (const uid of ['b', 'a', 'é', 'Z', 'c']) await known(store, uid, 'purchased', `of ${uid.length}`)
      await store.requestRefresh(named('d', 'x'))
      const list = async (filter: object) =>
        (await store.listSubscriptions({ limit: 10, ...filter })).map(
          ({ subscriptionUid }) => subscriptionUid,
        )
      same(await list({}), ['Z', 'a', 'b', 'c', 'd', 'é'])
      same(await list({ after: 'b', limit: 2 }), ['c', 'd'])
      same(await list({ businessUid: 'of 1', after: 'a' }), ['b', 'c', 'é'])
      same(await list({ subscriptionUid: 'd' }), ['d'])
      same(await list({ subscriptionUid: 'd', businessUid: 'of 1' }), [])
      const [row] = await store.listSubscriptions({ subscriptionUid: 'a', limit: 1 })
      has(row, { state: 'purchased', candidateBusinessUid: null, installAt: null, uninstalledAt: null })
      assert(Number.isSafeInteger(row?.createdAt))
    },
  },
  {
    name: 'getEntry: returns the entry with the id, or undefined',
    async check({ store }) {
      await store.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
      const claim = await claimed(store)
      await store.finishRead(claim, shows(claim, 'purchased'))
      has(await store.getEntry('e1'), { id: 'e1', kind: 'event', status: 'pending', businessUid: 'b1' })
      assert.equal(await store.getEntry('e2'), undefined)
    },
  },
]
