import assert from 'node:assert/strict'
import { MAX_LAPSES, type Store } from '../../../../lib/store/port/store.js'
import {
  ALL_URGENCIES,
  type Check,
  claimed,
  EVERY_TOPIC,
  ending,
  fails,
  finish,
  has,
  idsOf,
  isNumber,
  type Lab,
  LONG,
  leasedEntries,
  leasedEntry,
  named,
  SHORT,
  same,
  shows,
} from '../lab.js'
import { inLine, retry } from './handing-over.js'

/** Work whose lease ran out: who leases it, in which order, and what counts as a lapse. */
export const SUSPECTS: readonly Check[] = [
  {
    name: 'claimSuspectLane: leases the lanes whose lease ran out, which claimLanes leaves out; only a try alone counts',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'a2', 'b1'))
      has(await leasedEntry(store, { limit: 1, leaseMs: SHORT, entryLimit: 1 }), { id: 'a1', lapses: 0 })
      await suspectDue(lab, 'lane')
      same(idsOf(await plainEntries(store)), ['b1'])
      for (const lapses of [0, 1, 2]) {
        await suspectDue(lab, 'lane')
        const claim = await store.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })
        has(claim, { id: 'a', lapses })
        same(idsOf(claim?.entries ?? []), ['a1'])
        has(claim?.entries[0], { attempt: lapses + 1 })
        isNumber(claim?.lapses, 'lapses')
        isNumber(claim?.entries[0]?.attempt, 'attempt')
      }
      await suspectDue(lab, 'lane')
      const last = await leasedEntry(store)
      has(last, { id: 'a1', lapses: 3 })
      same(await finish(store, [ending(last, retry(0))]), ['a1'])
      await lab.until('the retry is due', async () => {
        const [next] = await plainEntries(store)
        if (next) has(next, { id: 'a1', attempt: 5 })
        return next
      })
      same(await store.dueSuspect(ANY), null)
    },
  },
  {
    name: 'claimSuspectLane: a lane that is returned untried stays suspect, and the try does not count',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1'))
      await leasedEntry(store, { leaseMs: SHORT })
      for (let i = 0; i < 3; i++) {
        await suspectDue(lab, 'lane')
        const claim = await store.claimSuspectLane(ANY_LANE)
        has(claim, { id: 'a', lapses: 0 })
        assert(claim)
        const { id, leaseToken } = claim
        same(await store.finishLanes([{ id, leaseToken, results: [], keepLease: false }]), ['a'])
        same(await plainEntries(store), [])
      }
    },
  },
  {
    name: 'claimSuspectLane: leases the fewest lapses first, only lanes of the given topics, and none that is excepted',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1', 'c1'))
      assert.equal((await leasedEntries(store, { leaseMs: SHORT })).length, 3)
      await suspectDue(lab, 'lane')
      const [first] = [await store.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })]
      assert(first)
      await lab.pass(SHORT + 10)
      const others: string[] = []
      for (let i = 0; i < 2; i++) {
        const claim = await store.claimSuspectLane({ ...ANY_LANE, exceptKeys: [...others] })
        has(claim, { lapses: 0 })
        others.push(String(claim?.id))
      }
      same([first.id, ...others].sort(), ['a', 'b', 'c'])
      same(await store.claimSuspectLane({ ...ANY_LANE, topics: ['change'] }), undefined)
      same(await store.claimSuspectLane({ ...ANY_LANE, topics: [] }), undefined)
      same(await store.claimSuspectLane({ ...ANY_LANE, exceptKeys: [first.id] }), undefined)
      same(await store.dueSuspect({ ...ANY, exceptKeys: [first.id] }), null)
      has(await store.claimSuspectLane(ANY_LANE), { id: first.id, lapses: 1 })
    },
  },
  {
    name: 'claimSuspectLane: a replay begins anew',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1'))
      await leasedEntry(store, { leaseMs: SHORT })
      await suspectDue(lab, 'lane')
      const alone = await leasedEntry(store)
      await finish(store, [ending(alone, { kind: 'dead', error: 'it ends the process' })])
      assert.equal(await store.replayEntry('a1'), true)
      same(
        (await plainEntries(store)).map(({ id, attempt, lapses }) => [id, attempt, lapses]),
        [['a1', 1, 0]],
      )
    },
  },
  {
    name: 'claimSuspectRead: leases the reads whose lease ran out, which claimReads leaves out; a finish ends the suspicion',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1'))
      await store.requestRefresh(named('s2'))
      const first = await claimed(store, { leaseMs: SHORT })
      await suspectDue(lab, 'read')
      const other = await claimed(store)
      assert.notEqual(other.id, first.id)
      for (const lapses of [0, 1, 2]) {
        await suspectDue(lab, 'read')
        has(await store.claimSuspectRead({ leaseMs: SHORT }), { id: first.id, lapses, generation: 1 })
      }
      await suspectDue(lab, 'read')
      const last = await store.claimSuspectRead({ leaseMs: LONG })
      assert(last)
      same(await store.claimSuspectRead({ leaseMs: LONG }), undefined)
      assert.equal(await store.finishRead(last, fails('platform_timeout', 0)), true)
      const retried = await lab.until('the retry is due', async () => (await plainReads(store))[0])
      has(retried, { id: first.id, lapses: 0 })
      assert.equal(await store.finishRead(retried, shows(retried, 'purchased')), true)
      same(await store.dueSuspect(ANY), null)
    },
  },
  {
    name: 'claimSuspectRead: a read that is returned untried stays suspect, and the try does not count, also if it is requested meanwhile',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1'))
      await claimed(store, { leaseMs: SHORT })
      for (let i = 0; i < 3; i++) {
        await suspectDue(lab, 'read')
        const claim = await store.claimSuspectRead({ leaseMs: LONG })
        has(claim, { id: 's1', lapses: 0 })
        assert(claim)
        await store.requestRefresh(named('s1'))
        assert.equal(
          await store.finishRead(claim, { ...fails('platform_timeout', 0), isUntried: true }),
          true,
        )
        same(await plainReads(store), [])
        same(await store.dueSuspect(ANY), 'read')
      }
    },
  },
  {
    name: 'claimSuspectRead: a read that never ends is put off, whatever is requested, and counted',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1'))
      await claimed(store, { leaseMs: SHORT })
      for (let lapses = 0; lapses < MAX_LAPSES; lapses++) {
        await suspectDue(lab, 'read')
        has(await store.claimSuspectRead({ leaseMs: SHORT }), { lapses })
      }
      await lab.pass(SHORT + 10)
      same(await store.claimSuspectRead({ leaseMs: SHORT }), undefined)
      const [row] = await store.subscriptionsNamed(['s1'])
      has(row, { failure: 'lease_lapsed', pending: true })
      has(await store.counts(), { lapsed: 1, refused: 0, givenUp: 0 })
      await store.requestRefresh(named('s1'))
      same((await store.subscriptionsNamed(['s1']))[0]?.refreshAt, row?.refreshAt)
      same(await plainReads(store), [])
      same(await store.dueSuspect(ANY), null)
    },
  },
  {
    name: 'dueSuspect: names the kind with the fewest lapses, of the given kinds',
    async check(lab) {
      const { store } = lab
      same(await store.dueSuspect(ANY), null)
      await store.requestRefresh(named('s1'))
      await store.accept(inLine('a1'))
      await claimed(store, { leaseMs: SHORT })
      await leasedEntry(store, { leaseMs: SHORT })
      await suspectDue(lab, 'lane')
      same(await store.dueSuspect({ ...ANY, kinds: ['read'] }), 'read')
      same(await store.dueSuspect({ ...ANY, topics: [] }), 'read')
      await store.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })
      await lab.pass(SHORT + 10)
      same(await store.dueSuspect(ANY), 'read')
      same(await store.dueSuspect({ ...ANY, kinds: ['lane'] }), 'lane')
    },
  },
]

const ANY_LANE = { leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [] }
const ANY = { kinds: ['lane', 'read'], topics: EVERY_TOPIC, exceptKeys: [] } as const

function suspectDue(lab: Lab, kind: 'lane' | 'read') {
  return lab.until('the lease runs out', async () => (await lab.store.dueSuspect(ANY)) === kind)
}

/** Leases the heads of the lanes that are not suspect. */
async function plainEntries(store: Store) {
  const claims = await store.claimLanes({ ...ANY_LANE, limit: 10, entryLimit: 1 })
  return claims.flatMap(({ entries, lapses }) => entries.map((entry) => ({ ...entry, lapses })))
}

function plainReads(store: Store) {
  return store.claimReads({ limit: 10, leaseMs: LONG, except: [], urgencies: ALL_URGENCIES })
}
