import assert from 'node:assert/strict'
import { auditUid } from '../../../../lib/store/journal/audit.js'
import { type ReadFinish, URGENCY } from '../../../../lib/store/port/store.js'
import {
  type Checks,
  changeOf,
  DONE,
  eventOf,
  has,
  idsOf,
  LATER,
  type Lab,
  LONG,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const ERASING: Checks = {
  async 'erase: deletes the subscriptions and entries of one business, keeps the actions of people, and records the erasure'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.known('s2', 'purchased', 'b2')
    await lab.accept([
      eventOf('s1', { id: 'e1', businessUid: 'b1' }),
      // Of a subscription of the business, with another business.
      eventOf('s1', { id: 'e2', businessUid: 'b2' }),
      eventOf('s2', { id: 'e4', businessUid: 'b2' }),
      // Of the business, with a subscription of another one.
      eventOf('s2', { id: 'e3', businessUid: 'b1' }),
      eventOf('', { id: 'e5', key: 'business:b1', businessUid: 'b1', subscriptionUid: null, refresh: null }),
    ])
    await lab.recordAction({ id: 'looked', name: 'look', businessUid: 'b1', payload: '{}' })
    const { rows, at } = await erase(lab)
    // s1; e1, e2, e3, e5 and the action; b1 as the candidate of s2.
    assert.equal(rows, 7)
    assert.equal(typeof at, 'number')
    same(await lab.subscriptionsOf('b1'), [])
    same(await lab.ids(), ['erasure', 'looked', 'e4'])
    const payload = { actor: 'a', rows: 7 }
    has(await lab.getEntry('erasure'), { kind: 'action', name: 'erase', status: 'done', payload })
    for (const id of ['erasure', 'looked']) has(await lab.getEntry(id), { businessUid: auditUid('b1') })
    const [left] = await lab.listSubscriptions({ limit: 10 })
    has(left, { subscriptionUid: 's2', businessUid: 'b2', state: 'purchased', candidateBusinessUid: null })
    same(idsOf(await lab.lease()), ['e4'])

    await erase(lab, 'again')
    same(await lab.ids({ businessUid: 'b1' }), ['again', 'erasure', 'looked'])
  },

  async 'erase: stores later events as new data'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await erase(lab)
    await lab.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
    has(await lab.only('b1'), { record: null, readAt: null, pending: true })
    has(await lab.claim(), { id: 's1', generation: 1, urgency: URGENCY.eventOfUnread })
    same(idsOf(await lab.lease()), ['e1'])
  },

  async 'erase: a read under way restores nothing'(lab) {
    await lab.request('s1', 'b1')
    const claim = await lab.claim()
    await erase(lab)
    assert.equal(await lab.succeed(claim, 'purchased', { changes: [changeOf('c1')] }), false)
    same(await lab.subscriptionsOf('b1'), [])
    same(await lab.ids(), ['erasure'])
    // Nor after a new subscription with the same uid.
    await lab.request('s1', 'b1')
    assert.equal(await lab.succeed(claim, 'purchased', { changes: [changeOf('c1')] }), false)
    has(await lab.only('b1'), { record: null })
  },

  async 'erase: a read under way that finds the erased business restores nothing and is repeated'(lab) {
    await lab.known('s1', 'purchased', 'b2')
    await lab.request('s1', 'b2')
    const claim = await lab.next()
    await erase(lab)
    const record = { ...shows(claim, 'purchased').found?.record, uid: 's1', business_uid: 'b1' }
    const found = { record, state: 'purchased', gone: null }
    const moved = {
      found: found as NonNullable<ReturnType<typeof shows>['found']>,
      changes: [changeOf('c1')],
    }
    assert.equal(await lab.succeed(claim, 'purchased', moved), false)
    same(await lab.subscriptionsOf('b1'), [])
    same(await lab.ids({ kind: 'change' }), [])
    await lab.read('purchased', moved)
    has(await lab.only('b1'), { state: 'purchased' })
  },

  async 'erase: a read under way that moves a subscription away leaves nothing of the erased business'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.request('s1', 'b1')
    const claim = await lab.next()
    const reason = JSON.stringify({ actor: 'a', action: 'look', reason: 'b1' })
    // The erasure rewrites them first, 100 at a time.
    const actions = Array.from({ length: 300 }, (_, i) => `action ${i}`)
    await Promise.all(
      actions.map((id) => lab.recordAction({ id, name: 'look', businessUid: 'b1', payload: reason })),
    )
    const erasing = erase(lab)
    await lab.until('the erasure has begun', async () => (await lab.getEntry('erasure')) !== undefined)
    const now = { ...claim, subscription: { ...claim.subscription, businessUid: 'b2' } }
    const { found } = shows(now, 'purchased')
    const moved: Partial<ReadFinish> = {
      ...(found && { found }),
      changes: [changeOf('c1'), changeOf('c2', { businessUid: 'b2' })],
      entitles: true,
      entitlements: [
        { id: 'n1', businessUid: 'b1', cause: 'event', before: 'item', after: null },
        { id: 'n2', businessUid: 'b2', cause: 'event', before: null, after: 'item' },
      ],
    }
    assert.equal(await lab.succeed(claim, 'purchased', moved), true)
    same((await lab.ids({ kind: 'change' })).sort(), ['c1', 'c2'])
    await erasing
    has(await lab.only('b2'), { subscriptionUid: 's1', state: 'purchased' })
    same((await lab.ids({ subscriptionUid: 's1' })).sort(), ['c2', 'n2'])
    same(idsOf(await lab.lease()), ['c2'])
  },

  async 'erase: a read with the business as its candidate loses its lease, and the candidate is removed'(
    lab,
  ) {
    await lab.request('s1', 'b2')
    await lab.request('s1', 'b1')
    const claim = await lab.claim()
    assert.equal(claim.candidateBusinessUid, 'b1')
    same(await lab.uids({ candidateBusinessUid: 'b1' }), ['s1'])
    await erase(lab)
    assert.equal(await lab.succeed(claim, 'purchased'), false)
    same(await lab.uids({ candidateBusinessUid: 'b1' }), [])
    has(await lab.claim(), { id: 's1', candidateBusinessUid: null })
  },

  async 'erase: a handler under way finishes nothing, and no second one of its lane starts beside it'(lab) {
    await lab.accept(['e1', 'e2'].map((id) => eventOf('s1', { id, businessUid: 'b1' })))
    await lab.accept([eventOf('s2', { id: 'e3', businessUid: 'b1' })])
    const long = await lab.leaseOne({ limit: 1, leaseMs: LONG })
    const short = await lab.leaseOne({ limit: 1, leaseMs: SHORT })
    await erase(lab)
    for (const held of [long, short]) {
      assert.equal(await lab.renew(held, LONG), false)
      same(await lab.end([held], DONE), [])
    }
    same(await lab.ids(), ['erasure'])
    // Nor after a prune, which frees lanes that were taken from their holders.
    await lab.prune({ eventsMs: LATER, changesMs: LATER, actionsMs: LATER, deadMs: LATER })
    await lab.accept([eventOf('s1', { id: 'n1', businessUid: 'b1' })])
    await lab.accept([eventOf('s2', { id: 'n2', businessUid: 'b1' })])
    has(await lab.nextEntry(), { id: 'n2', attempt: 1, lapses: 0 })
    same(await lab.lease(), [])
  },

  async 'erase: deletes more rows than one batch has'(lab) {
    await lab.accept(
      Array.from({ length: 450 }, (_, i) => eventOf(`s${i % 120}`, { id: `e${i}`, businessUid: 'b1' })),
    )
    await lab.accept([eventOf('other', { id: 'other' })])
    // Entries of a subscription that name another business go with the subscription.
    await lab.request('moved', 'b1')
    await lab.accept(
      Array.from({ length: 150 }, () => eventOf('moved', { businessUid: 'b2', refresh: null })),
    )
    assert.equal((await erase(lab)).rows, 721)
    same(await lab.ids(), ['erasure', 'other'])
    same(await lab.uids(), ['other'])
    assert.equal((await lab.claimAll()).length, 1)
  },

  async 'erase: removes the names of the business from the reasons of its actions, and of those on several'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.known('s2', 'purchased', 'b1')
    // The platform has not shown it, so it may be any word.
    await lab.accept([eventOf('ask', { businessUid: 'b1' })])
    const payload = JSON.stringify({ actor: 's1', action: 'b1', reason: 'ask S1, s2 of b1' })
    const owners = { own: 'b1', several: null, other: 'b2' }
    for (const [id, businessUid] of Object.entries(owners))
      await lab.recordAction({ id, name: 'b1', businessUid, payload })
    // Read in pages of 100 actions.
    const actions = Array.from({ length: 101 }, (_, i) => `action ${i}`)
    for (const id of actions) await lab.recordAction({ id, name: 'look', businessUid: null, payload })
    await erase(lab)
    const cleaned = { actor: 's1', action: 'b1', reason: `ask [erased], [erased] of ${auditUid('b1')}` }
    for (const id of ['own', 'several', ...actions]) has(await lab.getEntry(id), { payload: cleaned })
    has(await lab.getEntry('own'), { name: 'b1', businessUid: auditUid('b1') })
    has(await lab.getEntry('several'), { name: 'b1', businessUid: null })
    has(await lab.getEntry('other'), { name: 'b1', businessUid: 'b2', payload: JSON.parse(payload) })
  },

  async 'erase: sends the hint that the earlier answer is superseded'(lab) {
    const hints: string[] = []
    lab.subscribe((hint) => hints.push(JSON.stringify(hint)))
    await erase(lab)
    assert(hints.includes('{"kind":"decided","businessUid":"b1","superseded":true}'))
  },
}

function erase(lab: Lab, id = 'erasure') {
  return lab.erase('b1', { id, name: 'erase', businessUid: 'b1', payload: '{"actor":"a"}' })
}
