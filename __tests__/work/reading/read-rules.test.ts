import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../../lib/base/record.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { businessIn, isOlder, isUpdated, movesTo, untouched } from '../../../lib/work/reading/facts.js'
import {
  EARLY_SHARES,
  halfSince,
  MISSING_RECHECK_MS,
  type Progress,
  pauseAfterRefusal,
  progressText,
  recallProgress,
  stepAfter,
} from '../../../lib/work/reading/schedule.js'
import { record, subscriptionOf } from '../../support/scenes/reader.js'

describe('the schedule of reads', () => {
  const at = (verified: number, sinceRequestMs = 0, owed = 1) =>
    stepAfter({ owed, verified }, sinceRequestMs, 2 * SECOND)

  it('has two early reads within the wait, and four verifications after them', () => {
    expect(EARLY_SHARES).toEqual([0.25, 0.85])
    expect(at(0)).toEqual({ inMs: 500, next: 1 })
    expect(at(1, 500)).toEqual({ inMs: 1_200, next: 2 })
    expect([2, 3, 4, 5, 6].map((verified) => at(verified, 13 * MINUTE))).toEqual([
      { inMs: 5 * SECOND, next: 3 },
      { inMs: 30 * SECOND, next: 4 },
      { inMs: 2 * MINUTE, next: 5 },
      { inMs: 10 * MINUTE, next: 6 },
      undefined,
    ])
  })

  it('skips an early read whose time has already passed', () => {
    expect(at(0, 500)).toEqual({ inMs: 1_200, next: 2 })
    expect(at(0, 1_700)).toEqual({ inMs: 5 * SECOND, next: 3 })
  })

  it('has no two early reads within a quarter of a second, however short the wait', () => {
    const after = (verified: number, sinceRequestMs: number) =>
      stepAfter({ owed: 1, verified }, sinceRequestMs, 600)
    expect(after(0, 10)).toEqual({ inMs: 250, next: 1 })
    expect(after(1, 260)).toEqual({ inMs: 250, next: 2 })
    expect(after(0, 200)).toEqual({ inMs: 310, next: 2 })
  })

  it('has one more read at the end of the verifications, if others came earlier than their turn', () => {
    expect(at(6, MINUTE)).toEqual({ inMs: 11 * MINUTE + 35 * SECOND, next: 6 })
    expect(at(6, 12 * MINUTE + 35 * SECOND)).toBeUndefined()
  })

  it('is empty without a request', () => {
    expect(at(0, 0, 0)).toBeUndefined()
  })

  it('reads a missing record twice within a minute, and an accepted missing one more and more rarely', () => {
    expect(MISSING_RECHECK_MS).toEqual([20 * SECOND, 40 * SECOND])
    expect([0, 10 * MINUTE, HOUR].map(halfSince)).toEqual([5 * MINUTE, 5 * MINUTE, HOUR / 2])
  })

  it('doubles the pause after refusals up to 5 min, then waits a tenth of the time since the first, at most half an hour', () => {
    expect([1, 2, 8].map((refusals) => pauseAfterRefusal(refusals, 0))).toEqual(
      [2, 4, 256].map((s) => s * SECOND),
    )
    expect([9, 31, 5_000].map((refusals) => pauseAfterRefusal(refusals, 0))).toEqual(
      Array(3).fill(5 * MINUTE),
    )
    expect([50 * MINUTE, HOUR, 2 * HOUR].map((ms) => pauseAfterRefusal(12, ms))).toEqual(
      [5, 6, 12].map((minutes) => minutes * MINUTE),
    )
    expect([5 * HOUR, 72 * HOUR].map((ms) => pauseAfterRefusal(12, ms))).toEqual(Array(2).fill(30 * MINUTE))
  })
})

describe('two records', () => {
  it('are compared by updated_at, and by all their fields if one has none', () => {
    const [before, after] = [record('purchased', 1), record('purchased', 2)]
    expect(isUpdated(before, null)).toBe(true)
    expect(isUpdated(after, before)).toBe(true)
    expect(isUpdated({ ...before, display_name: 'new' }, before)).toBe(false)
    const undated = { ...before, updated_at: null }
    expect(isUpdated(undated, undated)).toBe(false)
    expect(isUpdated({ ...undated, display_name: 'new' }, undated)).toBe(true)
    expect(isUpdated(before, undated)).toBe(true)
    expect(isUpdated(undated, before)).toBe(true)
  })

  it('are ordered by their updated_at', () => {
    const [before, after] = [record('purchased', 1), record('purchased', 2)]
    expect(isOlder(before, after)).toBe(true)
    for (const than of [null, before, { ...before, updated_at: null }] as (SubscriptionRecord | null)[]) {
      expect(isOlder(before, than)).toBe(false)
    }
    expect(isOlder(after, before)).toBe(false)
  })

  it('name an owner only if an earlier read exists', () => {
    const mismatch = { kind: 'refused', code: 'platform_record_mismatch', recordBusinessUid: 'x' } as const
    const known = { record: record('purchased', 1) }
    expect(businessIn(mismatch, known)).toBe('x')
    expect(businessIn(mismatch, { record: null })).toBeUndefined()
    expect(businessIn({ kind: 'missing' }, known)).toBeUndefined()
  })
})

describe('the moves of a read', () => {
  const before = subscriptionOf({ state: 'purchased', record: record('purchased', 1) })
  const there = { ...record('purchased', 2), business_uid: 'other' }

  it('to another business with an item that is not the app’s are only the loss of the first', () => {
    expect(movesTo(before, null, there)).toEqual([
      { businessUid: 'b', from: 'purchased', to: null, record: before.record },
    ])
    expect(movesTo(before, 'trial', there).map(({ businessUid, to }) => [businessUid, to])).toEqual([
      ['b', null],
      ['other', 'trial'],
    ])
  })

  it('are none of a read that was not made, which counts as no try', () => {
    const claim = { subscription: before, progress: '{}' } as ReadClaim
    expect(untouched(claim)).toEqual({
      ...{ settled: false, failure: null, verifying: false, progress: '{}', nextInMs: 0, isUntried: true },
    })
  })
})

describe('the progress of a subscription', () => {
  const NOW = 1_000

  const claim = (generation: number, progress: string | null, createdAt = 100) => ({
    ...{ generation, progress, createdAt },
  })
  const textOf = (changes: Partial<Progress>) => progressText({ generation: 2, createdAt: 100 }, changes)

  it('begins with one verification for each request', () => {
    expect(recallProgress(claim(3, null), NOW)).toEqual({
      generation: 3,
      owed: 3,
      verified: 0,
      outages: 0,
      refusals: 0,
      refusedSince: null,
      refusedAt: null,
      missing: 0,
      missingSince: null,
      goneSince: null,
      heldBack: 0,
      dissent: null,
    })
  })

  it('stays unchanged without a further request', () => {
    const kept = recallProgress(claim(2, textOf({ owed: 1, verified: 3, outages: 4, missing: 2 })), NOW)
    expect(kept).toMatchObject({ generation: 2, owed: 1, verified: 3, outages: 4, missing: 2 })
  })

  it('restarts its verifications and pauses with a further request, and keeps refusals and disappearances', () => {
    const before = { owed: 1, verified: 3, outages: 4, refusals: 5, refusedSince: 6, missing: 2 }
    expect(recallProgress(claim(4, textOf(before)), NOW)).toMatchObject({
      generation: 4,
      owed: 3,
      verified: 0,
      outages: 0,
      refusals: 5,
      refusedSince: 6,
      missing: 2,
    })
  })

  it('keeps its times, unless the wall clock was ahead when they were recorded', () => {
    const none = { refusedSince: null, refusedAt: null, missingSince: null, goneSince: null, dissent: null }
    const times = (at: number) => ({
      refusedSince: at,
      refusedAt: at,
      missingSince: at,
      goneSince: at,
      dissent: { state: 'purchased', updatedAt: 7, since: at },
    })
    const recalled = (changes: object) => recallProgress(claim(2, textOf(changes)), NOW)
    expect(recalled(none)).toMatchObject(none)
    expect(recalled(times(NOW - 1))).toMatchObject(times(NOW - 1))
    expect(recalled(times(NOW + HOUR))).toMatchObject(times(NOW))
    // To another process, whose clock is ahead, the subscription was created later.
    const elsewhere = claim(2, textOf(times(NOW - 1)), 100 + HOUR)
    expect(recallProgress(elsewhere, NOW + HOUR)).toMatchObject(times(NOW - 1 + HOUR))
  })
})
