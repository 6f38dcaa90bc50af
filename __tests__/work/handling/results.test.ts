import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry, LaneClaim, LaneFinish } from '../../../lib/store/port/store.js'
import { createLaneFinishes, createLaneResults } from '../../../lib/work/handling/results.js'
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
    const lane: LaneClaim = { id: 'lane', leaseToken: 'token', lapses: 0, entries: [] }
    const noted: string[] = []
    const results = createLaneResults({
      lane,
      finishes: createLaneFinishes({ store, clock: systemClock }),
      lost: new AbortController().signal,
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

function entryOf(id: string): Entry {
  return { id, payload: '{}', attempt: 1 } as Entry
}
