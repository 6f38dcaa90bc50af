import assert from 'node:assert/strict'
import { businessKey, EVERY_EVENT, type NewEvent, subscriptionKey } from '../../../../lib/store/port/store.js'
import {
  type Checks,
  changeOf,
  DEAD,
  DONE,
  ending,
  eventOf,
  type HeldEntry,
  has,
  idsOf,
  LATER,
  type Lab,
  LONG,
  retry,
  SHORT,
  same,
  UPDATE,
} from '../lab.js'

const INSTALLED = 'application/installed'

/** Events with these ids. The first letter is the lane. */
export const inLine = (...ids: string[]): NewEvent[] =>
  ids.map((id) => eventOf(id, { id, key: id[0] as string, refresh: null }))

const about = (uid: string): NewEvent => eventOf(uid, { id: uid, key: subscriptionKey(uid) })

const installs = (businessUid: string): NewEvent =>
  eventOf('', {
    id: businessUid,
    name: INSTALLED,
    key: businessKey(businessUid),
    businessUid,
    subscriptionUid: null,
    refresh: null,
  })

export const HANDING_OVER: Checks = {
  async 'claimLanes: leases the oldest entry of each lane, oldest first, and no second one of a lane'(lab) {
    await lab.accept(inLine('a1', 'b1', 'a2', 'c1', 'b2'))
    const first = await lab.lease()
    same(idsOf(first), ['a1', 'b1', 'c1'])
    same(await lab.lease(), [])
    await lab.end(first.slice(0, 2), DONE)
    same(idsOf(await lab.lease()), ['a2', 'b2'])
  },

  async 'claimLanes: finds events whose names have another order by bytes than in JavaScript'(lab) {
    const named = (name: string, id: string) => eventOf(id, { id, name, key: id, refresh: null })
    await lab.accept([named('\u{1F600}', 'a'), named('\uFF08', 'b')])
    await lab.end(await lab.lease(), DONE, DONE)
    await lab.accept([named('\uFF08', 'c')])
    same(idsOf(await lab.lease()), ['c'])
    await lab.accept([named('\u{1F600}', 'd')])
    same(idsOf(await lab.lease()), ['d'])
  },

  async 'claimLanes: leases up to the limit, the longest due first'(lab) {
    for (const id of ['a1', 'b1', 'c1', 'd1']) {
      await lab.accept(inLine(id))
      await lab.pass(3)
    }
    same(idsOf(await lab.lease({ limit: 3 })), ['a1', 'b1', 'c1'])
    same(idsOf(await lab.lease({ limit: 3 })), ['d1'])
  },

  async 'claimLanes: leases changes first, then events of what was read before, and then what may be made up'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.end(await lab.lease(), DONE)
    await lab.accept([about('made up'), installs('business of made up'), installs('b1')])
    await lab.accept([
      {
        ...eventOf('x', { id: 'unrecognised' }),
        kind: 'unrecognised',
        name: '',
        key: 'x',
        subscriptionUid: null,
        refresh: null,
      },
    ])
    await lab.accept([{ ...about('s1'), id: 'known' }])
    await lab.succeed(await lab.next('s1'), 'canceled', { changes: [changeOf('change 1')] })
    const classes = async () => {
      const [entry] = await lab.lease({ limit: 1 })
      return entry ? [entry.kind === 'change' ? 'change' : entry.id] : []
    }
    same(await classes(), ['change'])
    same([...(await classes()), ...(await classes())].sort(), ['b1', 'known'])
    const rest = [...(await classes()), ...(await classes()), ...(await classes())]
    same(rest.sort(), ['business of made up', 'made up', 'unrecognised'])
    same(await classes(), [])
  },

  async 'claimLanes: an event precedes those that may be made up once a read has shown its subscription'(
    lab,
  ) {
    await lab.accept([about('made up')])
    await lab.accept([about('first')])
    await lab.accept([installs('business of first')])
    const claims = await lab.claimAll()
    for (const claim of claims)
      if (claim.id === 'first') await lab.succeed(claim, 'purchased')
      else await lab.fail(claim, 'platform_record_missing', LATER)
    const first = [...(await lab.lease({ limit: 1 })), ...(await lab.lease({ limit: 1 }))]
    same(idsOf(first).sort(), ['business of first', 'first'])
    same(idsOf(await lab.lease({ limit: 1 })), ['made up'])
  },

  async 'claimLanes: leases the classes that `choose` picks, and ends when it picks none'(lab) {
    await lab.accept([eventOf('a', { id: 'a' }), eventOf('b', { id: 'b' }), eventOf('c', { id: 'c' })])
    const asked: unknown[] = []
    const taken = await lab.lease({
      choose(due, taken) {
        asked.push([[...due], [...taken]])
        return taken.length < 2 ? due[0] : undefined
      },
    })
    same(taken.length, 2)
    same(asked, [
      [[2], []],
      [[2], [2]],
      [[2], [2, 2]],
    ])
    same((await lab.lease()).length, 1)
  },

  async 'claimLanes: twenty concurrent claims lease each entry at most once, and one of each lane'(lab) {
    await claimLanesAtOnce([lab])
    same(await lab.lease(), [])
  },

  async 'claimLanes: a leased or retrying entry delays the later entries of its lane only'(lab) {
    await lab.accept(inLine('a1', 'a2', 'b1', 'b2'))
    await lab.end(await lab.lease(), retry(LATER), retry(0))
    has(await lab.nextEntry(), { id: 'b1', attempt: 2 })
    same(await lab.lease(), [])
  },

  async 'claimLanes: entries after a retrying one are due as soon as it has ended, done or dead'(lab) {
    await lab.accept(inLine('a1', 'a2', 'b1', 'b2'))
    await lab.end(await lab.lease(), retry(200))
    same(await lab.lease({ limit: 1 }), [])
    await lab.accept(inLine('a3'))
    const again: HeldEntry[] = []
    await lab.until('both are due again', async () => {
      again.push(...(await lab.lease()))
      return again.length === 2
    })
    same(idsOf(again), ['a1', 'b1'])
    await lab.end(again, DONE, DEAD)
    const next = await lab.lease()
    same(idsOf(next), ['a2', 'b2'])
    await lab.end(next, DONE)
    same(idsOf(await lab.lease()), ['a3'])
  },

  async 'claimLanes: leases only lanes whose head has one of the given topics'(lab) {
    const [event, odd, behind] = inLine('a1', 'b1', 'a2') as [NewEvent, NewEvent, NewEvent]
    await lab.accept([event, { ...odd, kind: 'unrecognised' }, { ...behind, name: INSTALLED }])
    const of = (...topics: string[]) => lab.lease({ topics })
    same(await of(), [])
    same(await of('change', `event:${INSTALLED}`, 'event:no such name'), [])
    same(idsOf(await of('unrecognised')), ['b1'])
    const a1 = await of(UPDATE)
    same(await of(`event:${INSTALLED}`), [])
    same(await lab.end(a1, DONE), ['a1'])
    same(idsOf(await of('change', `event:${INSTALLED}`)), ['a2'])
  },

  async 'claimLanes: returns the first entries of a lane, in order, up to an entry of another topic'(lab) {
    await lab.accept(
      inLine('a1', 'a2', 'a3', 'a4').map((each) =>
        each.id === 'a3' ? { ...each, kind: 'unrecognised' } : each,
      ),
    )
    const leased = await lab.lease({ entryLimit: 10, topics: [EVERY_EVENT] })
    same(idsOf(leased), ['a1', 'a2'])
    for (const each of leased) assert.equal(each.attempt, 1)
    const [first, second] = leased as [HeldEntry, HeldEntry]
    same(await lab.finishLanes([ending(first, DONE, true)]), ['a'])
    same(await lab.lease(), [])
    same(await lab.end([second], DONE), ['a2'])
    same(idsOf(await lab.lease({ entryLimit: 10 })), ['a3', 'a4'])
  },

  async 'claimLanes: returns at most the given number of entries, and at least one of each lane'(lab) {
    await lab.accept(inLine(...['a', 'b', 'c'].flatMap((key) => [1, 2, 3, 4].map((n) => `${key}${n}`))))
    same(idsOf(await lab.lease({ limit: 2, entryLimit: 4 })), ['a1', 'a2', 'b1', 'b2'])
    same(idsOf(await lab.lease({ entryLimit: 0 })), ['c1'])
  },

  async 'claimLanes: leaves out the excepted lanes, also after their lease has expired'(lab) {
    await lab.accept(inLine('a1', 'b1'))
    await lab.lease({ limit: 1, leaseMs: 1 })
    await lab.pass(10)
    same(idsOf(await lab.lease({ exceptKeys: ['a'] })), ['b1'])
    same(await lab.lease({ exceptKeys: ['a', 'no such key'] }), [])
    has(await lab.leaseOne(), { id: 'a1', lapses: 0 })
  },

  async 'claimLanes: a change follows an older event of its lane'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1', key: 'k' })])
    await lab.read('purchased', { changes: [changeOf('c1', { key: 'k' })] })
    for (const id of ['e1', 'c1']) same(await lab.end([await lab.leaseOne()], DONE), [id])
  },

  async 'renewLane: extends a lease; returns false for one that is finished, passed on or forged'(lab) {
    await lab.accept(inLine('a1', 'b1'))
    const a1 = await lab.leaseOne({ limit: 1, leaseMs: 200 })
    assert.equal(await lab.renew(a1, LONG), true)
    const b1 = await lab.leaseOne({ leaseMs: SHORT })
    has(await lab.nextEntry(), { id: 'b1' })
    assert.equal(await lab.renew(b1, LONG), false)
    assert.equal(await lab.renew({ ...a1, leaseToken: 'made up' }, SHORT), false)
    await lab.pass(250)
    same(await lab.lease(), [])
    await lab.end([a1], DONE)
    assert.equal(await lab.renew(a1, LONG), false)
  },

  async 'handling: each entry is handled once, and each lane in its order, with several workers'(lab) {
    await handOver([lab])
  },
}

/** Twenty claims at once, in turns through these stores of one database. */
export async function claimLanesAtOnce(stores: readonly [Lab, ...Lab[]]): Promise<void> {
  const keys = [...'abcdefghij']
  await stores[0].accept(inLine(...keys.flatMap((key) => [`${key}1`, `${key}2`])))
  const leased: string[] = []
  await stores[0].until('the first of each lane is leased', async () => {
    const claims = Array.from({ length: 20 }, (_, i) => stores[i % stores.length]?.lease({ limit: 2 }))
    leased.push(...(await Promise.all(claims)).flatMap((entries) => idsOf(entries ?? [])))
    return leased.length >= keys.length
  })
  same(
    leased.sort(),
    keys.map((key) => `${key}1`),
  )
}

/** Eight workers claim, handle and finish entries, in turns through these stores of one database. */
export async function handOver(stores: readonly [Lab, ...Lab[]]): Promise<void> {
  const lines = [...'abcdefgh'].map((key) => [1, 2, 3, 4, 5].map((n) => `${key}${n}`))
  for (const i of [0, 1, 2, 3, 4]) await stores[0].accept(inLine(...lines.map((line) => line[i] ?? '')))
  const order: string[] = []
  const active = new Set<string>()

  async function handle(lab: Lab) {
    for (const each of await lab.lease({ limit: 3 })) {
      assert(!active.has(each.key), `two entries of the lane ${each.key} are leased at once`)
      active.add(each.key)
      await new Promise((resolve) => setImmediate(resolve))
      order.push(each.id)
      active.delete(each.key)
      same(await lab.end([each], DONE), [each.id])
    }
  }

  await stores[0].until('all are handled', async () => {
    const workers = Array.from({ length: 8 }, (_, i) => stores[i % stores.length] ?? stores[0])
    await Promise.all(workers.map(handle))
    return order.length >= lines.flat().length
  })
  for (const line of lines)
    same(
      order.filter((id) => id[0] === line[0]?.[0]),
      line,
    )
}
