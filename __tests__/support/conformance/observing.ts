import assert from 'node:assert/strict'
import { subscriptionKey } from '../../../lib/store/store.js'
import {
  type Check,
  claimed,
  DONE,
  ending,
  eventOf,
  finish,
  has,
  LATER,
  leasedEntry,
  named,
  same,
  shows,
} from './lab.js'

const NOTHING = { reads: false, entries: false }
const SOON = { withinMs: 1_000 }

export const OBSERVING: readonly Check[] = [
  {
    name: 'addTallies: adds up by kind, name and secret, and stores the first and the last time',
    async check({ store }) {
      const key = { kind: 'event', name: 'a/b', secret: 'one' } as const
      await store.addTallies([])
      same(await store.tallies(), [])
      await store.addTallies([{ ...key, count: 2, firstAgoMs: 5_000, lastAgoMs: 1_000 }])
      await store.addTallies([
        { ...key, count: 3, firstAgoMs: 4_000, lastAgoMs: 0 },
        { ...key, secret: 'two', count: 1, firstAgoMs: 0, lastAgoMs: 0 },
        { kind: 'secret_wrong', name: '', secret: '', count: 7, firstAgoMs: 0, lastAgoMs: 0 },
      ])
      // A late report of an older time changes neither the first nor the last time.
      await store.addTallies([{ ...key, count: 1, firstAgoMs: 3_000, lastAgoMs: 2_000 }])
      const tallies = await store.tallies()
      same(tallies.map(({ kind, name, secret, count }) => [kind, name, secret, count]).sort(), [
        ['event', 'a/b', 'one', 6],
        ['event', 'a/b', 'two', 1],
        ['secret_wrong', '', '', 7],
      ])
      const first = tallies.find(({ secret }) => secret === 'one')
      assert(first)
      const apartMs = first.lastAt - first.firstAt
      assert(apartMs >= 4_900 && apartMs < 60_000, `the first and the last time differ by ${apartMs} ms`)
    },
  },
  {
    name: 'addTallies: adds up the tallies of several processes',
    needs: 'beside',
    async check(lab) {
      const row = { kind: 'unrecognised', name: '', secret: 'x', firstAgoMs: 0, lastAgoMs: 0 } as const
      const other = await lab.beside()
      await Promise.all([
        lab.store.addTallies([{ ...row, count: 1 }]),
        other.addTallies([{ ...row, count: 2 }]),
      ])
      has((await other.tallies())[0] as object, { count: 3 })
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
