import { entitlementKey, LANE_URGENCY, type ReadFinish } from '../../../../lib/store/port/store.js'
import { type Checks, DONE, fails, type HeldEntry, has, idsOf, type Lab, named, retry, same } from '../lab.js'

const TOPICS = { topics: ['entitlement'] }

/** Entries about the entitlement of a business. */
export const ENTITLEMENTS: Checks = {
  async 'entitlements: the finish of a read writes them, with what it changed, and whether the subscription gives access'(
    lab,
  ) {
    await lab.handle(['entitlement'])
    await lab.request('s1', 'b1')
    has(await lab.only('b1'), { entitles: false })
    await lab.read('purchased', { ...wakes('e1'), nextInMs: 0 })
    has(await lab.only('b1'), { entitles: true })
    await lab.fail(await lab.next(), 'platform_timeout', 0)
    has(await lab.only('b1'), { entitles: true })
    await lab.finishRead(await lab.next(), { ...fails('platform_timeout'), ...wakes('e2', false) })
    has(await lab.only('b1'), { entitles: false })
    const [claim] = await lab.claimLanes({
      ...{ limit: 1, entryLimit: 9, leaseMs: 60_000, exceptKeys: [] },
      ...TOPICS,
    })
    has(claim, { id: entitlementKey('b1'), urgency: LANE_URGENCY.change })
    same(
      claim?.entries.map(({ id, subscriptionUid, payload }) => [id, subscriptionUid, JSON.parse(payload)]),
      [
        ['e1', 's1', { id: 'e1', business_uid: 'b1', cause: 'event', before: null, after: 'basic' }],
        ['e2', 's1', { id: 'e2', business_uid: 'b1', cause: 'event', before: 'basic', after: null }],
      ],
    )
  },

  async 'entitlements: wait unhandled until a process has their handler, however long ago they came'(lab) {
    const store = await lab.withoutHandlers()
    for (const uid of ['s1', 's2']) {
      await store.request(uid, 'b1')
      await store.read('purchased', wakes(`e of ${uid}`))
    }
    same(await store.ids({ kind: 'entitlement', status: 'unhandled' }), ['e of s2', 'e of s1'])
    has(await store.counts(), { pending: 0 })
    await store.handle(['change'])
    same(await store.ids({ kind: 'entitlement', status: 'pending' }), [])
    await store.handle(['entitlement'])
    same(idsOf(await store.lease(ALL)), ['e of s1', 'e of s2'])
  },

  async 'entitlements: the first read of a quiet import writes none, and a later one does'(lab) {
    await lab.handle(['entitlement'])
    await lab.requestRefresh({ ...named('s1', 'b1'), quiet: true })
    await lab.read('purchased', { ...wakes('e1'), nextInMs: 0 })
    has(await lab.only('b1'), { entitles: true, quiet: false })
    same(await lab.ids({ kind: 'entitlement' }), [])
    await lab.read('suspended', wakes('e2', false))
    same(await lab.ids({ kind: 'entitlement' }), ['e2'])
  },

  async 'entitlements: one that is tried again is handed out with those that came since'(lab) {
    await lab.end([await oneOf(lab)], retry(0))
    await wake(lab, 'e2')
    same(idsOf(await lab.lease(ALL)), ['e1', 'e2'])
  },

  async 'entitlements: one finish ends all that were handed out'(lab) {
    await lab.handle(['entitlement'])
    for (const id of ['e1', 'e2', 'e3']) await wake(lab, id)
    const held = await lab.lease(ALL)
    const [{ key, leaseToken }] = held as [HeldEntry]
    const results = held.map(({ id, attempt }) => ({ id, attempt, result: DONE }))
    same(await lab.finishLanes([{ id: key, leaseToken, results, keepLease: false }]), [key])
    same(await lab.ids({ kind: 'entitlement', status: 'done' }), ['e3', 'e2', 'e1'])
    same(await lab.lease(ALL), [])
  },

  async 'replayEntry: an entitlement that is done comes after the one whose handlers run'(lab) {
    await lab.end([await oneOf(lab)], DONE)
    const second = await oneOf(lab, 'e2')
    same(await lab.replayEntry('e1'), true)
    same(await lab.end([second], DONE), ['e2'])
    has(await lab.leaseOne(TOPICS), { id: 'e1', attempt: 1 })
  },

  async 'erase: deletes the entitlements of a business, and takes them from their holder'(lab) {
    await lab.end([await oneOf(lab)], DONE)
    const held = await oneOf(lab, 'e2')
    await lab.erase('b1', { id: 'erasure', name: 'erase', businessUid: 'b1', payload: '{}' })
    same(await lab.ids({ kind: 'entitlement' }), [])
    same(await lab.renew(held, 60_000), false)
  },
}

/** All entries of the lane. */
const ALL = { ...TOPICS, entryLimit: 9 }

/** A finish that writes an entitlement of b1: an item begins, or ends. */
function wakes(id: string, entitles = true): Pick<ReadFinish, 'entitles' | 'entitlements'> {
  const [before, after] = entitles ? [null, 'basic'] : ['basic', null]
  return { entitles, entitlements: [{ id, businessUid: 'b1', cause: 'event', before, after }] }
}

/** Writes an entitlement of b1 by the read of a new subscription. */
async function wake(lab: Lab, id: string) {
  await lab.request(`s of ${id}`, 'b1')
  await lab.read('purchased', wakes(id))
}

/** Leases a new entitlement of b1. */
async function oneOf(lab: Lab, id = 'e1'): Promise<HeldEntry> {
  await lab.handle(['entitlement'])
  await wake(lab, id)
  return lab.leaseOne(TOPICS)
}
