import assert from 'node:assert/strict'
import type { SearchClaim, Store } from '../../../../lib/store/port/store.js'
import { business, type Checks, eventOf, has, idsOf, LATER, type Lab, LONG, SHORT, same } from '../lab.js'

const RETENTION = { eventsMs: LATER, changesMs: LATER, actionsMs: LATER }
const SOON = { withinMs: 1_000 }

export const SEARCHING: Checks = {
  async 'requestSearch: the first question makes a search that is due at once, and its answer is kept'(lab) {
    assert.equal(await lab.searchOf('b1'), undefined)
    await lab.requestSearch('b1', 'question')
    has(await lab.searchOf('b1'), { isAnswered: false, pending: true, isAsked: true, failure: null })
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    has(claim, { id: 'b1', isAsked: true, generation: 1, failures: 0 })
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

  async 'requestSearch: makes none for a business with a subscription'(lab) {
    await lab.request('s1', 'b1')
    for (const by of ['question', 'refresh'] as const) await lab.requestSearch('b1', by)
    await lab.accept([install('b1')])
    assert.equal(await lab.searchOf('b1'), undefined)
    same(await claimAll(lab), [])
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
      claims.map(({ isAsked }) => isAsked),
      [true, false],
    )
    same(idsOf(await claim(9, 0)), [])
    same(idsOf(await claim(9, 9)).length, 1)
    same(await claim(9, 9), [])
  },

  async 'claimSearches: a search whose lease ran out is due again, and its first holder writes nothing'(lab) {
    await lab.requestSearch('b1', 'question')
    const [first] = await lab.claimSearches({ limit: 1, installLimit: 1, leaseMs: SHORT })
    assert(first)
    assert.equal(await lab.renewSearch(first, SHORT), true)
    same(await claimAll(lab), [])
    const [second] = await lab.until('the lease runs out', () => some(lab))
    assert(second)
    assert.equal(await lab.renewSearch(first, LONG), false)
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
    for (const uid of ['1', '2']) await lab.request(`s${uid}`, `b${uid}`)
    same(idsOf(await lab.until('they are due', () => some(lab))), ['b2'])
    assert.equal(await lab.searchOf('b1'), undefined)
  },

  async 'finishSearch: what was found is read as if track had named it, and the search ends'(lab) {
    await lab.requestSearch('b1', 'question')
    assert.equal(await answer(lab, await claimed(lab), ['s2', 's1']), true)
    assert.equal(await lab.searchOf('b1'), undefined)
    same(await lab.uids({ businessUid: 'b1' }), ['s1', 's2'])
    for (const claim of await lab.claimAll()) has(claim, { cause: 'request', generation: 1 })
  },

  async 'finishSearch: a subscription that is stored for another business stays there, and the search is kept'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b2')
    await lab.requestSearch('b1', 'question')
    assert.equal(await answer(lab, await claimed(lab), ['s1']), true)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: false })
    same(await lab.uids({ businessUid: 'b2' }), ['s1'])
  },

  async 'finishSearch: one that was requested again meanwhile is due again soon'(lab) {
    await lab.requestSearch('b1', 'question')
    const claim = await claimed(lab)
    await lab.accept([install('b1')])
    await answer(lab, claim)
    has(await lab.searchOf('b1'), { isAnswered: true, pending: true })
    has((await lab.until('it is due again', () => some(lab)))[0], { generation: 2 })
  },

  async 'finishSearch: counts failures until an answer, and a refusal is an answer'(lab) {
    await lab.requestSearch('b1', 'question')
    await lab.finishSearch(await claimed(lab), { kind: 'failed', failure: 'platform_timeout', nextInMs: 0 })
    has(await lab.counts(), { failedSearches: 1 })
    const [again] = await lab.until('it is due', () => some(lab))
    has(again, { failures: 1 })
    await lab.finishSearch(again as SearchClaim, {
      kind: 'answered',
      found: [],
      failure: 'token_refused',
      nextInMs: LATER,
    })
    has(await lab.searchOf('b1'), { isAnswered: true, pending: false, failure: 'token_refused' })
    has(await lab.counts(), { failedSearches: 0 })
  },

  async 'finishSearch: a refusal ends a search that only an install has requested, unless it was requested again'(
    lab,
  ) {
    const refused = { kind: 'answered', found: [], failure: 'token_refused', nextInMs: LATER } as const
    await lab.accept([install('b1'), install('b2'), install('b3')])
    const claims = await claimAll(lab)
    await lab.accept([install('b2')])
    await lab.requestSearch('b3', 'question')
    for (const claim of claims) assert.equal(await lab.finishSearch(claim, refused), true)
    assert.equal(await lab.searchOf('b1'), undefined)
    has(await lab.searchOf('b2'), { isAnswered: true, pending: true })
    has(await lab.searchOf('b3'), { isAnswered: true, pending: false, failure: 'token_refused' })
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

  async 'prune: deletes the searches that nobody has wanted for long'(lab) {
    for (const uid of ['b1', 'b2', 'b3']) await lab.requestSearch(uid, 'question')
    const [leased, scheduled] = await lab.claimSearches({ limit: 2, installLimit: 0, leaseMs: LONG })
    await answer(lab, scheduled as SearchClaim)
    await lab.pass(20)
    assert.equal((await lab.prune({ ...RETENTION, deadMs: LATER })).rows, 0)
    assert.equal((await lab.prune({ ...RETENTION, deadMs: 5 })).rows, 2)
    for (const uid of ['b1', 'b2', 'b3'])
      assert.equal((await lab.searchOf(uid)) !== undefined, uid === leased?.id, uid)
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
