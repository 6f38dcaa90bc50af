import assert from 'node:assert/strict'
import { type NewAction, URGENCY } from '../../../../lib/store/port/store.js'
import {
  ALL_URGENCIES,
  type Check,
  claimed,
  claimedAll,
  claimOne,
  DONE,
  ending,
  eventOf,
  finish,
  has,
  idsOf,
  known,
  type Lab,
  LONG,
  leasedEntries,
  named,
  only,
  renew,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const ERASING: readonly Check[] = [
  {
    name: 'erase: deletes the subscriptions and entries of one business and records the erasure',
    async check({ store }) {
      await known(store, 's1', 'purchased', 'b1')
      await known(store, 's2', 'purchased', 'b2')
      await store.accept([
        eventOf('s1', { id: 'e1', businessUid: 'b1' }),
        // Of a subscription of the business, with another business.
        eventOf('s1', { id: 'e2', businessUid: 'b2' }),
        eventOf('s2', { id: 'e4', businessUid: 'b2' }),
        // Of the business, with a subscription of another one.
        eventOf('s2', { id: 'e3', businessUid: 'b1' }),
        eventOf('', {
          id: 'e5',
          key: 'business:b1',
          businessUid: 'b1',
          subscriptionUid: null,
          refresh: null,
        }),
      ])
      await store.recordAction({ id: 'looked', name: 'look', businessUid: 'b1', payload: '{}' })
      const { rows, at } = await store.erase('b1', record('erasure'))
      // s1; e1, e2, e3, e5 and the action; b1 as the candidate of s2.
      assert.equal(rows, 7)
      assert.equal(typeof at, 'number')
      same(await store.subscriptionsOf('b1'), [])
      same(idsOf(await store.listEntries({})), ['erasure', 'e4'])
      has(await store.getEntry('erasure'), {
        kind: 'action',
        name: 'erase',
        status: 'done',
        businessUid: 'b1',
        payload: { actor: 'a', rows: 7 },
      })
      const [left] = await store.listSubscriptions({ limit: 10 })
      has(left, { subscriptionUid: 's2', businessUid: 'b2', state: 'purchased', candidateBusinessUid: null })
      same(idsOf(await leasedEntries(store)), ['e4'])

      await store.erase('b1', record('again'))
      same(idsOf(await store.listEntries({ businessUid: 'b1' })), ['again', 'erasure'])
    },
  },
  {
    name: 'erase: stores later events as new data',
    async check({ store }) {
      await known(store, 's1', 'purchased', 'b1')
      await store.erase('b1', record('erasure'))
      await store.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
      has(await only(store, 'b1'), { record: null, readAt: null, pending: true })
      has(await claimed(store), { id: 's1', generation: 1, urgency: URGENCY.eventOfUnread })
      same(idsOf(await leasedEntries(store)), ['e1'])
    },
  },
  {
    name: 'erase: a read under way restores nothing',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      await store.erase('b1', record('erasure'))
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased', changeOf('b1'))), false)
      same(await store.subscriptionsOf('b1'), [])
      same(idsOf(await store.listEntries({})), ['erasure'])
      // Nor after a new subscription with the same uid.
      await store.requestRefresh(named('s1', 'b1'))
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased', changeOf('b1'))), false)
      has(await only(store, 'b1'), { record: null })
    },
  },
  {
    name: 'erase: a read under way that finds the erased business restores nothing and is repeated',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b2')
      await store.requestRefresh(named('s1', 'b2'))
      const claim = await claimedAgain(lab)
      await store.erase('b1', record('erasure'))
      const moved = shows(claim, 'purchased', changeOf('b1'))
      const found = moved.found && { ...moved.found, record: { ...recordOf('s1'), business_uid: 'b1' } }
      assert(found)
      assert.equal(await store.finishRead(claim, { ...moved, found }), false)
      same(await store.subscriptionsOf('b1'), [])
      same(await store.listEntries({ kind: 'change' }), [])
      const next = await claimedAgain(lab)
      assert.equal(await store.finishRead(next, { ...moved, found }), true)
      has(await only(store, 'b1'), { state: 'purchased' })
    },
  },
  {
    name: 'erase: a read with the business as its candidate loses its lease, and the candidate is removed',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1', 'b2'))
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      assert.equal(claim.candidateBusinessUid, 'b1')
      same(uidsOf(await store.listSubscriptions({ candidateBusinessUid: 'b1', limit: 5 })), ['s1'])
      await store.erase('b1', record('erasure'))
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased')), false)
      same(await store.listSubscriptions({ candidateBusinessUid: 'b1', limit: 5 }), [])
      has(await claimed(store), { id: 's1', candidateBusinessUid: null })
    },
  },
  {
    name: 'erase: a handler under way finishes nothing, and no second one of its lane starts beside it',
    async check(lab) {
      const { store } = lab
      await store.accept(['e1', 'e2'].map((id) => eventOf('s1', { id, businessUid: 'b1' })))
      await store.accept([eventOf('s2', { id: 'e3', businessUid: 'b1' })])
      const [long] = await leasedEntries(store, { limit: 1, leaseMs: LONG })
      const [short] = await leasedEntries(store, { limit: 1, leaseMs: SHORT })
      assert(long && short)
      await store.erase('b1', record('erasure'))
      for (const held of [long, short]) {
        assert.equal(await renew(store, held, LONG), false)
        same(await finish(store, [ending(held, DONE)]), [])
      }
      same(idsOf(await store.listEntries({})), ['erasure'])
      await store.accept([eventOf('s1', { id: 'n1', businessUid: 'b1' })])
      await store.accept([eventOf('s2', { id: 'n2', businessUid: 'b1' })])
      const next = await lab.until('the short lease expires', async () => (await leasedEntries(store))[0])
      has(next, { id: 'n2', attempt: 1, lapses: 0 })
      same(await leasedEntries(store), [])
    },
  },
  {
    name: 'erase: deletes more rows than one batch has',
    async check({ store }) {
      const many = Array.from({ length: 450 }, (_, i) =>
        eventOf(`s${i % 120}`, { id: `e${i}`, businessUid: 'b1' }),
      )
      await store.accept(many)
      await store.accept([eventOf('other', { id: 'other' })])
      assert.equal((await store.erase('b1', record('erasure'))).rows, 570)
      same(idsOf(await store.listEntries({})), ['erasure', 'other'])
      same(uidsOf(await store.listSubscriptions({ limit: 10 })), ['other'])
      assert.equal((await claimedAll(store)).length, 1)
    },
  },
  {
    name: 'erase: sends the hint that the earlier answer is superseded',
    async check({ store }) {
      const hints: unknown[] = []
      store.subscribe((hint) => hints.push(hint))
      await store.erase('b1', record('erasure'))
      assert(
        hints.some(
          (hint) => JSON.stringify(hint) === '{"kind":"decided","businessUid":"b1","superseded":true}',
        ),
      )
    },
  },
]

function record(id: string): NewAction {
  return { id, name: 'erase', businessUid: 'b1', payload: '{"actor":"a"}' }
}

function changeOf(businessUid: string) {
  return { changes: [{ id: 'c1', key: 'c1', businessUid, cause: 'event' as const, payload: '{}' }] }
}

function recordOf(uid: string) {
  return { uid, business_uid: '', purchasable_uid: 'item', purchase_state: 'purchased' }
}

const uidsOf = (rows: readonly { subscriptionUid: string }[]) =>
  rows.map(({ subscriptionUid }) => subscriptionUid)

/** The next lease, after the pause that follows a read. */
function claimedAgain(lab: Lab) {
  return lab.until('the pause has ended', () =>
    claimOne(lab.store, { urgencies: ALL_URGENCIES, leaseMs: LONG, except: [] }),
  )
}
