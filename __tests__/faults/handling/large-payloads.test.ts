import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { LaneFinish } from '../../../lib/store/port/store.js'
import type { Query } from '../../../lib/store/sql/sql.js'
import { createResultWrites } from '../../../lib/work/handling/results.js'
import { EVERY_TOPIC, eventOf, handling, leasedEntries } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

const COUNT = 100
const BYTES = 60_000
/** A MiB and the payload that reaches it. */
const MOST = 18

describe.each(ENGINE_NAMES)('H36 on %s, of many entries with large payloads', (name) => {
  const engine = useEngine(name)

  it('a claim reads a MiB, and the next claims get the others, as untried', async () => {
    const { store } = await openStoreWithSql(await engine.freshAddress())
    await handling(store, EVERY_TOPIC)
    await store.accept(large())
    const claims: string[][] = []
    for (let left = COUNT; left > 0; left -= claims.at(-1)?.length ?? 0) {
      const entries = await leasedEntries(store, { entryLimit: 256 })
      expect(entries.map(({ attempt, lapses }) => [attempt, lapses])).toEqual(entries.map(() => [1, 0]))
      claims.push(entries.map(({ id }) => id))
    }
    expect(claims.flat().sort()).toEqual(large().map(({ id }) => id))
    expect(Math.max(...claims.map(({ length }) => length))).toBe(MOST)
  })

  it('the next claim leases no lane in vain, also where a character has several bytes', async () => {
    const { store, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    await handling(store, EVERY_TOPIC)
    const payload = JSON.stringify('€'.repeat(BYTES / 3))
    await store.accept(large().map((event) => ({ ...event, payload })))
    await leasedEntries(store, { entryLimit: 256 })
    const queries = await queriesOf(() => leasedEntries(store, { entryLimit: 256 }))
    expect(countOf(queries, /update lanes set lease_token = null/)).toBe(0)
  })

  it('a claim returns one that is larger than a MiB', async () => {
    const { store } = await openStoreWithSql(await engine.freshAddress())
    await handling(store, EVERY_TOPIC)
    await store.accept(large(3 * 1024 * 1024, 2))
    expect(await leasedEntries(store, { entryLimit: 256 })).toMatchObject([{ id: 'e1000' }])
    expect(await leasedEntries(store, { entryLimit: 256 })).toMatchObject([{ id: 'e1001' }])
  })

  it('a list reads a MiB with each statement', async () => {
    const { store, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    await store.accept(large())
    const newestFirst = large().reverse()
    for (const filter of [{}, { businessUid: 'b1' }]) {
      let listed: string[] = []
      const queries = await queriesOf(async () => {
        listed = (await store.listEntries(filter)).map(({ id }) => id)
      })
      expect(listed).toEqual(newestFirst.map(({ id }) => id))
      expect(countOf(queries, /select journal\.\*/)).toBe(Math.ceil(COUNT / MOST))
    }
  })

  it('a first handler makes a MiB pending with each statement', async () => {
    const { store, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    await store.accept(large())
    const queries = await queriesOf(() => handling(store, EVERY_TOPIC, 60_000))
    expect(countOf(queries, /update journal set status = 'pending'/)).toBe(Math.ceil(COUNT / MOST))
    expect((await store.counts()).pending).toBe(COUNT)
  })
})

describe('H36 the finishes of entries with large payloads', () => {
  it('are written a MiB at a time', async () => {
    const batches: number[] = []
    const store = {
      async finishLanes(finishes: readonly LaneFinish[]) {
        batches.push(finishes.length)
        return finishes.map(({ id }) => id)
      },
    }
    const finishes = createResultWrites({ store, clock: systemClock })
    const { signal } = new AbortController()
    const finish = (id: string) => ({
      finish: { id, leaseToken: 't', results: [], keepLease: false },
      bytes: BYTES,
    })
    const written = large().map(({ id }) => finishes.write(() => finish(id), signal))
    expect(await Promise.all(written)).toEqual(written.map(() => true))
    expect(batches).toEqual([18, 18, 18, 18, 18, 10])
  })
})

function large(bytes = BYTES, count = COUNT) {
  const payload = JSON.stringify('x'.repeat(bytes - 2))
  return Array.from({ length: count }, (_, i) => ({
    ...eventOf('s1', { id: `e${1_000 + i}`, key: `k${i}`, refresh: null }),
    businessUid: 'b1',
    payload,
  }))
}

function countOf(queries: readonly Query[], text: RegExp) {
  return queries.filter((query) => text.test(query.text)).length
}
