import assert from 'node:assert/strict'
import type { SearchClaim, Store } from '../../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  eventOf,
  fails,
  has,
  idsOf,
  LATER,
  type Lab,
  LONG,
  SHORT,
  same,
} from '../lab.js'

const SOON = { withinMs: 1_000 }

export const SEARCHING: Checks = {
  async 'requestSearch: the first question makes a search that is due at once, and its answer is kept'(lab) {
    assert.equal(await lab.searchOf('b1'), undefined)
    await lab.requestSearch('b1', 'question')
    has(await lab.searchOf('b1'), { isAnswered: false, pending: true, isAsked: true, failure: null })
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    has(claim, { id: 'b1', isOfInstall: false, generation: 1, failures: 0 })
    assert.equal(await answer(lab, claim), true)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: false, failure: null })
    await lab.requestSearch('b1', 'question')
    same(await claimAll(lab), [])
    const { wantedAt = 0 } = (await lab.searchOf('b1')) ?? {}
    assert(Math.abs(Date.now() - wantedAt) < LATER, `it is wanted at ${wantedAt}`)
  },

  async 'requestSearch: refresh searches again at once, also after a failure'(lab) {
    await lab.requestSearch('b1', 'question')
    await answer(lab, await claimed(lab))
    await lab.requestSearch('b1', 'refresh')
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true })
    await lab.finishSearch(await claimed(lab), {
      kind: 'failed',
      failure: 'platform_timeout',
      nextInMs: LATER,
    })
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true, failure: 'platform_timeout' })
    same(await claimAll(lab), [])
    await lab.requestSearch('b1', 'refresh')
    has(await lab.searchOf('b1'), { pending: true, failure: null })
    has(await claimed(lab), { id: 'b1', generation: 3, failures: 0 })
  },

  async 'requestSearch: makes none for a business with a subscription that was read'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    for (const by of ['question', 'refresh', 'wait'] as const)
      assert.equal(await lab.requestSearch('b1', by), true)
    await lab.accept([install('b1')])
    assert.equal(await lab.searchOf('b1'), undefined)
    same(await claimAll(lab), [])
  },

  async 'requestSearch: a subscription that an event has only named counts as none, also for the claim'(lab) {
    await lab.accept([eventOf('made up', { businessUid: 'b1' })])
    await lab.requestSearch('b1', 'question')
    await lab.finishSearch(await claimed(lab), { kind: 'answered', found: [], failure: null, nextInMs: 0 })
    has((await lab.until('it is due', () => some(lab)))[0], { id: 'b1' })
  },

  async 'requestSearch: a wait searches again after a pause, and leaves that of a failed try'(lab) {
    await lab.requestSearch('b1', 'wait')
    await answer(lab, await claimed(lab))
    await lab.requestSearch('b1', 'wait')
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true })
    same(await claimAll(lab), [])
    const [claim] = await lab.until('it is due again', () => some(lab))
    has(claim, { isOfInstall: false, generation: 2 })
    await lab.finishSearch(claim as SearchClaim, {
      kind: 'failed',
      failure: 'platform_timeout',
      nextInMs: LATER,
    })
    await lab.requestSearch('b1', 'wait')
    await lab.pass(200)
    same(await claimAll(lab), [])
    has(await lab.searchOf('b1'), { failure: 'platform_timeout' })
  },

  async 'accept: an install makes a search if the app has the option, and searches again after a pause'(lab) {
    await lab.accept([install('b1', { search: false })])
    assert.equal(await lab.searchOf('b1'), undefined)
    await lab.accept([install('b1'), install('b1'), install('b2')])
    has(await lab.searchOf('b1'), { isAnswered: false, pending: true, isAsked: false })
    const claims = await claimAll(lab)
    same(idsOf(claims).sort(), ['b1', 'b2'])
    for (const claim of claims) await answer(lab, claim)
    await lab.accept([install('b1')])
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true })
    same(await claimAll(lab), [])
    same(idsOf(await lab.until('it is due again', () => some(lab))), ['b1'])
  },

  async 'accept: installs do not end the pause after a failed search'(lab) {
    await lab.requestSearch('b1', 'question')
    await lab.finishSearch(await claimed(lab), {
      kind: 'failed',
      failure: 'platform_timeout',
      nextInMs: LATER,
    })
    await lab.accept([install('b1')])
    await lab.pass(200)
    same(await claimAll(lab), [])
    has(await lab.searchOf('b1'), { failure: 'platform_timeout' })
  },

  async 'accept: an install of a business that the app has asked about is in the class of installs, unless that waits'(
    lab,
  ) {
    for (const uid of ['b1', 'b2']) await lab.requestSearch(uid, 'question')
    for (const claim of await claimAll(lab))
      if (claim.id === 'b1') await answer(lab, claim)
      else await lab.finishSearch(claim, { kind: 'failed', failure: 'platform_timeout', nextInMs: 0 })
    for (const uid of ['b1', 'b2']) await lab.accept([install(uid)])
    const claims: SearchClaim[] = []
    await lab.until('both are due', async () => {
      claims.push(...(await claimAll(lab)))
      return claims.length === 2
    })
    const ofInstall = (uid: string) => claims.find(({ id }) => id === uid)?.isOfInstall
    same([ofInstall('b1'), ofInstall('b2')], [true, false])
    await answer(lab, claims.find(({ id }) => id === 'b1') as SearchClaim)
    await lab.requestSearch('b1', 'refresh')
    has(await claimed(lab), { id: 'b1', isOfInstall: false })
  },

  async 'requestSearch: a due search of an install that the app asks for is due in its new class from then on'(
    lab,
  ) {
    await lab.accept([install('b1')])
    const before = await lab.searchOf('b1')
    await lab.pass(3)
    await lab.requestSearch('b1', 'question')
    const after = await lab.searchOf('b1')
    assert(Number(after?.nextAt) > Number(before?.nextAt))
    await lab.pass(3)
    await lab.requestSearch('b1', 'refresh')
    has(await lab.searchOf('b1'), { nextAt: after?.nextAt ?? null })
  },

  async 'claimSearches: those that the app has asked for come first, and few of the others beside them'(lab) {
    await lab.accept([install('b1'), install('b2'), install('b3')])
    await lab.pass(2)
    await lab.requestSearch('b4', 'question')
    await lab.requestSearch('b3', 'question')
    const claim = (limit: number, installLimit: number) =>
      lab.claimSearches({ limit, installLimit, leaseMs: LONG })
    same(idsOf(await claim(1, 1)).length, 1)
    const claims = await claim(9, 1)
    same(
      claims.map(({ isOfInstall }) => isOfInstall),
      [false, true],
    )
    same(idsOf(await claim(9, 0)), [])
    same(idsOf(await claim(9, 9)).length, 1)
    same(await claim(9, 9), [])
  },

  async 'claimSearches: a search whose lease ran out has failed: its pause follows, and its first holder writes nothing'(
    lab,
  ) {
    await lab.requestSearch('b1', 'question')
    const [first] = await lab.claimSearches({ limit: 1, installLimit: 1, leaseMs: SHORT })
    assert(first)
    assert.equal(await lab.renewSearch(first, SHORT), true)
    same(await claimAll(lab), [])
    await lab.until('the lease runs out', async () => {
      same(await claimAll(lab), [])
      return (await lab.searchOf('b1'))?.failure === 'lease_lapsed'
    })
    has(await lab.counts(), { askedSearches: 1, failedSearches: 1 })
    assert.equal(await lab.renewSearch(first, LONG), false)
    const [second] = await lab.until('the pause is over', () => some(lab))
    has(second, { id: 'b1', failures: 1 })
    assert(second)
    assert.equal(await answer(lab, first, ['s1']), false)
    same(await lab.subscriptionsOf('b1'), [])
    assert.equal(await answer(lab, second), true)
  },

  async 'claimSearches: deletes an answered search whose business has a subscription meanwhile, and makes an owed one'(
    lab,
  ) {
    for (const uid of ['b1', 'b2']) await lab.requestSearch(uid, 'question')
    const claims = await claimAll(lab)
    for (const claim of claims)
      if (claim.id === 'b1')
        await lab.finishSearch(claim, { kind: 'answered', found: [], failure: null, nextInMs: 0 })
      else await lab.finishSearch(claim, { kind: 'failed', failure: 'platform_timeout', nextInMs: 0 })
    for (const uid of ['1', '2']) await lab.known(`s${uid}`, 'purchased', `b${uid}`)
    const due = await lab.until('they are due', () => some(lab))
    same(idsOf(due), ['b2'])
    assert.equal(await lab.searchOf('b1'), undefined)
    assert.equal(await answer(lab, due[0] as SearchClaim), true)
    assert.equal(await lab.searchOf('b2'), undefined)
  },

  async 'finishSearch: what was found is read as if track had named it, although no event has, and answers the search'(
    lab,
  ) {
    await lab.requestSearch('b1', 'question')
    assert.equal(await answer(lab, await claimed(lab), ['s2', 's1']), true)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: false })
    same(await lab.uids({ businessUid: 'b1' }), ['s1', 's2'])
    for (const claim of await lab.claimAll()) has(claim, { cause: 'reconcile', generation: 1 })
  },

  async 'finishSearch: what was read for the business, and has not ended, is not read again'(lab) {
    await lab.requestSearch('b1', 'question')
    for (const uid of ['s1', 's2']) await lab.known(uid, 'purchased', 'b1')
    await lab.request('s2', 'b1')
    const read = await lab.next()
    const found = { record: read.subscription.record, state: null, gone: 'missing' } as const
    await lab.finishRead(read, { ...fails('platform_record_missing'), settled: true, found })
    assert.equal(await answer(lab, await claimed(lab), ['s1', 's2', 's3']), true)
    same([await lab.next(), await lab.next()].map(({ id }) => id).sort(), ['s2', 's3'])
    same(await lab.claimAll(), [])
  },

  async 'finishSearch: a subscription that is stored for another business stays there, and does not settle the search'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b2')
    await lab.requestSearch('b1', 'question')
    assert.equal(await answer(lab, await claimed(lab), ['s1']), true)
    has(await lab.searchOf('b1'), { isAnswered: false, pending: true, failure: null })
    same(await lab.uids({ businessUid: 'b2' }), ['s1'])
    same(await claimAll(lab), [])
    const [again] = await lab.until('it comes back', () => some(lab))
    has(again, { id: 'b1', generation: 1 })
    assert.equal(await answer(lab, again as SearchClaim), true)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: false })
  },

  async 'finishSearch: one that was requested again meanwhile is due again soon'(lab) {
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    await lab.accept([install('b1')])
    await answer(lab, claim)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true })
    has((await lab.until('it is due again', () => some(lab)))[0], { generation: 2 })
  },

  async 'finishSearch: a failed one leaves what refresh has cleared meanwhile, and is due again soon'(lab) {
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    await lab.requestSearch('b1', 'refresh')
    await lab.finishSearch(claim, { kind: 'failed', failure: 'platform_timeout', nextInMs: LATER })
    has(await lab.searchOf('b1'), { pending: true, failure: null })
    has((await lab.until('it is due again', () => some(lab)))[0], { generation: 2, failures: 1 })
  },

  async 'finishSearch: counts failures until an answer, and the first refusal is one that settles nothing'(
    lab,
  ) {
    await lab.requestSearch('b1', 'question')
    await lab.finishSearch(await claimed(lab), { kind: 'failed', failure: 'platform_timeout', nextInMs: 0 })
    has(await lab.counts(), { askedSearches: 1, failedSearches: 1 })
    const [again] = await lab.until('it is due', () => some(lab))
    has(again, { failures: 1 })
    await lab.finishSearch(again as SearchClaim, {
      kind: 'answered',
      found: [],
      failure: 'token_refused',
      nextInMs: LATER,
    })
    has(await lab.searchOf('b1'), { isAnswered: false, pending: true, failure: 'token_refused' })
    has(await lab.counts(), { failedSearches: 0 })
  },

  async 'finishSearch: one that was not made is due again at once'(lab) {
    await lab.requestSearch('b1', 'question')
    assert.equal(await lab.finishSearch(await claimed(lab), { kind: 'untried' }), true)
    has(await claimed(lab), { id: 'b1', failures: 0 })
  },

  async 'finishSearch: an answered search is due again at the time that its finish names'(lab) {
    await lab.requestSearch('b1', 'question')
    await lab.finishSearch(await claimed(lab), { kind: 'answered', found: [], failure: null, nextInMs: 100 })
    same(await claimAll(lab), [])
    same(idsOf(await lab.until('it is due', () => some(lab))), ['b1'])
  },

  async 'erase: deletes the search of the business, and one under way restores nothing'(lab) {
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    const record = { id: 'erasure', name: 'erase', businessUid: 'b1', payload: '{}' }
    has(await lab.erase('b1', record), { rows: 1 })
    assert.equal(await answer(lab, claim, ['s1']), false)
    same(await lab.uids(), [])
    assert.equal(await lab.searchOf('b1'), undefined)
  },

  async 'dueWork: a search counts as a read if the caller makes searches'(lab) {
    await lab.requestSearch('b1', 'question')
    has(await lab.dueWork(SOON), { reads: false })
    has(await lab.dueWork({ ...SOON, searches: true }), { reads: true })
    const claim = await claimed(lab)
    has(await lab.dueWork({ ...SOON, searches: true }), { reads: true })
    await answer(lab, claim)
    has(await lab.dueWork({ ...SOON, searches: true }), { reads: false })
  },

  async 'counts: how long the search is due that the app has asked for and that is longest due'(lab) {
    await lab.accept([install('b1')])
    await lab.pass(30)
    has(await lab.counts(), { oldestSearchMs: null, failedSearches: 0 })
    await lab.requestSearch('b2', 'question')
    await lab.pass(30)
    const { oldestSearchMs } = await lab.counts()
    assert(oldestSearchMs !== null && oldestSearchMs >= 25 && oldestSearchMs < LATER, `${oldestSearchMs} ms`)
  },
}

/** Twenty concurrent claims through the stores lease each search once, whoever requested it. */
export async function claimSearchesAtOnce(stores: readonly Lab[]) {
  const [first] = stores as [Lab]
  const uids = Array.from({ length: 30 }, (_, i) => `b${i}`)
  await Promise.all(uids.map((uid, i) => (stores[i % stores.length] as Lab).requestSearch(uid, 'question')))
  await Promise.all(
    uids.map((uid, i) => (stores[(i + 1) % stores.length] as Lab).requestSearch(uid, 'question')),
  )
  const claims = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      (stores[i % stores.length] as Lab).claimSearches({ limit: 3, installLimit: 0, leaseMs: LONG }),
    ),
  )
  const rest = await claimAll(first)
  same([...claims.flat(), ...rest].map(({ id }) => id).sort(), uids.toSorted())
}

async function claimAll(store: Pick<Store, 'claimSearches'>): Promise<SearchClaim[]> {
  return store.claimSearches({ limit: 100, installLimit: 100, leaseMs: LONG })
}

/** Leases the only due search. */
async function claimed(store: Pick<Store, 'claimSearches'>): Promise<SearchClaim> {
  const claims = await claimAll(store)
  assert.equal(claims.length, 1, `${claims.length} searches are due`)
  return claims[0] as SearchClaim
}

async function some(store: Pick<Store, 'claimSearches'>): Promise<SearchClaim[] | undefined> {
  const claims = await claimAll(store)
  return claims.length > 0 ? claims : undefined
}

function answer(store: Pick<Store, 'finishSearch'>, claim: SearchClaim, found: readonly string[] = []) {
  return store.finishSearch(claim, { kind: 'answered', found, failure: null, nextInMs: LATER })
}

function install(businessUid: string, { search = true }: { search?: boolean } = {}) {
  const refresh = { ...business(businessUid, true), search }
  return eventOf('none', { key: businessUid, businessUid, subscriptionUid: null, refresh })
}
