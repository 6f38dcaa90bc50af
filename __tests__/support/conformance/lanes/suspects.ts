import assert from 'node:assert/strict'
import { type Entry, MAX_LAPSES } from '../../../../lib/store/port/store.js'
import {
  ALL_URGENCIES,
  businessOf,
  type Checks,
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  fails,
  type HeldEntry,
  has,
  idsOf,
  isNumber,
  type Lab,
  LONG,
  retry,
  SHORT,
  same,
  UPDATE,
} from '../lab.js'
import { inLine } from './handing-over.js'

/** Work whose lease ran out: who leases it, in which order, and what counts as a lapse. */
export const SUSPECTS: Checks = {
  async 'claimSuspectLane: leases the lanes whose lease ran out, which claimLanes leaves out; only a try alone counts'(
    lab,
  ) {
    await lab.accept(inLine('a1', 'a2', 'b1'))
    has(await lab.leaseOne({ limit: 1, leaseMs: SHORT, entryLimit: 1 }), { id: 'a1', lapses: 0 })
    await suspectDue(lab, 'lane')
    same(idsOf(await plainEntries(lab)), ['b1'])
    for (const lapses of [0, 1, 2]) {
      await suspectDue(lab, 'lane')
      const claim = await lab.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })
      has(claim, { id: 'a', lapses })
      same(idsOf(claim?.entries ?? []), ['a1'])
      has(claim?.entries[0], { attempt: lapses + 1 })
      isNumber(claim?.lapses, 'lapses')
      isNumber(claim?.entries[0]?.attempt, 'attempt')
    }
    await suspectDue(lab, 'lane')
    const last = await lab.leaseOne()
    has(last, { id: 'a1', lapses: 3 })
    same(await lab.end([last], retry(0)), ['a1'])
    has(await lab.until('the retry is due', async () => (await plainEntries(lab))[0]), {
      id: 'a1',
      attempt: 5,
    })
    same(await lab.dueSuspect(ANY), null)
  },

  async 'claimSuspectLane: returns only the head after a lease has expired, until the head is finished'(lab) {
    await lab.accept(inLine('a1', 'a2', 'a3'))
    assert.equal((await lab.lease({ entryLimit: 10, leaseMs: SHORT })).length, 3)
    await suspectDue(lab, 'lane')
    const alone = await lab.leaseOne({ entryLimit: 10 })
    has(alone, { id: 'a1', attempt: 1, lapses: 0 })
    await lab.end([alone], DONE)
    same(idsOf(await lab.lease({ entryLimit: 10 })), ['a2', 'a3'])
  },

  async 'claimSuspectLane: a lane that is returned untried stays suspect, and the try does not count'(lab) {
    await lab.accept(inLine('a1'))
    await lab.lease({ leaseMs: SHORT })
    for (let i = 0; i < 3; i++) {
      await suspectDue(lab, 'lane')
      const claim = await lab.claimSuspectLane(ANY_LANE)
      has(claim, { id: 'a', lapses: 0 })
      const leaseToken = String(claim?.leaseToken)
      same(await lab.finishLanes([{ id: 'a', leaseToken, results: [], keepLease: false }]), ['a'])
      same(await plainEntries(lab), [])
    }
  },

  async 'claimSuspectLane: leases the fewest lapses first, only lanes of the given topics, and none that is excepted'(
    lab,
  ) {
    await lab.accept(inLine('a1', 'b1', 'c1'))
    assert.equal((await lab.lease({ leaseMs: SHORT })).length, 3)
    await suspectDue(lab, 'lane')
    const first = String((await lab.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT }))?.id)
    await lab.pass(SHORT + 10)
    const others: string[] = []
    for (let i = 0; i < 2; i++) {
      const claim = await lab.claimSuspectLane({ ...ANY_LANE, exceptKeys: [...others] })
      has(claim, { lapses: 0 })
      others.push(String(claim?.id))
    }
    same([first, ...others].sort(), ['a', 'b', 'c'])
    for (const other of [{ topics: ['change'] }, { topics: [] }, { exceptKeys: [first] }])
      same(await lab.claimSuspectLane({ ...ANY_LANE, ...other }), undefined)
    same(await lab.dueSuspect({ ...ANY, exceptKeys: [first] }), null)
    has(await lab.claimSuspectLane(ANY_LANE), { id: first, lapses: 1 })
  },

  async 'claimSuspectLane: the lapses of a head end with it, however its lane leaves the suspects'(lab) {
    const lapsedTwice = async () => {
      await lab.leaseOne({ limit: 1, leaseMs: SHORT })
      for (const lapses of [0, 1]) {
        await suspectDue(lab, 'lane')
        has(await lab.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT }), { id: 'a', lapses })
      }
      await suspectDue(lab, 'lane')
      return lab.leaseOne()
    }
    const ways: Record<string, (head: HeldEntry) => Promise<unknown>> = {
      'it is done': (head) => lab.end([head], DONE),
      'it is tried again': (head) => lab.end([head], retry(0)),
      'the lease is kept': (head) => lab.finishLanes([ending(head, DONE, true)]),
      'it is replayed, and so taken from its holder': ({ id }) => lab.replayEntry(id),
    }
    for (const [way, leave] of Object.entries(ways)) {
      const [first, second] = [`a ${way}`, `a then, ${way}`]
      await lab.accept([first, second].map((id) => eventOf(id, { id, key: 'a', refresh: null })))
      const head = await lapsedTwice()
      has(head, { id: first, lapses: 2 })
      await lab.renew(head, SHORT)
      await leave(head)
      await lab.until(`its lane is suspect again: ${way}`, async () => {
        await lab.claimLanes({ ...ANY_LANE, limit: 1, entryLimit: 1, leaseMs: SHORT })
        return (await lab.dueSuspect(ANY)) === 'lane'
      })
      const again = await lab.claimSuspectLane(ANY_LANE)
      has(again, { id: 'a', lapses: 0 })
      assert(again)
      await lab.finishLanes([
        { id: 'a', leaseToken: again.leaseToken, results: resultsOf(again.entries), keepLease: false },
      ])
      for (let left = 1; left > 0; ) left = (await lab.end(await lab.lease(), DONE)).length
    }
  },

  async 'claimSuspectLane: a lane stays suspect when an entry behind its head is pruned'(first) {
    const lab = await first.withoutHandlers()
    await lab.handle([UPDATE])
    await lab.accept([
      eventOf('s1', { id: 'a1', key: 'a' }),
      eventOf('s1', { id: 'behind', key: 'a', name: 'application/installed' }),
    ])
    // No process handles it, and a replay makes it wait behind the other.
    await lab.replayEntry('behind')
    await lab.leaseOne({ topics: [UPDATE], leaseMs: SHORT })
    await suspectDue(lab, 'lane')
    await lab.pass(5)
    same(await lab.prune({ eventsMs: 0, changesMs: 0, actionsMs: 0, deadMs: 0 }), { rows: 1, dead: [] })
    same(await lab.ids({ status: 'unhandled' }), ['behind'])
    same(await lab.claimLanes({ ...ANY_LANE, topics: [UPDATE], limit: 9, entryLimit: 9 }), [])
    has(await lab.claimSuspectLane({ ...ANY_LANE, topics: [UPDATE] }), { id: 'a', lapses: 0 })
  },

  async 'claimSuspectLane: the lapses of a head that waits to begin alone end with its replay'(lab) {
    await lab.accept(inLine('a1'))
    await lab.lease({ leaseMs: SHORT })
    await suspectDue(lab, 'lane')
    await lab.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })
    await lab.accept(inLine('b1'))
    await lab.lease({ limit: 1, leaseMs: 2 * SHORT })
    await lab.pass(2 * SHORT + 10)
    // It has not lapsed, so it begins before the other, which is due longer.
    has(await lab.claimSuspectLane(ANY_LANE), { id: 'b', lapses: 0 })
    assert.equal(await lab.replayEntry('a1'), true)
    has(await lab.claimSuspectLane(ANY_LANE), { id: 'a', lapses: 0 })
  },

  async 'claimLanes: a lane that was taken from its holder is not suspect, and not leased while its lease or its handler lasts'(
    lab,
  ) {
    await lab.accept(inLine('a1'))
    const held = await lab.leaseOne({ leaseMs: 4 * SHORT })
    assert.equal(await lab.replayEntry('a1'), true)
    // Another replay, when nobody seems to hold it.
    assert.equal(await lab.replayEntry('a1'), true)
    same(await lab.end([held], DONE), [])
    same(await lab.lease(), [])
    await lab.pass(4 * SHORT + 10)
    same(await lab.dueSuspect(ANY), null)
    same(await lab.lease({ exceptKeys: ['a'] }), [])
    has(await lab.leaseOne(), { id: 'a1', attempt: 1, lapses: 0 })
  },

  async 'claimSuspectLane: a replay begins anew'(lab) {
    await lab.accept(inLine('a1'))
    await lab.lease({ leaseMs: SHORT })
    await suspectDue(lab, 'lane')
    await lab.end([await lab.leaseOne()], { kind: 'dead', error: 'it ends the process' })
    assert.equal(await lab.replayEntry('a1'), true)
    const [entry] = await plainEntries(lab)
    has(entry, { id: 'a1', attempt: 1, lapses: 0 })
  },

  async 'claimSuspectRead: leases the reads whose lease ran out, which claimReads leaves out; a finish ends the suspicion'(
    lab,
  ) {
    await lab.request('s1')
    await lab.request('s2')
    const { id } = await lab.claim({ leaseMs: SHORT })
    await suspectDue(lab, 'read')
    assert.notEqual((await lab.claim()).id, id)
    for (const lapses of [0, 1, 2]) {
      await suspectDue(lab, 'read')
      has(await lab.claimSuspectRead({ leaseMs: SHORT }), { id, lapses, generation: 1 })
    }
    await suspectDue(lab, 'read')
    const last = await lab.claimSuspectRead({ leaseMs: LONG })
    assert(last)
    same(await lab.claimSuspectRead({ leaseMs: LONG }), undefined)
    assert.equal(await lab.fail(last, 'platform_timeout', 0), true)
    const retried = await lab.until('the retry is due', async () => (await plainReads(lab))[0])
    has(retried, { id, lapses: 0 })
    assert.equal(await lab.succeed(retried, 'purchased'), true)
    same(await lab.dueSuspect(ANY), null)
  },

  async 'claimSuspectRead: a read that is returned untried stays suspect, and the try does not count, also if it is requested meanwhile'(
    lab,
  ) {
    await lab.request('s1')
    await lab.claim({ leaseMs: SHORT })
    for (let i = 0; i < 3; i++) {
      await suspectDue(lab, 'read')
      const claim = await lab.claimSuspectRead({ leaseMs: LONG })
      has(claim, { id: 's1', lapses: 0 })
      assert(claim)
      await lab.request('s1')
      assert.equal(await lab.finishRead(claim, { ...fails('platform_timeout', 0), isUntried: true }), true)
      same(await plainReads(lab), [])
      same(await lab.dueSuspect(ANY), 'read')
    }
  },

  async 'claimSuspectRead: a read that never ends is put off, whatever is requested, and counted, also of a known subscription'(
    lab,
  ) {
    await lab.known('known')
    for (const [i, uid] of ['unread', 'known'].entries()) {
      await lab.request(uid)
      await lab.renewRead(await lab.next(uid), SHORT)
      for (let lapses = 0; lapses < MAX_LAPSES; lapses++) {
        await suspectDue(lab, 'read')
        has(await lab.claimSuspectRead({ leaseMs: SHORT }), { id: uid, lapses })
      }
      await lab.pass(SHORT + 10)
      same(await lab.claimSuspectRead({ leaseMs: SHORT }), undefined)
      const [row] = await lab.subscriptionsNamed([uid])
      has(row, { failure: 'lease_lapsed', pending: true })
      isNumber(row?.refreshAt, 'refreshAt')
      has(await lab.counts(), { lapsed: i + 1, refused: 0, givenUp: 0, knownGivenUp: 0 })
      await lab.request(uid)
      same((await lab.subscriptionsNamed([uid]))[0]?.refreshAt, row?.refreshAt)
      same(await plainReads(lab), [])
      same(await lab.dueSuspect(ANY), null)
    }
  },

  async 'H195 claimSuspectRead: a read that was put off keeps its time, whatever the reads of others find, and tests nothing for them'(
    lab,
  ) {
    for (const uid of ['refused', 'served', 'third']) await lab.known(uid)
    await lab.refuse('refused')
    for (const uid of ['refused', 'served']) {
      await lab.request(uid)
      await lab.renewRead(await lab.next(uid), SHORT)
      for (let lapses = 0; lapses < MAX_LAPSES; lapses++) {
        await suspectDue(lab, 'read')
        has(await lab.claimSuspectRead({ leaseMs: SHORT }), { id: uid, lapses })
      }
      await lab.pass(SHORT + 10)
      same(await lab.claimSuspectRead({ leaseMs: SHORT }), undefined)
      await lab.accept([eventOf(uid)])
    }
    const dueTimes = async () => (await lab.listSubscriptions({ limit: 2 })).map(({ refreshAt }) => refreshAt)
    const before = await dueTimes()
    const claim = await lab.refuse('third')
    has(await lab.otherBusinesses(claim, 0), { untested: 0 })
    same(await lab.readOthers(claim, { which: 'served', untestedForMs: 0, limit: 20 }), 0)
    same(await lab.readOthers(claim, { which: 'failing', pauseMs: 0, limit: 20 }), 0)
    for (const uid of ['refused', 'served']) await lab.readFirst(businessOf(uid))
    same(await lab.refreshAll(1), 1)
    same(await dueTimes(), before)
    same(await lab.dueSuspect(ANY), null)
  },

  async 'dueSuspect: names the kind with the fewest lapses, of the given kinds'(lab) {
    same(await lab.dueSuspect(ANY), null)
    await lab.request('s1')
    await lab.accept(inLine('a1'))
    await lab.claim({ leaseMs: SHORT })
    await lab.leaseOne({ leaseMs: SHORT })
    await suspectDue(lab, 'lane')
    same(await lab.dueSuspect({ ...ANY, kinds: ['read'] }), 'read')
    same(await lab.dueSuspect({ ...ANY, topics: [] }), 'read')
    await lab.claimSuspectLane({ ...ANY_LANE, leaseMs: SHORT })
    await lab.pass(SHORT + 10)
    same(await lab.dueSuspect(ANY), 'read')
    same(await lab.dueSuspect({ ...ANY, kinds: ['lane'] }), 'lane')
  },
}

const ANY_LANE = { leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [] }
const ANY = { kinds: ['lane', 'read'], topics: EVERY_TOPIC, exceptKeys: [] } as const

const resultsOf = (entries: readonly Entry[]) =>
  entries.map(({ id, attempt }) => ({ id, attempt, result: DONE }))

function suspectDue(lab: Lab, kind: 'lane' | 'read') {
  return lab.until('the lease runs out', async () => (await lab.dueSuspect(ANY)) === kind)
}

/** Leases the heads of the lanes that are not suspect. */
async function plainEntries(lab: Lab) {
  const claims = await lab.claimLanes({ ...ANY_LANE, limit: 10, entryLimit: 1 })
  return claims.flatMap(({ entries, lapses }) => entries.map((entry) => ({ ...entry, lapses })))
}

function plainReads(lab: Lab) {
  return lab.claimReads({ limit: 10, leaseMs: LONG, except: [], urgencies: ALL_URGENCIES })
}
