import assert from 'node:assert/strict'
import {
  entitlementKey,
  LANE_URGENCY,
  type ReadClaim,
  type ReadFinish,
} from '../../../../lib/store/port/store.js'
import {
  type Checks,
  DONE,
  fails,
  type HeldEntry,
  has,
  idsOf,
  type Lab,
  named,
  retry,
  same,
  shows,
} from '../lab.js'

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

  async 'entitlements: an item neither begins nor ends while another subscription of the business gives it'(
    lab,
  ) {
    await lab.handle(['entitlement'])
    async function read(uid: string, businessUid: string, [before, after]: readonly (string | null)[]) {
      await lab.request(uid, businessUid)
      const claim = await lab.next(uid)
      const record = { uid, business_uid: businessUid, purchasable_uid: after, purchase_state: 'purchased' }
      const found = { record, state: 'purchased', gone: null } as NonNullable<ReadFinish['found']>
      const flip = gives(`${uid} to ${after}`, before ?? null, after ?? null, businessUid)
      await lab.finishRead(claim, { ...shows(claim, 'purchased'), found, ...flip })
    }
    await read('s1', 'b1', [null, 'a'])
    await read('s2', 'b1', [null, 'a'])
    await read('s3', 'b2', [null, 'a'])
    await read('s1', 'b1', ['a', 'b'])
    await read('s2', 'b1', ['a', 'b'])
    const held = await lab.lease({ ...ALL, limit: 9 })
    same(
      held.map(({ payload }) => JSON.parse(payload)).map(({ id, before, after }) => [id, before, after]),
      [
        ['s1 to a', null, 'a'],
        ['s1 to b', null, 'b'],
        ['s2 to b', 'a', null],
        ['s3 to a', null, 'a'],
      ],
    )
  },

  async 'entitlementsFrom: has an entry and all later ones of its business, whatever became of them'(lab) {
    await lab.handle(['entitlement'])
    await lab.end([await oneOf(lab)], DONE)
    for (const id of ['e2', 'e3']) await wake(lab, id)
    await lab.request('other', 'b2')
    await lab.read('purchased', gives('of b2', null, 'basic', 'b2'))
    const from = async (id: string) => (await lab.entitlementsFrom(id)).map((each) => each.id)
    same([await from('e1'), await from('e2'), await from('e3')], [['e1', 'e2', 'e3'], ['e2', 'e3'], ['e3']])
    same(await from('none'), [])
  },

  async 'entitlements: two subscriptions that begin or end in one transaction are not mistaken for each other'(
    lab,
  ) {
    await lab.handle(['entitlement'])
    const finishBoth = async (flips: Record<string, readonly [string | null, string | null]>) => {
      const uids = Object.keys(flips)
      for (const uid of uids) await lab.request(uid, 'b1')
      const claims: ReadClaim[] = []
      await lab.until('both are claimed', async () => claims.push(...(await lab.claimAll())) === uids.length)
      const ends = claims.map((claim) => {
        const [before, after] = flips[claim.id] as readonly [string | null, string | null]
        const finish = { ...shows(claim, 'purchased'), ...gives(`${claim.id} ${after}`, before, after) }
        return lab.finishRead(claim, finish)
      })
      same(await Promise.all(ends), [true, true])
    }
    const written = async () => (await lab.ids({ kind: 'entitlement' })).sort()
    await finishBoth({ s1: [null, 'item'], s2: [null, 'item'] })
    const begun = await written()
    assert.ok(begun.length > 0)
    await finishBoth({ s1: ['item', null], s2: ['item', null] })
    const ended = (await written()).filter((id) => !begun.includes(id))
    assert.ok(ended.length > 0)
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
  return entitles ? gives(id, null, 'basic') : gives(id, 'basic', null)
}

/** A finish of a subscription that gives the business an item in place of another one. */
function gives(id: string, before: string | null, after: string | null, businessUid = 'b1') {
  const entitlements = [{ id, businessUid, cause: 'event' as const, before, after }]
  return { entitles: after !== null, entitlements }
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
