import { entitlementKey, LANE_URGENCY, type ReadFinish } from '../../../../lib/store/port/store.js'
import { type Checks, DONE, fails, type HeldEntry, has, type Lab, named, retry, same } from '../lab.js'

const TOPICS = { topics: ['entitlement'] }
const NOTHING = { items: [], isUncertain: false }

/** Entries about the entitlement of a business, and what its handlers were told. */
export const ENTITLEMENTS: Checks = {
  async 'entitlements: the finish of a read writes them, and whether the subscription gives access, as the caller says'(
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
      ['e1', 'e2'].map((id) => [id, 's1', { id, business_uid: 'b1', cause: 'event', quiet: false }]),
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
    const first = await store.leaseOne(TOPICS)
    has(first, { id: 'e of s1' })
    await store.end([first], DONE)
    has(await store.leaseOne(TOPICS), { id: 'e of s2' })
  },

  async 'entitlements: a quiet first read writes a quiet one'(lab) {
    await lab.handle(['entitlement'])
    await lab.requestRefresh({ ...named('s1', 'b1'), quiet: true })
    await lab.read('purchased', wakes('e1'))
    same(JSON.parse((await lab.leaseOne(TOPICS)).payload).quiet, true)
  },

  async 'toldOf: the items of the last result that had some, if its lease was held'(lab) {
    same(await lab.toldOf('b1'), NOTHING)
    const first = await oneOf(lab)
    await lab.end([first], told('basic', 'pro'))
    same(await lab.toldOf('b1'), { items: ['basic', 'pro'], isUncertain: false })
    same(await lab.toldOf('b2'), NOTHING)
    await lab.end([first], told('late'))
    same(await lab.toldOf('b1'), { items: ['basic', 'pro'], isUncertain: false })
    await lab.end([await oneOf(lab, 'e2')], retry(0))
    same(await lab.toldOf('b1'), { items: ['basic', 'pro'], isUncertain: false })
    await lab.end([await lab.leaseOne(TOPICS)], told())
    same(await lab.toldOf('b1'), NOTHING)
  },

  async 'toldOf: several results of one finish leave those of the last'(lab) {
    await lab.handle(['entitlement'])
    await lab.request('s1', 'b1')
    const [e1, e2] = [wakes('e1'), wakes('e2')].map(({ entitlements = [] }) => entitlements)
    await lab.read('purchased', { entitles: true, entitlements: [...(e1 ?? []), ...(e2 ?? [])] })
    const [one, two] = (await lab.lease({ ...TOPICS, entryLimit: 9 })) as [HeldEntry, HeldEntry]
    same(await lab.beginTelling(laneOf(one), 'b1'), true)
    const results = [
      { id: one.id, attempt: 1, result: told('basic') },
      { id: two.id, attempt: 1, result: quietly('basic', 'pro') },
    ]
    await lab.finishLanes([{ ...laneOf(one), results, keepLease: false }])
    same(await lab.toldOf('b1'), { items: ['basic', 'pro'], isUncertain: false })
  },

  async 'beginTelling: what handlers know is uncertain until a call succeeds, and no quiet import ends that'(
    lab,
  ) {
    const first = await oneOf(lab)
    same(await lab.beginTelling(laneOf(first), 'b1'), true)
    same(await lab.toldOf('b1'), { items: [], isUncertain: true })
    await lab.end([first], { kind: 'dead', error: 'an error' })
    same(await lab.toldOf('b1'), { items: [], isUncertain: true })
    await lab.end([await oneOf(lab, 'e2')], quietly('basic'))
    same(await lab.toldOf('b1'), { items: ['basic'], isUncertain: true })
    const third = await oneOf(lab, 'e3')
    same(await lab.beginTelling(laneOf(third), 'b1'), true)
    await lab.end([third], told('pro'))
    same(await lab.toldOf('b1'), { items: ['pro'], isUncertain: false })
    same(await lab.beginTelling(laneOf(third), 'b1'), false)
    same(await lab.toldOf('b1'), { items: ['pro'], isUncertain: false })
  },

  async 'replayEntry: what the handlers of an entitlement know is uncertain then'(lab) {
    await lab.end([await oneOf(lab)], told('basic'))
    same(await lab.replayEntry('e1'), true)
    same(await lab.toldOf('b1'), { items: ['basic'], isUncertain: true })
  },

  async 'erase: deletes the entitlements of a business and what handlers were told of it'(lab) {
    await lab.end([await oneOf(lab)], told('basic'))
    await lab.erase('b1', { id: 'erasure', name: 'erase', businessUid: 'b1', payload: '{}' })
    same(await lab.toldOf('b1'), NOTHING)
    same(await lab.ids({ kind: 'entitlement' }), [])
  },
}

/** A finish that writes an entitlement of b1. */
function wakes(id: string, entitles = true): Pick<ReadFinish, 'entitles' | 'entitlements'> {
  return { entitles, entitlements: [{ id, businessUid: 'b1', cause: 'event' }] }
}

const told = (...items: string[]) =>
  ({ kind: 'done', told: { businessUid: 'b1', items, isByCall: true } }) as const
const quietly = (...items: string[]) =>
  ({ kind: 'done', told: { businessUid: 'b1', items, isByCall: false } }) as const
const laneOf = ({ key, leaseToken }: HeldEntry) => ({ id: key, leaseToken })

/** Leases a new entitlement of b1. */
async function oneOf(lab: Lab, id = 'e1'): Promise<HeldEntry> {
  await lab.handle(['entitlement'])
  await lab.request(`s of ${id}`, 'b1')
  await lab.read('purchased', wakes(id))
  return lab.leaseOne(TOPICS)
}
