import assert from 'node:assert/strict'
import type { ReadClaim, Store } from '../../../lib/store/port/store.js'
import {
  type Checks,
  claimOne,
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  fails,
  handling,
  named,
  REQUESTED,
  same,
} from './lab.js'

const ASK = { leaseMs: 1_000, topics: EVERY_TOPIC, exceptKeys: [] }
const ACTION = { id: 'a1', name: 'a', businessUid: null, payload: '{}' }

/** Every call that needs the database, with valid arguments. */
const CALLS: Record<string, (store: Store, claim: ReadClaim) => Promise<unknown>> = {
  accept: (store) => store.accept([eventOf('s1')]),
  requestRefresh: (store) => store.requestRefresh(named('s1')),
  subscriptionsOf: (store) => store.subscriptionsOf('b1'),
  claimReads: (store) => claimOne(store, { leaseMs: 1_000, except: [], urgencies: REQUESTED }),
  claimSuspectRead: (store) => store.claimSuspectRead({ leaseMs: 1_000 }),
  renewRead: (store, claim) => store.renewRead(claim, 1_000),
  finishRead: (store, claim) => store.finishRead(claim, fails('platform_timeout')),
  claimLanes: (store) => store.claimLanes({ ...ASK, limit: 1, entryLimit: 1 }),
  claimSuspectLane: (store) => store.claimSuspectLane(ASK),
  dueSuspect: (store) => store.dueSuspect({ ...ASK, kinds: ['lane', 'read'] }),
  renewLane: (store) => store.renewLane({ id: 'k', leaseToken: 'none' }, 1_000),
  finishLanes: (store) => store.finishLanes([{ id: 'k', leaseToken: 'none', results: [], keepLease: false }]),
  handleTopics: (store) => handling(store, EVERY_TOPIC),
  listEntries: (store) => store.listEntries({}),
  replayEntry: (store) => store.replayEntry('e1'),
  getEntry: (store) => store.getEntry('e1'),
  listSubscriptions: (store) => store.listSubscriptions({ limit: 1 }),
  listBusinesses: (store) => store.listBusinesses({ limit: 1 }),
  timelineOf: (store) => store.timelineOf('b1', { limit: 1 }),
  recordAction: (store) => store.recordAction(ACTION),
  erase: (store) => store.erase('b1', ACTION),
  prune: (store) => store.prune({ eventsMs: 0, changesMs: 0, actionsMs: 0, deadMs: 0 }),
  counts: (store) => store.counts(),
  otherBusinesses: (store, claim) => store.otherBusinesses(claim, 0),
  readOthers: (store, claim) => store.readOthers(claim, { which: 'failing', pauseMs: 0, limit: 1 }),
}

async function rejectAll(store: Store, claim: ReadClaim) {
  for (const [name, call] of Object.entries(CALLS))
    await assert.rejects(call(store, claim), { code: 'store_unavailable' }, name)
}

export const OPENING: Checks = {
  async 'open: a new store is empty'(lab) {
    for (const [name, count] of Object.entries(await lab.counts()))
      assert.equal(count, name.endsWith('Ms') ? null : 0, name)
    same([await lab.ids(), await lab.subscriptionsOf('b1')], [[], []])
  },

  async 'open: two calls, also concurrent ones, open once and lose nothing; other databases are independent'(
    lab,
  ) {
    await lab.accept([eventOf('s1')])
    await lab.open()
    const other = await lab.create()
    await Promise.all([other.open(), other.open()])
    await other.handle(EVERY_TOPIC)
    await other.accept([eventOf('s1')])
    same([(await lab.counts()).pending, (await other.counts()).pending], [1, 1])
  },

  async 'close: may be called before open, and twice'(lab) {
    const never = await lab.create()
    await never.close()
    await never.close()
    await Promise.all([lab.close(), lab.close()])
    await lab.close()
  },

  async 'close: waits for calls under way'(lab) {
    await lab.accept([eventOf('s1'), eventOf('s2')])
    const [claim, leased] = [await lab.claim(), await lab.leaseOne({ limit: 1 })]
    let ended = 0
    const underWay = [
      lab.accept([eventOf('s3')]),
      lab.succeed(claim, 'purchased'),
      lab.finishLanes([ending(leased, DONE)]),
      lab.listEntries({}),
      lab.counts(),
    ].map((call) => call.then(() => ended++))
    await lab.close()
    await Promise.allSettled(underWay)
    assert.equal(ended, underWay.length, 'close() did not wait for earlier calls')
  },

  async 'open, close: every call before the first and after the second rejects with store_unavailable'(lab) {
    await lab.request('s1')
    const claim = await lab.claim()
    await rejectAll(await lab.create(), claim)
    await lab.close()
    await rejectAll(lab, claim)
  },
}
