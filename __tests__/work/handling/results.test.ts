import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry, LaneClaim, LaneFinish } from '../../../lib/store/port/store.js'
import { createLaneResults, createResultWrites } from '../../../lib/work/handling/results.js'
import { EVERY_TOPIC, handling, LONG } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { until } from '../../support/until.js'

describe('a result whose write fails for good', () => {
  it('is written with the next ones, so that a later entry is not done before it, and no further entry is handled', async () => {
    const written: string[][] = []
    let calls = 0
    const store = {
      async finishLanes(finishes: readonly LaneFinish[]) {
        if (++calls === 1) throw new MarketplaceError('store_of_another_app', 'taken for a moment')
        written.push(finishes.flatMap(({ results }) => results.map(({ id }) => id)))
        return finishes.map(({ id }) => id)
      },
    }
    const lane: LaneClaim = { id: 'lane', leaseToken: 'token', urgency: 1, lapses: 0, entries: [] }
    const noted: string[] = []
    const results = createLaneResults({
      lane,
      finishes: createResultWrites({ store, clock: systemClock }),
      interrupted: new AbortController().signal,
      onWritten: ({ entry }) => void noted.push(entry.id),
    })
    results.add(entryOf('e1'), { kind: 'done' })
    results.writeSoon()
    await until('the write has failed', () => calls === 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(results.isHeld()).toBe(false)
    results.add(entryOf('e2'), { kind: 'done' })
    await results.complete()
    expect(written).toEqual([['e1', 'e2']])
    expect(noted).toEqual(['e1', 'e2'])
  })
})

describe.each(ENGINE_NAMES)('a result that %s refuses', (name) => {
  const engine = useEngine(name)

  it('is not written, and those of other lanes are', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    await sql(
      name === 'SQLite'
        ? `create trigger no_poison before update on journal when new.error = 'poison'
            begin select raise(abort, 'poison'); end`
        : `alter table journal add constraint no_poison check (error <> 'poison')`,
    )
    await handling(store, EVERY_TOPIC)
    await store.accept(['s1', 's2', 's3'].map((uid) => ({ ...eventOf(uid), key: uid })))
    const lanes = await store.claimLanes({
      ...{ limit: 3, entryLimit: 3, leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [] },
    })
    const finishes = createResultWrites({ store, clock: systemClock })
    const written = lanes.map(({ id, leaseToken, entries }) => {
      const result = id === 's2' ? ({ kind: 'dead', error: 'poison' } as const) : ({ kind: 'done' } as const)
      const results = entries.map((entry) => ({ id: entry.id, attempt: 1, result }))
      const finish = { id, leaseToken, results, keepLease: false }
      return finishes.write(() => ({ finish, bytes: 0 }), AbortSignal.timeout(10_000))
    })
    const [first, refused, last] = await Promise.allSettled(written)
    expect([first, last]).toMatchObject([{ value: true }, { value: true }])
    expect(refused).toMatchObject({ reason: { code: 'argument_invalid', retryable: false } })
    const statuses = (await store.listEntries({})).map(({ status }) => status)
    expect(statuses).toEqual(['done', 'pending', 'done'])
  })
})

function entryOf(id: string): Entry {
  return { id, payload: '{}', attempt: 1 } as Entry
}
