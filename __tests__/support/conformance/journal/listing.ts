import assert from 'node:assert/strict'
import { type EntryFilter, EVERY_EVENT } from '../../../../lib/store/port/store.js'
import {
  type Checks,
  changeOf,
  DEAD,
  DONE,
  eventOf,
  has,
  idsOf,
  LATER,
  LONG,
  retry,
  SHORT,
  same,
} from '../lab.js'

export const LISTING: Checks = {
  async 'listEntries: newest first, filtered by status, kind, business, subscription, and all of them'(lab) {
    const of = (id: string, subscriptionUid: string, businessUid: string) =>
      eventOf(subscriptionUid, { id, key: id, businessUid })
    await lab.accept([of('e1', 's1', 'b1'), of('e2', 's2', 'b1'), of('e3', 's1', 'b1')])
    await lab.accept([{ ...of('u1', 's3', 'b2'), kind: 'unrecognised', issues: ['no'], refresh: null }])
    await lab.end(await lab.lease({ topics: [EVERY_EVENT], limit: 2 }), DONE, DEAD)
    await lab.read('purchased', { changes: [changeOf('c1', { businessUid: 'b' })] })

    same(await lab.ids({}), ['c1', 'u1', 'e3', 'e2', 'e1'])
    same(await lab.ids({ status: 'pending' }), ['c1', 'u1', 'e3'])
    same(await lab.ids({ status: 'retrying' }), [])
    same(await lab.ids({ status: 'done' }), ['e1'])
    same(await lab.ids({ status: 'dead' }), ['e2'])
    same(await lab.ids({ kind: 'event' }), ['e3', 'e2', 'e1'])
    same(await lab.ids({ kind: 'unrecognised' }), ['u1'])
    same(await lab.ids({ kind: 'change' }), ['c1'])
    same(await lab.ids({ businessUid: 'b2' }), ['u1'])
    same(await lab.ids({ subscriptionUid: 's2', kind: 'event' }), ['e2'])
    same(await lab.ids({ subscriptionUid: ['s2', 's3', 's4'] }), ['u1', 'e2'])
    const all = { subscriptionUid: 's1', businessUid: 'b1', kind: 'event', status: 'pending' } as const
    same(await lab.ids(all), ['e3'])
    same(await lab.ids({ businessUid: 'b2', subscriptionUid: 's1' }), [])
  },

  async 'listEntries: filters retrying entries'(lab) {
    await lab.accept(['a', 'b', 'c'].map((id) => eventOf('s1', { id, key: id })))
    await lab.end(await lab.lease({ limit: 2 }), retry(LATER), DONE)
    const status = 'retrying'
    same(await lab.ids({ status }), ['a'])
    same(await lab.ids({ status, kind: 'event', subscriptionUid: 's1' }), ['a'])
    same(await lab.ids({ status, kind: 'change' }), [])
    same(await lab.ids({ status, businessUid: 'another' }), [])
  },

  async 'listEntries: filters by name and time, also among more entries than it examines at once'(lab) {
    const of = (id: string, name: string) => eventOf('s1', { id, name, businessUid: 'b1', refresh: null })
    await lab.accept([of('first', 'a')])
    await lab.pass(5)
    await lab.accept(Array.from({ length: 2_100 }, (_, i) => of(`e${i}`, 'b')))
    await lab.pass(5)
    await lab.accept([of('last', 'a')])
    const at = async (id: string) => Date.parse((await lab.getEntry(id))?.receivedAt ?? '')
    const [first, last] = [await at('first'), await at('last')]
    for (const owner of [{}, { businessUid: 'b1' }, { subscriptionUid: 's1' }]) {
      const list = (filter: object) => lab.ids({ ...owner, ...filter })
      same(await list({ name: 'a' }), ['last', 'first'])
      same(await list({ name: 'a', status: 'pending', kind: 'event', limit: 1, before: 'last' }), ['first'])
      same(await list({ name: 'c' }), [])
      same(await list({ since: last }), ['last'])
      same(await list({ until: first + 1 }), ['first'])
      same(await list({ until: first }), [])
      same(await list({ name: 'a', since: first, until: last }), ['first'])
    }
  },

  async 'listEntries: the pages contain every entry once'(lab) {
    const events = Array.from({ length: 25 }, (_, i) => eventOf(`s${i % 3}`, { id: `e${i + 10}` }))
    await lab.accept(events)
    const seen = await lab.ids({ limit: 4 })
    for (let before = seen.at(-1); before; ) {
      const page = await lab.ids({ limit: 4, before })
      assert(page.length <= 4 && seen.length <= events.length, 'the pages do not end')
      seen.push(...page)
      before = page.at(-1)
    }
    same(seen, idsOf(events).reverse())
    same(await lab.ids({ subscriptionUid: 's0', limit: 2, before: 'e22' }), ['e19', 'e16'])
    same(await lab.ids({ subscriptionUid: ['s0', 's1'], limit: 3, before: 'e22' }), ['e20', 'e19', 'e17'])
    // The entry at which a page ended may have been deleted since.
    same(await lab.ids({ limit: 2, before: 'e12, deleted' }), ['e12', 'e11'])
    same(await lab.ids({ subscriptionUid: 's0', limit: 2, before: 'e16, deleted' }), ['e16', 'e13'])
    for (const owner of [{}, { subscriptionUid: 's0' }])
      same(await lab.ids({ ...owner, before: 'a, older than all' }), [])
  },

  async 'listEntries: the default limit is 100, and a limit out of bounds becomes the nearest bound'(lab) {
    await lab.accept(Array.from({ length: 1_001 }, (_, i) => eventOf('s1', { id: `e${i}` })))
    const shown = async (filter: object) => (await lab.ids(filter)).length
    assert.equal(await shown({}), 100)
    for (const limit of [0, -5, 1]) assert.equal(await shown({ limit }), 1)
    for (const limit of [1_000, 5_000]) assert.equal(await shown({ limit }), 1_000)
  },

  async 'listEntries: returns entries in a form for people'(lab) {
    const name = 'application/installed'
    const event = eventOf('s1', { id: 'e1', businessUid: 'b1', payload: '{"a":[1,null,"€"]}', name })
    const odd = eventOf('s2', { kind: 'unrecognised', name: '', issues: ['one', 'two'], refresh: null })
    await lab.accept([event, odd])
    const [second, first] = await lab.listEntries({})
    const payload = { a: [1, null, '€'] }
    has(first, { id: 'e1', kind: 'event', name, businessUid: 'b1', subscriptionUid: 's1', payload })
    has(first, { status: 'pending', issues: null, attempts: 0, error: null })
    has(second, { kind: 'unrecognised', issues: ['one', 'two'] })
    for (const time of [first?.receivedAt, first?.dueAt])
      assert.equal(new Date(time as string).toISOString(), time)
  },

  async 'getEntry: returns the entry with the id, or undefined'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
    has(await lab.getEntry('e1'), { id: 'e1', kind: 'event', status: 'pending', businessUid: 'b1' })
    assert.equal(await lab.getEntry('e2'), undefined)
  },

  async 'replayEntry: makes an entry of any status pending again, with the first try'(lab) {
    await lab.accept(['a', 'b', 'c'].map((id) => eventOf(id, { id, key: id })))
    await lab.end(await lab.lease(), DONE, DEAD, retry(LATER))
    for (const id of ['a', 'b', 'c']) {
      assert.equal(await lab.replayEntry(id), true)
      has(await lab.getEntry(id), { status: 'pending', attempts: 0 })
      has(await lab.nextEntry(), { id, attempt: 1, lapses: 0 })
    }
    assert.equal(await lab.replayEntry('no such entry'), false)
  },

  async 'replayEntry: with a status, replays only an entry that has it, also when two replay at once'(lab) {
    await lab.accept(['a', 'b', 'c', 'd'].map((id) => eventOf(id, { id, key: id })))
    const leased = await lab.lease()
    await lab.end(leased.slice(0, 3), DONE, DEAD, retry(LATER))
    const replayable = async (status: EntryFilter['status']) => {
      const isReplayed = await Promise.all(
        ['a', 'b', 'c', 'd'].flatMap((id) => [lab.replayEntry(id, status), lab.replayEntry(id, status)]),
      )
      return isReplayed.flatMap((each, i) => (each ? ['aabbccdd'[i]] : []))
    }
    same(await replayable('unhandled'), [])
    same(await lab.end(leased.slice(3), DONE), ['d'], 'its lease was not taken')
    same(await replayable('dead'), ['b'])
    same(await replayable('retrying'), ['c'])
    same(await replayable('done'), ['a', 'd'])
    same(await lab.ids({ status: 'pending' }), ['d', 'c', 'b', 'a'])
  },

  async 'replayEntry: takes a leased entry from its holder, and it can be claimed after that lease'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1' }), eventOf('s2', { id: 'e2' })])
    const late = await lab.leaseOne({ limit: 1, leaseMs: SHORT })
    for (const lost of [late, await lab.leaseOne({ limit: 1, leaseMs: LONG })]) {
      assert.equal(await lab.replayEntry(lost.id), true)
      assert.equal(await lab.renew(lost, LONG), false)
      same(await lab.end([lost], DEAD), [])
    }
    const holder = await lab.nextEntry()
    has(holder, { id: late.id, attempt: 1 })
    same(await lab.lease(), [])
    same(await lab.end([late], DEAD), [])
    same(await lab.end([holder], DONE), [late.id])
  },
}
