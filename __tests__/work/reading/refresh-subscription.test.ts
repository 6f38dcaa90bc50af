import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { OtherBusinesses, ReadClaim, ReadFinish } from '../../../lib/store/port/store.js'
import { createReadOutcomes } from '../../../lib/work/reading/outcomes.js'
import { createRefreshSubscription } from '../../../lib/work/reading/refresh-subscription.js'
import { progressText } from '../../../lib/work/reading/schedule.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { createReader, found_, REFUSED, record } from '../../support/scenes/reader.js'
import { gate } from '../../support/until.js'

const MISSING: ReadResult = { kind: 'missing' }
const TOKEN_REFUSED: ReadResult = { kind: 'token_refused' }

/** Another business was served since. */
const SERVED: OtherBusinesses = {
  ...{ failing: 1, served: 1, recovered: 0, isSteady: true, exist: true },
  ...{ untested: 0, lately: { failing: 0, served: 0 } },
}

describe('a leased read', () => {
  it('reads for the business of the row, and writes the record and its change', async () => {
    const { refresh, reads, finishes, noted } = reading([found_('purchased', 1)])
    expect(await refresh()).toMatchObject({ settled: true, found: { state: 'purchased' } })
    expect(reads).toEqual([['s', 'b']])
    expect(finishes).toHaveLength(1)
    expect(finishes[0]).toMatchObject({ settled: true, changes: [{ businessUid: 'b' }] })
    expect(finishes[0]).not.toHaveProperty('moves')
    expect(noted()).toEqual(['found'])
  })

  it('is given back, and concludes nothing, if its lease was lost during it', async () => {
    const lost = new AbortController()
    const { refresh, reads, finishes, noted, isPaused } = reading(
      [{ kind: 'throttled', retryAfterMs: HOUR }, found_('purchased', 1)],
      {
        claim: { candidateBusinessUid: 'c', progress: 'as before' },
        signal: lost.signal,
        before: () => lost.abort(),
      },
    )
    expect(await refresh()).toBeUndefined()
    expect(reads).toHaveLength(1)
    expect(finishes).toEqual([
      expect.objectContaining({ settled: false, nextInMs: 0, progress: 'as before' }),
    ])
    expect([noted(), isPaused()]).toEqual([[], false])
  })

  it('does not read for a candidate after its lease was lost', async () => {
    const lost = new AbortController()
    const { refresh, reads } = reading([MISSING, found_('purchased', 1)], {
      claim: { candidateBusinessUid: 'c' },
      signal: lost.signal,
      before: () => lost.abort(),
    })
    await refresh()
    expect(reads).toEqual([['s', 'b']])
  })

  it('pauses all reads after a rate limit', async () => {
    const { refresh, isPaused } = reading([{ kind: 'throttled', retryAfterMs: MINUTE }])
    await refresh()
    expect(isPaused()).toBe(true)
  })

  it('frees its slot once the platform has answered, before the write has ended', async () => {
    const writing = gate()
    const { refresh, steps } = reading([found_('purchased', 1)], {
      async write() {
        await writing.opened
        return true
      },
    })
    const refreshed = refresh()
    await new Promise((resolve) => setImmediate(resolve))
    expect(steps).toEqual(['read', 'writing'])
    writing.open()
    await refreshed
    expect(steps).toEqual(['read', 'writing', 'noted'])
  })

  it('counts in the results that health reports', async () => {
    const { refresh, counted } = reading([MISSING])
    await refresh()
    expect(counted).toEqual([['b', 'missing']])
  })

  it('D61 asks how other businesses fare before it believes an end, and has some read if most of them fail', async () => {
    const { claim: base } = createReader()
    const subscription = { ...base.subscription, record: record('purchased', 1), state: 'purchased' }
    const claim = { subscription, endAt: base.createdAt }
    const alone = reading([TOKEN_REFUSED], { claim })
    expect(await alone.refresh()).toMatchObject({ found: { gone: 'ended' } })
    expect(alone.controls).toEqual([])
    const others = { ...SERVED, failing: 9, served: 2 }
    const many = reading([TOKEN_REFUSED], { claim, others })
    expect((await many.refresh())?.found).toBeUndefined()
    expect(many.controls).toEqual([7])
    const unknown = reading([TOKEN_REFUSED], { claim, others: new Error('the database is down') })
    expect((await unknown.refresh())?.found).toBeUndefined()
  })

  it('concludes nothing if another claimer has the lease by then', async () => {
    const { refresh, noted, finishes } = reading([found_('purchased', 1)], { write: async () => false })
    expect(await refresh()).toBeUndefined()
    expect([finishes.length, noted()]).toEqual([1, []])
  })

  it('writes again after a short failure of the store', async () => {
    let isDown = true
    const { refresh, clock, finishes } = reading([found_('purchased', 1)], {
      async write() {
        if (isDown) throw new MarketplaceError('store_unavailable', 'down')
        return true
      },
    })
    const refreshed = refresh()
    await clock.rest()
    isDown = false
    await clock.advance(SECOND)
    expect(await refreshed).toMatchObject({ settled: true })
    expect(finishes).toHaveLength(2)
  })
})

describe('the candidate business of a subscription', () => {
  const claim = { candidateBusinessUid: 'c' }

  it.each([
    ['does not show it', MISSING],
    ['refuses it', REFUSED],
    ['refuses a token for it', TOKEN_REFUSED],
  ] as [string, ReadResult][])(
    'is read if the platform %s for the business of the row',
    async (_how, result) => {
      const { refresh, reads, noted } = reading([result, found_('purchased', 1)], { claim })
      await refresh()
      expect(reads).toEqual([
        ['s', 'b'],
        ['s', 'c'],
      ])
      expect(noted()).toEqual(['found'])
    },
  )

  it.each([
    ['an outage', { kind: 'outage', code: 'platform_failing' }],
    ['a rate limit', { kind: 'throttled' }],
    ['a record', found_('purchased', 1)],
    ['refused credentials', { kind: 'credentials_refused' }],
  ] as [string, ReadResult][])('is not read after %s', async (_what, result) => {
    const { refresh, reads } = reading([result], { claim })
    await refresh()
    expect(reads).toEqual([['s', 'b']])
  })

  it('is not read if there is none, or if it is the business of the row', async () => {
    for (const candidateBusinessUid of ['b', null]) {
      const { refresh, reads } = reading([MISSING], { claim: { candidateBusinessUid } })
      await refresh()
      expect(reads).toEqual([['s', 'b']])
    }
  })

  it('counts only with a record: otherwise the result is that of the business of the row', async () => {
    const { refresh, noted, finishes } = reading([MISSING, REFUSED], { claim })
    await refresh()
    expect(noted()).toEqual(['missing'])
    expect(finishes).toHaveLength(1)
  })

  it.each([
    ['a rate limit', { kind: 'throttled', retryAfterMs: MINUTE }],
    ['refused credentials', { kind: 'credentials_refused' }],
  ] as [string, ReadResult][])('E6, E147 pauses all reads if its own read gets %s', async (_what, result) => {
    const { refresh, isPaused, counted } = reading([MISSING, result], { claim })
    await refresh()
    expect(counted).toEqual([
      ['b', 'missing'],
      ['c', result.kind],
    ])
    expect(isPaused()).toBe(true)
  })

  it('does not count if the lease was lost during its read', async () => {
    const lost = new AbortController()
    const { refresh, counted, isPaused, reads } = reading([MISSING, { kind: 'throttled' }], {
      claim,
      signal: lost.signal,
      before: () => void (reads.length === 2 && lost.abort()),
    })
    await refresh()
    expect(counted).toEqual([['b', 'missing']])
    expect(isPaused()).toBe(false)
  })

  it('gives way to the business that the platform itself names for a subscription that was read', async () => {
    const { claim: base } = createReader()
    const named: ReadResult = {
      kind: 'refused',
      code: 'platform_record_mismatch',
      recordBusinessUid: 'owner',
    }
    const { refresh, reads } = reading([named, found_('purchased', 2)], {
      claim: {
        ...claim,
        subscription: { ...base.subscription, record: record('purchased', 1), state: 'purchased' },
      },
    })
    await refresh()
    expect(reads).toEqual([
      ['s', 'b'],
      ['s', 'owner'],
    ])
  })

  it.each([
    ['c', null],
    ['owner', undefined],
  ])(
    'is dropped only if it was tried itself: the platform names "%s", without a record',
    async (named, candidate) => {
      const { claim: base } = createReader()
      const mismatch: ReadResult = {
        kind: 'refused',
        code: 'platform_record_mismatch',
        recordBusinessUid: named,
      }
      const shown = { record: record('purchased', 1), state: 'purchased', requestedAt: Date.UTC(2030, 0, 1) }
      const { refresh, finishes } = reading([mismatch, MISSING], {
        claim: {
          ...claim,
          subscription: { ...base.subscription, ...shown },
          // The verifications are over.
          progress: progressText(base, {}),
        },
      })
      await refresh()
      expect(finishes.map((finish) => finish.candidate)).toEqual([candidate])
    },
  )
})

/** One leased read, with these results of the platform, one after the other. */
function reading(
  answers: ReadResult[],
  given: {
    claim?: Partial<ReadClaim>
    signal?: AbortSignal
    before?(): void
    write?(): Promise<boolean>
    others?: OtherBusinesses | Error
  } = {},
) {
  const { signal = new AbortController().signal, before = () => {}, write = async () => true } = given
  const clock = createVirtualClock({ isBusy: () => false })
  const own = clock.forProcess()
  const reads: string[][] = []
  const finishes: ReadFinish[] = []
  const results: ReadResult[] = []
  const steps: string[] = []
  const counted: unknown[][] = []
  const controls: number[] = []
  const { others = SERVED } = given
  const outcomes = createReadOutcomes({ clock: own })
  const { refresh } = createRefreshSubscription({
    store: {
      async finishRead(_claim, finish) {
        finishes.push(finish)
        return write()
      },
      async otherBusinesses() {
        if (others instanceof Error) throw others
        return others
      },
      async readOthers(_claim, { limit }) {
        controls.push(limit)
        return limit
      },
    },
    async read({ subscriptionUid, businessUid }) {
      reads.push([subscriptionUid, businessUid])
      steps.push('read')
      before()
      return answers.shift() as ReadResult
    },
    stateOf: ({ purchase_state }) => purchase_state,
    accessOf: ({ purchase_state }) => ({ entitled: purchase_state === 'purchased', until: null }),
    reconcileEveryMs: 24 * HOUR,
    maxStaleMs: 72 * HOUR,
    waitMs: 0,
    clock: own,
    onRead(_claim, result) {
      results.push(result)
      steps.push('noted')
    },
    outcomes: {
      note(businessUid, result) {
        counted.push([businessUid, result.kind])
        outcomes.note(businessUid, result)
      },
    },
  })
  const claim = { ...createReader().claim, ...given.claim }
  return {
    clock,
    refresh: () => refresh(claim, signal, () => void steps.push('writing')),
    reads,
    finishes,
    counted,
    controls,
    steps,
    isPaused: outcomes.isPaused,
    noted: () => results.map(({ kind }) => kind),
  }
}
