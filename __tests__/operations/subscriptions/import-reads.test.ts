import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import {
  createImport,
  type ImportOptions,
  type ImportSummary,
} from '../../../lib/operations/subscriptions/import.js'
import type { Hint, RefreshRequest, Subscription } from '../../../lib/store/port/store.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { record, subscriptionOf } from '../../support/scenes/reader.js'
import { gate } from '../../support/until.js'

describe('the reads of an import', () => {
  it('are found at once when their hint comes during a look that does not show them yet', async () => {
    const { start, have, decided, hold, clock } = scene()
    const first = hold()
    const summary = start(['s1'])
    await clock.rest()
    const second = hold()
    first.open()
    await clock.rest()
    have('s1', READ)
    decided('b1')
    second.open()
    await clock.rest()
    expect(summary.is).toMatchObject({ ended: 'complete', read: 1 })
  })

  it('are found by a hint about the business that a subscription had before', async () => {
    const { start, have, decided, clock } = scene()
    have('s1', { ...READ, businessUid: 'b2', pending: true })
    const summary = start(['s1'])
    await clock.rest()
    expect(summary.is).toBeUndefined()
    have('s1', { ...READ, businessUid: 'b2' })
    decided('b2')
    await clock.rest()
    expect(summary.is).toMatchObject({ ended: 'complete', refused: 1 })
  })

  it.each<[string, Partial<Subscription>, ImportOptions, boolean]>([
    ['is requested already', {}, {}, false],
    ['is requested already, quietly as by this import', { quiet: true }, { announce: false }, false],
    ['is requested quietly, and its change is wanted', { quiet: true }, {}, true],
    ['is requested for another business', { businessUid: 'b2' }, {}, true],
    ['has failed', { failure: 'platform_timeout' }, {}, true],
  ])('request one that %s, or not', async (_what, row, options, isRequested) => {
    const { start, have, requested, clock } = scene()
    have('s1', { businessUid: 'b1', ...row })
    start(['s1'], options)
    await clock.rest()
    expect(requested).toHaveLength(isRequested ? 1 : 0)
  })

  it('are not requested once the import has been aborted', async () => {
    const { start, hold, requested, clock } = scene()
    const abort = new AbortController()
    const looking = hold()
    const summary = start(['s1'], { signal: abort.signal })
    await clock.rest()
    abort.abort()
    looking.open()
    await clock.rest()
    expect([summary.is, requested]).toMatchObject([{ ended: 'aborted', pending: 1 }, []])
  })

  it('have failed for so long only if they were not requested again meanwhile', async () => {
    const { start, have, decided, clock } = scene()
    const failing = { businessUid: 'b1', failure: 'platform_timeout' }
    have('s2', { businessUid: 'b1' })
    const summary = start(['s1', 's2'], { answerTimeoutMs: 100 * SECOND })
    await clock.rest()
    for (const [ms, uid, row] of [
      [0, 's1', failing],
      [50, 's1', { businessUid: 'b1' }],
      [60, 's2', READ],
      [70, 's1', failing],
    ] as const) {
      await clock.advance(ms === 0 ? 0 : 10 * SECOND + (ms === 50 ? 40 * SECOND : 0))
      have(uid, row)
      decided('b1')
      await clock.rest()
    }
    await clock.advance(85 * SECOND)
    expect(summary.is).toBeUndefined()
    await clock.advance(10 * SECOND)
    expect(summary.is).toMatchObject({ ended: 'unanswered', read: 1, pending: 1 })
  })
})

describe('an import', () => {
  it('reports no further line after onProgress has thrown', async () => {
    const { start, have, clock } = scene()
    for (const uid of ['s1', 's2']) have(uid, READ)
    let calls = 0
    const summary = start(['s1', 's2'], {
      onProgress() {
        calls++
        throw new Error('no more')
      },
    })
    await clock.rest()
    expect([summary.error, calls]).toEqual([new Error('no more'), 1])
  })

  it('takes no line if it was aborted or the marketplace closed before', async () => {
    const { start, close, have, clock } = scene()
    have('s1', READ)
    const aborted = start(['s1'], { signal: AbortSignal.abort() })
    await clock.rest()
    expect(aborted.is).toMatchObject({ ended: 'aborted', done: 0 })
    close()
    const closed = start(['s1'])
    await clock.rest()
    expect(closed.error).toMatchObject({ code: 'closed' })
  })
})

const READ = { businessUid: 'b1', record: record('purchased', 1), state: 'purchased', pending: false }

/** Imports into a store whose rows a test writes, in virtual time. All lines are of the business `b1`. */
function scene() {
  const clock = createVirtualClock({ isBusy: () => false })
  const rows = new Map<string, Subscription>()
  const requested: RefreshRequest[] = []
  let notify: (hint: Hint) => void = () => {}
  let held: ReturnType<typeof gate<void>> | undefined
  const { importSubscriptions, close } = createImport({
    store: {
      async requestRefresh(request) {
        requested.push(request)
      },
      async subscriptionsNamed(uids) {
        const found = uids.flatMap((uid) => rows.get(uid) ?? [])
        const looking = held
        held = undefined
        await looking?.opened
        return found
      },
      subscribe(listener) {
        notify = listener
        return () => {}
      },
    },
    clock: clock.forProcess(),
  })
  return {
    clock,
    close,
    requested,
    have: (subscriptionUid: string, row: Partial<Subscription>) =>
      void rows.set(subscriptionUid, subscriptionOf({ subscriptionUid, ...row })),
    decided: (businessUid: string) => notify({ kind: 'decided', businessUid, superseded: false }),
    /** The next look has read its rows, which it returns when the gate opens. */
    hold() {
      held = gate()
      return held
    },
    start(uids: readonly string[], options?: ImportOptions) {
      const result: { is?: ImportSummary; error?: unknown } = {}
      const lines = uids.map((subscriptionUid) => ({ subscriptionUid, businessUid: 'b1' }))
      importSubscriptions(lines, options).then(
        (summary) => {
          result.is = summary
        },
        (error) => {
          result.error = error
        },
      )
      return result
    },
  }
}
