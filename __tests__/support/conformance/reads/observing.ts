import assert from 'node:assert/strict'
import { type Checks, DONE, eventOf, has, isNumber, LATER, retry, same } from '../lab.js'

const NOTHING = { reads: false, entries: false }
const READS = { reads: true, entries: false }
const ENTRIES = { reads: false, entries: true }
const SOON = { withinMs: 1_000 }

export const OBSERVING: Checks = {
  async 'arrivals: counts the newest deliveries in the journal by name and secret, and says how far back they are all'(
    lab,
  ) {
    same(await lab.arrivals(10), { arrivals: [], completeSince: null })
    const came = (id: string, secret: string | null, more = {}) =>
      lab.accept([eventOf('s1', { id, name: 'a/b', secret, refresh: null, ...more })])
    await came('1', null)
    await came('2', 'one')
    await came('3', 'one')
    await came('4', 'two')
    await came('5', 'one', { kind: 'unrecognised', name: '' })
    await lab.recordAction({ id: '6', name: 'look', businessUid: null, payload: '{}' })
    const { arrivals, completeSince } = await lab.arrivals(10)
    same(completeSince, null)
    const countsOf = (all: typeof arrivals) =>
      all.map(({ kind, name, secret, count }) => [kind, name, secret, count].join()).sort()
    same(countsOf(arrivals), ['event,a/b,,1', 'event,a/b,one,2', 'event,a/b,two,1', 'unrecognised,,one,1'])
    for (const { firstAt, lastAt } of arrivals) {
      isNumber(firstAt, 'firstAt')
      assert(lastAt >= firstAt && Math.abs(Date.now() - lastAt) < LATER)
    }
    const newest = await lab.arrivals(3)
    same(countsOf(newest.arrivals), ['event,a/b,two,1', 'unrecognised,,one,1'])
    isNumber(newest.completeSince, 'completeSince')
  },

  async 'dueWork: a read is due until it is finished, also while it is leased'(lab) {
    same(await lab.dueWork(SOON), NOTHING)
    await lab.request('s1')
    same(await lab.dueWork(SOON), READS)
    const claim = await lab.claim()
    same(await lab.dueWork(SOON), READS)
    await lab.succeed(claim, 'purchased')
    same(await lab.dueWork(SOON), NOTHING)
    has(await lab.dueWork({ withinMs: 2 * LATER }), { reads: true })
  },

  async 'dueWork: an entry is due until it is finished, unless its topic is not given, and a later retry is not'(
    lab,
  ) {
    await lab.accept([eventOf('s1', { refresh: null })])
    same(await lab.dueWork(SOON), ENTRIES)
    same(await lab.dueWork({ ...SOON, topics: ['event:*'] }), ENTRIES)
    same(await lab.dueWork({ ...SOON, topics: ['change'] }), NOTHING)
    const leased = await lab.leaseOne()
    same(await lab.dueWork({ ...SOON, topics: ['change'] }), ENTRIES)
    await lab.end([leased], DONE)
    same(await lab.dueWork(SOON), NOTHING)
    await lab.accept([eventOf('s1', { refresh: null })])
    await lab.end([await lab.leaseOne()], retry(LATER))
    same(await lab.dueWork(SOON), NOTHING)
  },

  async 'schemaVersion: is a whole number of at least 1'(lab) {
    const version = await lab.schemaVersion()
    assert(Number.isInteger(version) && version >= 1, `the version is ${version}`)
  },
}
