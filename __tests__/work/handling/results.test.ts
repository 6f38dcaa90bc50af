import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry, LaneClaim, LaneFinish } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { createLaneResults, createResultWrites } from '../../../lib/work/handling/results.js'
import { EVERY_TOPIC, handling, LONG } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { createScene } from '../../support/scene.js'
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

describe.each(ENGINE_NAMES)(
  'a dead result whose write has no answer before its lease is lost, on %s',
  (name) => {
    const engine = useEngine(name)

    it('is told once the store answers that it was written, also after a replay', async () => {
      const { store, first, lane, finishes, noted, answers } = await unanswered(true)
      await finishes.repeat()
      expect(noted).toEqual([])
      expect(await store.replayEntry(first.id)).toBe(true)
      answers.come = true
      await finishes.repeat()
      await finishes.repeat()
      expect(noted).toEqual(lane.entries.map(({ id }) => id))
      expect(await store.getEntry(first.id)).toMatchObject({ status: 'pending', attempts: 0 })
    })

    it('is written and told if it was not, and nobody has taken the lane meanwhile', async () => {
      const { store, lane, finishes, noted, answers } = await unanswered(false)
      answers.come = true
      await finishes.repeat()
      expect(noted).toEqual(lane.entries.map(({ id }) => id))
      expect((await store.listEntries({})).map(({ status }) => status)).toEqual(['done', 'dead'])
    })

    it('is told although a later result was not written, because somebody had taken the lane', async () => {
      const { sql, first, second, results, finishes, noted, answers } = await leased(true)
      results.add(first, { kind: 'dead', error: 'no' })
      results.writeSoon()
      await until('the write has failed', () => !results.isHeld())
      await sql(`update lanes set lease_token = 'of another process'`)
      answers.come = true
      results.add(second, { kind: 'done' })
      await results.complete()
      expect(noted).toEqual([])
      await finishes.repeat()
      expect(noted).toEqual([first.id])
    })

    it('is dropped if it was not written before somebody took the lane', async () => {
      const { store, finishes, noted, answers, sql } = await unanswered(false)
      await sql(`update lanes set lease_token = 'of another process'`)
      answers.come = true
      await finishes.repeat()
      expect(noted).toEqual([])
      expect((await store.listEntries({})).map(({ status }) => status)).toEqual(['pending', 'pending'])
    })

    it('G380 is told by a process whose database was away for longer than the lease', async () => {
      const leaseMs = 500
      let [calls, isAway] = [0, false]
      const store = wrapStore(storeFor(await engine.freshAddress(), systemClock), async (method, call) => {
        const result = isAway ? undefined : await call()
        isAway ||= method === 'finishLanes' && calls > 0 && told.length === 0
        if (isAway) throw new MarketplaceError('store_unavailable', 'the answer is lost')
        return result
      })
      const scene = await createScene({
        store: storeOption(store),
        handlers: { retryDelaysMs: [] },
        ...internals({ leaseMs, pollMs: 50 }),
      })
      const told: (number | null)[] = []
      scene.marketplace.onHandlerError(({ retryInMs }) => void told.push(retryInMs))
      scene.marketplace.onUnrecognised(() => {
        calls++
        throw new Error('no')
      })
      await scene.deliver({ what: 'else' })
      await until('its write has no answer', () => isAway)
      await new Promise((resolve) => setTimeout(resolve, 3 * leaseMs))
      calls = 0
      isAway = false
      await until('its failure is told', () => told.length > 0)
      await scene.marketplace.settled()
      expect([told, calls]).toEqual([[null], 0])
      expect(await scene.marketplace.journal.list()).toMatchObject([{ status: 'dead', attempts: 1 }])
    })

    /** A lane with a dead and a done entry, whose finish has got no answer. */
    async function unanswered(isWritten: boolean) {
      const made = await leased(isWritten)
      made.results.add(made.first, { kind: 'dead', error: 'no' })
      made.results.add(made.second, { kind: 'done' })
      await expect(made.results.complete()).rejects.toMatchObject({ code: 'store_unavailable' })
      return made
    }

    /** A lane of two entries. Its lease is lost at its first write, whose answer does not come. */
    async function leased(isWritten: boolean) {
      const { store, sql } = await openStoreWithSql(await engine.freshAddress())
      await handling(store, EVERY_TOPIC)
      await store.accept([eventOf('s1'), eventOf('s1')])
      const [lane] = await store.claimLanes({
        ...{ limit: 1, entryLimit: 3, leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [] },
      })
      if (!lane) throw new Error('nothing was claimed')
      const [first, second] = lane.entries as [Entry, Entry]
      const lost = new AbortController()
      const answers = { come: false }
      const finishes = createResultWrites({
        clock: systemClock,
        store: {
          async finishLanes(given) {
            if (answers.come) return store.finishLanes(given)
            if (isWritten && !lost.signal.aborted) await store.finishLanes(given)
            lost.abort()
            throw new MarketplaceError('store_unavailable', 'the answer is lost')
          },
        },
      })
      const noted: string[] = []
      const onWritten = ({ entry }: { entry: Entry }) => void noted.push(entry.id)
      const results = createLaneResults({ lane, finishes, interrupted: lost.signal, onWritten })
      return { store, sql, lane, first, second, results, finishes, noted, answers }
    }
  },
)

function entryOf(id: string): Entry {
  return { id, payload: '{}', attempt: 1 } as Entry
}
