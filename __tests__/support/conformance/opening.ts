import assert from 'node:assert/strict'
import { type ReadFinish, type Store, URGENCY } from '../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimOne,
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  handling,
  leasedEntry,
  named,
  only,
  REQUESTED,
  same,
  shows,
} from './lab.js'

/** Every call that needs the database, with valid arguments. */
const CALLS: Record<string, (store: Store) => Promise<unknown>> = {
  accept: (store) => store.accept([eventOf('s1')]),
  requestRefresh: (store) => store.requestRefresh(named('s1')),
  subscriptionsOf: (store) => store.subscriptionsOf('b1'),
  claimReads: (store) => claimOne(store, { leaseMs: 1_000, except: [], urgencies: REQUESTED }),
  claimSuspectRead: (store) => store.claimSuspectRead({ leaseMs: 1_000 }),
  renewRead: (store) => store.renewRead({ id: 's1', leaseToken: 'none' }, 1_000),
  finishRead: (store) => store.finishRead(NO_CLAIM, NO_FINISH),
  claimLanes: (store) =>
    store.claimLanes({ limit: 1, entryLimit: 1, leaseMs: 1_000, topics: EVERY_TOPIC, exceptKeys: [] }),
  claimSuspectLane: (store) =>
    store.claimSuspectLane({ leaseMs: 1_000, topics: EVERY_TOPIC, exceptKeys: [] }),
  dueSuspect: (store) => store.dueSuspect({ kinds: ['lane', 'read'], topics: EVERY_TOPIC, exceptKeys: [] }),
  renewLane: (store) => store.renewLane({ id: 'k', leaseToken: 'none' }, 1_000),
  finishLanes: (store) => store.finishLanes([{ id: 'k', leaseToken: 'none', results: [], keepLease: false }]),
  handleTopics: (store) => handling(store, EVERY_TOPIC),
  listEntries: (store) => store.listEntries({}),
  replayEntry: (store) => store.replayEntry('e1'),
  getEntry: (store) => store.getEntry('e1'),
  listSubscriptions: (store) => store.listSubscriptions({ limit: 1 }),
  timelineOf: (store) => store.timelineOf('b1', { limit: 1 }),
  recordAction: (store) => store.recordAction(NO_ACTION),
  erase: (store) => store.erase('b1', NO_ACTION),
  prune: (store) => store.prune({ eventsMs: 0, changesMs: 0, deadMs: 0 }),
  counts: (store) => store.counts(),
  otherBusinesses: (store) => store.otherBusinesses(NO_CLAIM, 0),
  readOthers: (store) => store.readOthers(NO_CLAIM, { which: 'failing', pauseMs: 0, limit: 1 }),
}

export const OPENING: readonly Check[] = [
  {
    name: 'open: a new store is empty',
    async check({ store }) {
      same(await store.counts(), {
        subscriptions: 0,
        requested: 0,
        givenUp: 0,
        pending: 0,
        retrying: 0,
        dead: 0,
        unrecognised: 0,
        recentChanges: 0,
        unannouncedChanges: 0,
        recentFirstRecords: 0,
        unannouncedFirstRecords: 0,
        oldestPendingMs: null,
        oldestMissedMs: null,
        oldestRequestMs: null,
        oldestOverdueMs: null,
        knownGivenUp: 0,
        lapsed: 0,
        active: 0,
        hidden: 0,
        withoutToken: 0,
        leaving: 0,
        refusedLately: 0,
        servedMeanwhile: 0,
        stale: 0,
        confirmed: 0,
        refused: 0,
      })
      same(await store.listEntries({}), [])
      same(await store.subscriptionsOf('b1'), [])
    },
  },
  {
    name: 'open: two calls, also concurrent ones, open once and lose nothing',
    async check(lab) {
      await lab.store.accept([eventOf('s1')])
      await lab.store.open()
      const other = await lab.create()
      await Promise.all([other.open(), other.open()])
      await handling(other, EVERY_TOPIC)
      await other.accept([eventOf('s1')])
      assert.equal((await lab.store.counts()).pending, 1)
      assert.equal((await other.counts()).pending, 1)
    },
  },
  {
    name: 'open: stores over different databases are independent',
    async check(lab) {
      const other = await lab.create()
      await other.open()
      await lab.store.accept([eventOf('s1')])
      assert.equal((await other.counts()).pending, 0)
    },
  },
  {
    name: 'open: data and leases outlive a close',
    needs: 'reopen',
    async check(lab) {
      await lab.store.accept([eventOf('s1', { businessUid: 'b1' }), eventOf('s2')])
      const claim = await claimed(lab.store, { except: ['business of s2'] })
      await lab.store.finishRead(claim, shows(claim, 'purchased', { progress: '{"tries":1}' }))
      const held = await claimed(lab.store)
      const seenBy = async (store: Store) => {
        const counts = { ...(await store.counts()), oldestPendingMs: 0, oldestRequestMs: 0 }
        // Each opening converts times again, so they may differ.
        const { readAt: _read, requestedAt: _asked, refreshAt: _next, ...what } = await only(store, 'b1')
        return [counts, await store.listEntries({}), what]
      }
      const before = await seenBy(lab.store)
      const again = await lab.reopen()
      same(await seenBy(again), before)
      assert.equal(await claimOne(again, { leaseMs: 1_000, except: [], urgencies: REQUESTED }), undefined)
      assert.equal(await again.finishRead(held, shows(held, 'suspended')), true)
      await again.open()
      assert.equal((await only(again, 'business of s2')).state, 'suspended')
    },
  },
  {
    name: 'close: may be called before open, and twice',
    async check(lab) {
      const never = await lab.create()
      await never.close()
      await never.close()
      await Promise.all([lab.store.close(), lab.store.close()])
      await lab.store.close()
    },
  },
  {
    name: 'close: events accepted before it are stored, refused ones are not',
    needs: 'reopen',
    async check(lab) {
      const events = Array.from({ length: 20 }, (_, i) => eventOf(`s${i}`))
      const accepting = Promise.allSettled(events.map((event) => lab.store.accept([event])))
      const again = await lab.reopen()
      const results = await accepting
      const accepted = events.filter((_, i) => results[i]?.status === 'fulfilled').map(({ id }) => id)
      const stored = (await again.listEntries({})).map(({ id }) => id).reverse()
      same(stored, accepted)
    },
  },
  {
    name: 'close: waits for calls under way',
    async check({ store }) {
      await store.accept([eventOf('s1'), eventOf('s2')])
      const [claim, leased] = [await claimed(store), await leasedEntry(store, { limit: 1 })]
      const underWay = [
        store.accept([eventOf('s3')]),
        store.finishRead(claim, shows(claim, 'purchased')),
        store.finishLanes([ending(leased, DONE)]),
        store.listEntries({}),
        store.counts(),
      ]
      let ended = 0
      for (const call of underWay) {
        call.then(
          () => ended++,
          () => {},
        )
      }
      await store.close()
      await Promise.allSettled(underWay)
      assert.equal(ended, underWay.length, 'close() did not wait for earlier calls')
    },
  },
  {
    name: 'close: every later call rejects with store_unavailable',
    async check({ store }) {
      await store.close()
      await rejectAll(store)
    },
  },
  {
    name: 'open: every call before it rejects with store_unavailable',
    async check(lab) {
      await rejectAll(await lab.create())
    },
  },
]

async function rejectAll(store: Store) {
  for (const [name, call] of Object.entries(CALLS)) {
    await assert.rejects(call(store), { code: 'store_unavailable' }, name)
  }
}

const NO_ACTION = { id: 'a1', name: 'a', businessUid: null, payload: '{}' }

const NO_FINISH: ReadFinish = { settled: true, failure: null, progress: null, nextInMs: null }

const NO_CLAIM: Parameters<Store['finishRead']>[0] = {
  id: 's1',
  leaseToken: 'none',
  urgency: URGENCY.eventOfUnread,
  cause: 'event',
  generation: 1,
  settledGeneration: 0,
  candidateBusinessUid: null,
  lapses: 0,
  uninstalledAt: null,
  failingSince: null,
  updateAt: null,
  businessUpdateAt: null,
  endAt: null,
  createdAt: 0,
  claimedAt: 0,
  leaseTimeBehindMs: 0,
  progress: null,
  subscription: {
    subscriptionUid: 's1',
    businessUid: 'b1',
    purchasableUid: null,
    record: null,
    state: null,
    gone: null,
    readAt: null,
    requestedAt: null,
    owedSince: null,
    generation: 1,
    settledGeneration: 0,
    pending: true,
    verifying: false,
    failure: null,
    refreshAt: 0,
    quiet: false,
  },
}
