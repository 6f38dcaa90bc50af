import assert from 'node:assert/strict'
import { subscriptionKey } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  DONE,
  ending,
  eventOf,
  finish,
  has,
  isNumber,
  LATER,
  leasedEntry,
  named,
  same,
  shows,
} from '../lab.js'

const NOTHING = { reads: false, entries: false }
const SOON = { withinMs: 1_000 }

export const OBSERVING: readonly Check[] = [
  {
    name: 'arrivals: counts the newest deliveries in the journal by name and secret, and says how far back they are all',
    async check({ store }) {
      same(await store.arrivals(10), { arrivals: [], completeSince: null })
      const came = (id: string, secret: string | null, more = {}) =>
        store.accept([eventOf('s1', { id, name: 'a/b', secret, refresh: null, ...more })])
      await came('1', null)
      await came('2', 'one')
      await came('3', 'one')
      await came('4', 'two')
      await came('5', 'one', { kind: 'unrecognised', name: '' })
      await store.recordAction({ id: '6', name: 'look', businessUid: null, payload: '{}' })
      const { arrivals, completeSince } = await store.arrivals(10)
      same(completeSince, null)
      const countsOf = (all: typeof arrivals) =>
        all.map(({ kind, name, secret, count }) => [kind, name, secret, count].join()).sort()
      same(countsOf(arrivals), ['event,a/b,,1', 'event,a/b,one,2', 'event,a/b,two,1', 'unrecognised,,one,1'])
      for (const { firstAt, lastAt } of arrivals) {
        isNumber(firstAt, 'firstAt')
        assert(lastAt >= firstAt && Math.abs(Date.now() - lastAt) < LATER)
      }
      const newest = await store.arrivals(3)
      same(countsOf(newest.arrivals), ['event,a/b,two,1', 'unrecognised,,one,1'])
      isNumber(newest.completeSince, 'completeSince')
    },
  },
  {
    name: 'dueWork: a read is due until it is finished, also while it is leased',
    async check({ store }) {
      same(await store.dueWork(SOON), NOTHING)
      await store.requestRefresh(named('s1'))
      same(await store.dueWork(SOON), { reads: true, entries: false })
      const claim = await claimed(store)
      same(await store.dueWork(SOON), { reads: true, entries: false })
      await store.finishRead(claim, shows(claim, 'purchased', { nextInMs: LATER }))
      same(await store.dueWork(SOON), NOTHING)
      has(await store.dueWork({ withinMs: 2 * LATER }), { reads: true })
    },
  },
  {
    name: 'dueWork: an entry is due until it is finished, unless its topic is not given',
    async check({ store }) {
      await store.accept([eventOf('s1', { key: subscriptionKey('s1'), refresh: null })])
      same(await store.dueWork(SOON), { reads: false, entries: true })
      same(await store.dueWork({ ...SOON, topics: ['event:*'] }), { reads: false, entries: true })
      same(await store.dueWork({ ...SOON, topics: ['change'] }), NOTHING)
      const leased = await leasedEntry(store)
      same(await store.dueWork({ ...SOON, topics: ['change'] }), { reads: false, entries: true })
      await finish(store, [ending(leased, DONE)])
      same(await store.dueWork(SOON), NOTHING)
    },
  },
  {
    name: 'dueWork: a later retry is not due',
    async check({ store }) {
      await store.accept([eventOf('s1', { refresh: null })])
      const leased = await leasedEntry(store)
      await finish(store, [ending(leased, { kind: 'retry', inMs: LATER, error: 'not yet' })])
      same(await store.dueWork(SOON), NOTHING)
    },
  },
  {
    name: 'schemaVersion: is a whole number of at least 1',
    async check({ store }) {
      const version = await store.schemaVersion()
      assert(Number.isInteger(version) && version >= 1, `the version is ${version}`)
    },
  },
]
