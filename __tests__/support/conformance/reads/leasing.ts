import assert from 'node:assert/strict'
import { MIN_READ_INTERVAL_MS, URGENCY, type Urgency } from '../../../../lib/store/port/store.js'
import { MAX_UNREAD_OF_BUSINESS } from '../../../../lib/store/subscriptions/subscriptions.js'
import {
  ALL_URGENCIES,
  business,
  type Checks,
  claimOne,
  eventOf,
  has,
  idsOf,
  isNumber,
  LATER,
  type Lab,
  LONG,
  REQUESTED,
  SHORT,
  same,
} from '../lab.js'

const { event, eventOfUnread, track, verification, reconcile } = URGENCY

export const LEASING: Checks = {
  async 'claimReads: returns nothing when nothing is due'(lab) {
    same(await lab.claimAll(), [])
    await lab.known('s1')
    same(await lab.claimAll(), [])
    await lab.request('s2')
    await lab.fail(await lab.claim(), 'platform_refused', null)
    await lab.request('s3')
    await lab.fail(await lab.claim(), 'platform_timeout', LATER)
    same(await lab.claimAll(), [])
  },

  async 'claimReads: returns the data that a read needs'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    await lab.requestRefresh(business('b1', false))
    const { requestedAt } = await lab.only('b1')
    const claim = await lab.claim()
    has(claim, { id: 's1', generation: 2, settledGeneration: 0, lapses: 0, progress: null })
    has(claim.subscription, { subscriptionUid: 's1', businessUid: 'b1', requestedAt })
    for (const name of ['createdAt', 'uninstalledAt', 'generation', 'settledGeneration', 'lapses'] as const)
      isNumber(claim[name], name)
    isNumber(requestedAt, 'requestedAt')
    isNumber(claim.subscription.refreshAt, 'refreshAt')
    assert(claim.createdAt <= requestedAt, 'it was requested before it was created')
    assert.match(claim.leaseToken, /./)
  },

  async 'claimReads: gives every lease another token'(lab) {
    await lab.accept([eventOf('s1'), eventOf('s2')])
    const claims = [await lab.claim({ leaseMs: SHORT }), await lab.claim(), await lab.next()]
    assert.equal(new Set(claims.map(({ leaseToken }) => leaseToken)).size, 3)
  },

  async 'claimReads: leases nothing of the excepted businesses'(lab) {
    await lab.accept(['s1', 's2'].map((uid) => eventOf(uid, { businessUid: 'b1' })))
    await lab.accept([eventOf('s3', { businessUid: 'b2' })])
    const many = Array.from({ length: 500 }, (_, i) => `busy ${i}`)
    has(await lab.claim({ except: ['b1', ...many] }), { id: 's3' })
    const except = [...many, 'b1']
    same(await claimOne(lab, { leaseMs: LONG, except, urgencies: ALL_URGENCIES }), undefined)
    same(idsOf(await lab.claimAll()).sort(), ['s1', 's2'])
  },

  async 'claimReads: what is read for the first time keeps no other read of its business waiting'(lab) {
    const businessUid = 'b1'
    await lab.known('s1', 'purchased', businessUid)
    await lab.accept(['s1', 's2', 's3'].map((uid) => eventOf(uid, { businessUid })))
    const rest = { leaseMs: LONG, except: [], exceptUnread: [businessUid], urgencies: ALL_URGENCIES }
    has(await lab.until('the read of s1 is due', () => claimOne(lab, rest)), { id: 's1', urgency: event })
    same(await claimOne(lab, rest), undefined)
    same((await lab.claimReads({ ...rest, exceptUnread: [], limit: 5 })).length, 1)
  },

  async 'claimReads: very many due subscriptions of an excepted business do not hide the later ones'(lab) {
    await lab.accept(Array.from({ length: 1_000 }, (_, i) => eventOf(`busy ${i}`, { businessUid: 'busy' })))
    await lab.accept([eventOf('s1')])
    has(await lab.claim({ except: ['busy'] }), { id: 's1' })
  },

  async 'claimReads: a read has the urgency and the cause of its request, also after a failure; the reconcile has its own'(
    lab,
  ) {
    for (const [id, urgency, cause] of [
      ['s1', eventOfUnread, 'event'],
      ['s2', track, 'request'],
    ] as const) {
      if (cause === 'event') await lab.accept([eventOf(id)])
      else await lab.request(id)
      const others = ALL_URGENCIES.filter((each) => each !== urgency)
      same(await claimOne(lab, { leaseMs: LONG, except: [], urgencies: others }), undefined)
      const first = await lab.claim({ urgencies: [urgency] })
      has(first, { id, urgency, cause })
      await lab.fail(first, 'platform_timeout', 0)
      has(await lab.read('purchased', { nextInMs: 0, urgency: verification }), { id, urgency, cause })
      const again = await lab.read('purchased', { nextInMs: 0, urgency: reconcile })
      has(again, { urgency: verification, cause })
      const last = await lab.next()
      has(last, { urgency: reconcile, cause: 'reconcile' })
      await lab.accept([eventOf(id)])
      await lab.request(id)
      await lab.succeed(last, 'purchased', { urgency: reconcile })
      has(await lab.read('purchased'), { urgency: event, cause: 'event' })
    }
  },

  async 'claimReads: takes the urgencies in the given order, and in each the longest due first'(lab) {
    for (const uid of ['s2', 's3']) {
      await lab.request(uid)
      await lab.pass(3)
    }
    await lab.accept([eventOf('s1')])
    const urgencies = [reconcile, eventOfUnread, event, track]
    for (const id of ['s1', 's2', 's3']) has(await lab.claim({ urgencies }), { id })
  },

  async 'claimReads: leases up to the limit, of the chosen urgencies, and one subscription of each business'(
    lab,
  ) {
    await lab.accept(['b1', 'b2', 'b3', 'b3'].map((businessUid, i) => eventOf(`event ${i}`, { businessUid })))
    for (const uid of ['i1', 'i2', 'i3']) await lab.request(uid)
    const seen: Urgency[][] = []
    const choose = (due: readonly Urgency[], taken: readonly Urgency[]) => {
      seen.push([...taken])
      return taken.at(-1) === eventOfUnread ? track : due.find((urgency) => urgency === eventOfUnread)
    }
    const ask = { leaseMs: LONG, except: [], urgencies: [event, eventOfUnread, track], choose } as const
    const urgenciesOf = (claims: readonly { urgency: Urgency }[]) => claims.map(({ urgency }) => urgency)
    const claims = await lab.claimReads({ ...ask, limit: 4 })
    const taken = [eventOfUnread, track, eventOfUnread, track]
    same(urgenciesOf(claims), taken)
    same(
      seen.slice(-4),
      [0, 1, 2, 3].map((count) => taken.slice(0, count)),
    )
    // Another subscription of a business that is being read waits. When no other is left, nothing more is chosen.
    const except = claims.map((claim) => claim.subscription.businessUid)
    const others = await lab.claimReads({ ...ask, limit: 9, except })
    same(urgenciesOf(others), [eventOfUnread, track])
    const businesses = [...claims, ...others].map((claim) => claim.subscription.businessUid)
    assert.equal(new Set(businesses).size, 6, `two reads of one business: ${businesses}`)
    same((await lab.claimAll()).length, 1)
  },

  async 'claimReads: takes the longest due and the newest unread subscription in turns'(lab) {
    for (let i = 0; i < 8; i++) {
      await lab.accept([eventOf(`s${i}`)])
      await lab.pass(3)
    }
    const ask = { leaseMs: LONG, except: [], urgencies: [eventOfUnread] }
    const two = async () => idsOf([await lab.claim(ask), await lab.claim(ask)]).sort()
    same(await two(), ['s0', 's7'])
    same(idsOf(await lab.claimReads({ ...ask, limit: 4 })).sort(), ['s1', 's2', 's5', 's6'])
    same(await two(), ['s3', 's4'])
  },

  async 'claimReads: of unread subscriptions takes those of a business that was read before in their turn, whatever is newer'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    const made = (from: number) => Array.from({ length: 20 }, (_, i) => eventOf(`made up ${from + i}`))
    await lab.accept(made(0))
    await lab.pass(3)
    await lab.accept([eventOf('bought again', { businessUid: 'b1' })])
    await lab.pass(3)
    await lab.accept(made(20))
    const claims = await lab.claimReads({ limit: 3, leaseMs: LONG, except: [], urgencies: [eventOfUnread] })
    assert(idsOf(claims).includes('bought again'), `claimed ${idsOf(claims)}`)
    // Made up for the same business: one at a time, and not while it is read.
    await lab.accept([eventOf('of the same', { businessUid: 'b1' })])
    const more = await lab.claimReads({ limit: 3, leaseMs: LONG, except: ['b1'], urgencies: [eventOfUnread] })
    same([more.length, idsOf(more).includes('of the same')], [3, false])
  },

  async 'readFirst: puts the requested reads of a business before all others of their class'(lab) {
    await lab.request('s1', 'of s1')
    const held = await lab.claim({ urgencies: [track] })
    for (const uid of ['s2', 's3', 's4']) {
      await lab.request(uid, `of ${uid}`)
      await lab.pass(3)
    }
    // A read under way keeps its lease, and nothing happens for a business without due reads.
    for (const uid of ['of s3', 'of s1', 'unknown']) await lab.readFirst(uid)
    const next = await lab.claim({ urgencies: [track] })
    same(next.id, 's3')
    same(await lab.renewRead(held, LONG), true)
    await lab.succeed(next, 'purchased')
    await lab.readFirst('of s3')
    same((await lab.claimAll()).length, 2)
  },

  async 'readFirst: moves neither a read within its pause nor a regular one'(first) {
    // Again if the steps took longer than the pause.
    for (let tries = 1; ; tries++) {
      const lab = tries === 1 ? first : await first.withoutHandlers()
      await lab.request('s2', 'b2')
      await lab.read('purchased', { nextInMs: 0, urgency: reconcile })
      await lab.request('s1', 'b1')
      const claim = await lab.claim()
      same(claim.id, 's1')
      const finishedAt = Date.now()
      await lab.succeed(claim, 'purchased')
      await lab.request('s1', 'b1')
      const dueTimes = async () =>
        (await lab.listSubscriptions({ limit: 2 })).map(({ refreshAt }) => refreshAt)
      const before = await dueTimes()
      await lab.readFirst('b1')
      const isLate = Date.now() - finishedAt >= MIN_READ_INTERVAL_MS
      await lab.readFirst('b2')
      if (isLate && tries < 10) continue
      same(await dueTimes(), before)
      return
    }
  },

  async 'readFirst, subscriptionsOf and requests of a business with very many subscriptions: those that were read come first'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.accept(
      Array.from({ length: 2 * MAX_UNREAD_OF_BUSINESS }, (_, i) =>
        eventOf(`forged ${i}`, { businessUid: 'b1' }),
      ),
    )
    await lab.request('s2', 'b2')
    await lab.pass(3)
    await lab.requestRefresh(business('b1'))
    const found = await lab.subscriptionsOf('b1')
    same(found.length, 1 + MAX_UNREAD_OF_BUSINESS)
    has(found[0], { subscriptionUid: 's1', pending: true })
    await lab.pass(MIN_READ_INTERVAL_MS + 20)
    const [row] = await lab.subscriptionsNamed(['s1'])
    await lab.readFirst('b1')
    assert(Number((await lab.subscriptionsNamed(['s1']))[0]?.refreshAt) < Number(row?.refreshAt))
  },

  async 'K217 readFirst: the time of the read stays near that of the longest due of its class'(lab) {
    for (const uid of ['s1', 's2', 's3']) {
      await lab.accept([eventOf(uid)])
      await lab.pass(3)
    }
    const { requestedAt: oldest } = await lab.only('business of s1')
    isNumber(oldest, 'requestedAt')
    await lab.readFirst('business of s3')
    same((await lab.only('business of s3')).refreshAt, oldest - 1)
    const { oldestOverdueMs } = await lab.counts()
    assert(oldestOverdueMs !== null && oldestOverdueMs < 60_000, `overdue for ${oldestOverdueMs} ms`)
    await lab.readFirst('business of s2')
    const claims = await lab.claimReads({ limit: 3, leaseMs: LONG, except: [], urgencies: [eventOfUnread] })
    same(claims[0]?.id, 's2')
  },

  async 'claimReads: twenty concurrent claims lease each subscription at most once, and leave out none'(lab) {
    await claimReadsAtOnce([lab])
  },

  async 'renewRead: extends a lease'(lab) {
    await lab.request('s1')
    const claim = await lab.claim({ leaseMs: 200 })
    assert.equal(await lab.renewRead(claim, LONG), true)
    await lab.pass(250)
    same(await lab.claimAll(), [])
    assert.equal(await lab.succeed(claim, 'purchased'), true)
  },

  async 'renewRead: can shorten a lease, which then passes to the next claim'(lab) {
    await lab.request('s1')
    const claim = await lab.claim()
    assert.equal(await lab.renewRead(claim, SHORT), true)
    await lab.next()
    assert.equal(await lab.renewRead(claim, LONG), false)
  },

  async 'renewRead: returns false and changes nothing for a finished or forged lease'(lab) {
    await lab.request('s1', 'b1')
    const claim = await lab.claim()
    assert.equal(await lab.renewRead({ id: 's1', leaseToken: 'made up' }, SHORT), false)
    assert.equal(await lab.renewRead({ id: 's2', leaseToken: claim.leaseToken }, SHORT), false)
    await lab.succeed(claim, 'purchased')
    const before = await lab.only('b1')
    assert.equal(await lab.renewRead(claim, SHORT), false)
    same(await lab.only('b1'), before)
  },
}

/** Twenty claims at once, in turns through these stores of one database. */
export async function claimReadsAtOnce(stores: readonly [Lab, ...Lab[]]): Promise<void> {
  const uids = Array.from({ length: 10 }, (_, i) => `s${i}`)
  await stores[0].accept(uids.map((uid) => eventOf(uid)))
  const leased: string[] = []
  await stores[0].until('all are leased', async () => {
    const claims = Array.from({ length: 20 }, (_, i) =>
      claimOne(stores[i % stores.length] ?? stores[0], { leaseMs: LONG, except: [], urgencies: REQUESTED }),
    )
    leased.push(...(await Promise.all(claims)).flatMap((claim) => claim?.id ?? []))
    return leased.length >= uids.length
  })
  same(leased.sort(), uids)
  for (const store of stores) same(await store.claimAll(), [])
}
