import { describe, expect, it } from '@jest/globals'
import type { ReadClaim, ReadFinish, Store } from '../../lib/store/port/store.js'
import { claimOne } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { eventOf } from '../support/events.js'

describe.each(ENGINE_NAMES)('reads that end together, on %s', (name) => {
  const engine = useEngine(name)

  it('are written in one statement, each with its change', async () => {
    const { store, sql, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    const claims = await claimed(store, 12)
    const queries = await queriesOf(async () => {
      const finished = await Promise.all(claims.map((claim) => store.finishRead(claim, purchased(claim))))
      expect(finished).toEqual(claims.map(() => true))
    })
    // SQLite runs a statement for each row, but does the work of a transaction once.
    const texts = queries.map((each) => each.text)
    const each = name === 'SQLite' ? claims.length : 1
    expect(texts.filter((text) => /^\s*update subscriptions/.test(text))).toHaveLength(each)
    expect(texts.filter((text) => /insert into journal/.test(text))).toHaveLength(each)
    const rows = await sql<{ id: string }>(`select id from journal where kind = 'change'`)
    expect(rows.map(({ id }) => id).sort()).toEqual(claims.map(({ id }) => `change of ${id}`).sort())
  })

  it('do not fail because one of them cannot be written', async () => {
    const { store } = await openStoreWithSql(await engine.freshAddress())
    const claims = await claimed(store, 6)
    const results = await Promise.allSettled(
      claims.map((claim, i) => {
        const payload = null as unknown as string
        const { changes = [], ...finish } = purchased(claim)
        const written = i === 2 ? changes.map((change) => ({ ...change, payload })) : changes
        return store.finishRead(claim, { ...finish, changes: written })
      }),
    )
    const statuses = results.map(({ status }) => status)
    expect(statuses).toEqual(claims.map((_claim, i) => (i === 2 ? 'rejected' : 'fulfilled')))
    const states = await Promise.all(
      claims.map(async ({ id }) => (await store.subscriptionsOf(`b ${id}`))[0]?.state),
    )
    expect(states).toEqual(claims.map((_claim, i) => (i === 2 ? null : 'purchased')))
  })

  it('fail together at once while the database does not answer', async () => {
    const { store, engine: own } = await openStoreWithSql(await engine.freshAddress())
    const claims = await claimed(store, 12)
    let tries = 0
    own.write = async () => {
      tries++
      throw new Error('no answer from the database within 3000 ms')
    }
    const results = await Promise.allSettled(claims.map((claim) => store.finishRead(claim, purchased(claim))))
    expect(results.map(({ status }) => status)).toEqual(claims.map(() => 'rejected'))
    // Each try may take seconds: with one for each read, their leases and the time of close() would run out.
    expect(tries).toBe(1)
  })

  it('leave out a read whose lease belongs to another claimer', async () => {
    const { store } = await openStoreWithSql(await engine.freshAddress())
    const claims = await claimed(store, 4)
    const [first, ...others] = claims as [ReadClaim, ...ReadClaim[]]
    const late = { ...first, leaseToken: 'another' }
    const finished = await Promise.all(
      [late, ...others].map((claim) => store.finishRead(claim, purchased(claim))),
    )
    expect(finished).toEqual([false, true, true, true])
    expect(await store.subscriptionsOf(`b ${first.id}`)).toMatchObject([{ state: null }])
  })
})

async function claimed(store: Store, count: number) {
  const uids = Array.from({ length: count }, (_, i) => `s${i}`)
  await store.accept(uids.map((uid) => eventOf(uid, `b ${uid}`)))
  const claims: ReadClaim[] = []
  for (const _ of uids) {
    const claim = await claimOne(store, { leaseMs: 60_000, except: [], urgencies: [1] })
    claims.push(claim as ReadClaim)
  }
  return claims
}

function purchased({ id }: ReadClaim): ReadFinish {
  const businessUid = `b ${id}`
  const record = { uid: id, business_uid: businessUid, purchasable_uid: 'p', purchase_state: 'purchased' }
  return {
    found: { record, state: 'purchased', gone: null },
    settled: true,
    failure: null,
    progress: null,
    nextInMs: 3_600_000,
    changes: [
      { id: `change of ${id}`, key: `subscription:${id}`, businessUid, cause: 'event', payload: '{}' },
    ],
  }
}
