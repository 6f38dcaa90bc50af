import { hostname } from 'node:os'
import { describe, expect, it } from '@jest/globals'
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../lib/base/clock.js'
import type { SearchClaim, SearchFinish } from '../../lib/store/port/store.js'
import { business, eventOf, idsOf, LATER, SHORT } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { until } from '../support/until.js'

const REFUSED = { kind: 'answered', found: [], failure: 'token_refused', nextInMs: LATER } as const
const RETENTION = { eventsMs: LATER, changesMs: LATER, actionsMs: LATER, deadMs: LATER }

describe.each(ENGINE_NAMES)('searches on %s', (name) => {
  const engine = useEngine(name)

  it('are settled by a refusal only when it is repeated after a minute', async () => {
    const { store, claim, ago } = await opened()
    await store.requestSearch('b1', 'question')
    await store.finishSearch(await claim(), REFUSED)
    expect(await store.searchOf('b1')).toMatchObject({ isAnswered: false, failure: 'token_refused' })
    await ago('search_at', 59 * SECOND)
    expect(await store.claimSearches(ALL)).toEqual([])
    await ago('search_at', 2 * SECOND)
    await ago('doubted_at', 40 * SECOND)
    await store.finishSearch(await claim(), REFUSED)
    expect(await store.searchOf('b1')).toMatchObject({ isAnswered: false })
    await ago('search_at', SECOND)
    await ago('doubted_at', 20 * SECOND)
    await store.finishSearch(await claim(), REFUSED)
    expect(await store.searchOf('b1')).toMatchObject({
      isAnswered: true,
      pending: false,
      failure: 'token_refused',
    })
    expect(await store.claimSearches(ALL)).toEqual([])
  })

  it('that only an install has requested end with such a refusal, unless they were requested again', async () => {
    const { store, ago } = await opened()
    await store.accept(['b1', 'b2', 'b3'].map(install))
    for (const claim of await store.claimSearches(ALL)) await store.finishSearch(claim, REFUSED)
    expect(await store.searchOf('b1')).toMatchObject({ isAnswered: false })
    await ago('doubted_at', MINUTE)
    await ago('search_at', MINUTE)
    const claims: SearchClaim[] = []
    await until('all are due', async () => claims.push(...(await store.claimSearches(ALL))) === 3)
    expect(idsOf(claims).sort()).toEqual(['b1', 'b2', 'b3'])
    await store.accept([install('b2')])
    await store.requestSearch('b3', 'question')
    for (const claim of claims) await store.finishSearch(claim, REFUSED)
    expect(await store.searchOf('b1')).toBeUndefined()
    expect(await store.searchOf('b2')).toMatchObject({ isAnswered: true, pending: true })
    expect(await store.searchOf('b3')).toMatchObject({ isAnswered: true, pending: false })
  })

  it('that find only what is stored for another business come back a few times within a minute', async () => {
    const { store, claim, ago } = await opened()
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: 's1',
      businessUid: 'b2',
      purchasableUid: null,
    })
    await store.requestSearch('b1', 'question')
    const found: SearchFinish = { kind: 'answered', found: ['s1'], failure: null, nextInMs: LATER }
    let searches = 0
    for (; (await store.searchOf('b1'))?.isAnswered !== true; searches++) {
      await store.finishSearch(await claim(), found)
      const { nextAt } = (await store.searchOf('b1')) ?? {}
      const inMs = Math.max(0, (nextAt ?? 0) - Date.now()) + SECOND / 2
      await ago('search_at', inMs)
      await ago('doubted_at', inMs)
    }
    expect(searches).toBeGreaterThanOrEqual(5)
    expect(searches).toBeLessThanOrEqual(9)
  })

  it('that ended the process fail, one pause longer each time, and are not made at once after a restart', async () => {
    const address = await engine.freshAddress()
    const opening = await opened(address)
    await opening.store.requestSearch('b1', 'question')
    await opening.store.claimSearches({ ...ALL, leaseMs: SHORT })
    const dead = [hostname(), 999_999_999, 1, 'load', 1].join('/')
    await opening.sql(`update ${opening.table} set lease_token = '${dead}'`)
    await opening.store.close()
    const { store, claim, ago, sql, table } = await opened(address)
    const lapsed = async () => {
      expect(await store.claimSearches(ALL)).toEqual([])
      return (await store.searchOf('b1'))?.failure === 'lease_lapsed'
    }
    await until('it has failed', lapsed)
    await ago('search_at', SECOND)
    expect(await claim()).toMatchObject({ failures: 1 })
    await sql(`update ${table} set failures = 20, failure = null, search_at = 1`)
    await until('it has failed again', lapsed)
    await ago('search_at', 5 * MINUTE - 10 * SECOND)
    expect(await store.claimSearches(ALL)).toEqual([])
    await ago('search_at', 10 * SECOND)
    expect(await claim()).toMatchObject({ failures: 21 })
  })

  it('that nobody has wanted for 30 days are deleted, whatever the retention, also with a lease that ran out', async () => {
    const { store, ago, sql, table } = await opened()
    for (const uid of ['b1', 'b2', 'b3']) await store.requestSearch(uid, 'question')
    await store.claimSearches({ ...ALL, limit: 2 })
    await sql(`update ${table} set search_at = 1 where business_uid = 'b1'`)
    await ago('wanted_at', 29 * DAY)
    expect((await store.prune({ ...RETENTION, deadMs: 1 })).rows).toBe(0)
    await ago('wanted_at', 2 * DAY)
    expect((await store.prune(RETENTION)).rows).toBe(2)
    expect(await store.searchOf('b2')).toBeDefined()
  })

  it('are bounded, for questions as for installs, and the counts say how many were not made', async () => {
    const { clock, jump } = jumpingClock()
    const { store } = await opened(undefined, { mostSearches: 2, clock })
    for (const uid of ['b1', 'b2']) expect(await store.requestSearch(uid, 'question')).toBe(true)
    await store.accept([install('b3'), install('b4')])
    // So that they are counted again.
    jump(11 * SECOND)
    for (const by of ['question', 'wait', 'refresh'] as const)
      expect(await store.requestSearch('b5', by)).toBe(false)
    await store.accept([install('b6')])
    for (const uid of ['b5', 'b6']) expect(await store.searchOf(uid)).toBeUndefined()
    expect(await store.requestSearch('b1', 'refresh')).toBe(true)
    expect(await store.counts()).toMatchObject({ askedSearches: 2, unsearched: 3 })
    jump(2 * HOUR)
    expect(await store.counts()).toMatchObject({ unsearched: 0 })
  })

  it('cost no transaction that writes while only an install is due that may not be searched for', async () => {
    if (name !== 'SQLite') return
    const { store, queriesOf } = await opened()
    await store.accept([install('b1')])
    const queries = await queriesOf(() => store.claimSearches({ limit: 2, installLimit: 0, leaseMs: LATER }))
    expect(queries).toHaveLength(1)
    expect(queries[0]?.text).toMatch(/^\s*select/)
    expect(await store.claimSearches({ limit: 2, installLimit: 1, leaseMs: LATER })).toHaveLength(1)
  })

  async function opened(address?: string, options: { mostSearches?: number; clock?: Clock } = {}) {
    const lab = await openStoreWithSql(address ?? (await engine.freshAddress()), options)
    const table = name === 'SQLite' ? 'searches' : 'marketplace_webhooks.searches'
    return {
      ...lab,
      table,
      /** Makes a time of all searches earlier. */
      ago: (column: string, ms: number) =>
        lab.sql(`update ${table} set ${column} = ${column} - ${Math.round(ms)}`),
      async claim(): Promise<SearchClaim> {
        // A row that `ago` has moved is behind most queries for due rows, and found by the next one that looks far back.
        const claims = await until('one is due', async () => {
          const found = await lab.store.claimSearches(ALL)
          return found.length > 0 && found
        })
        expect(claims).toHaveLength(1)
        return claims[0] as SearchClaim
      },
    }
  }
})

const ALL = { limit: 100, installLimit: 100, leaseMs: HOUR }

function install(businessUid: string) {
  const refresh = { ...business(businessUid, true), search: true }
  return eventOf('none', { key: businessUid, businessUid, subscriptionUid: null, refresh })
}
