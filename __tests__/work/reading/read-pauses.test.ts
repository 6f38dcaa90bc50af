import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { createReads } from '../../support/scenes/refresher.js'

const LONG: ReadResult = { kind: 'throttled', retryAfterMs: MINUTE }
const SHORT: ReadResult = { kind: 'throttled', retryAfterMs: SECOND }
const NO_CREDENTIALS: ReadResult = { kind: 'credentials_refused' }

describe('reads that pause because the platform limits the rate', () => {
  it.each([
    ['a shorter pause that the platform requests later', SHORT, 'reads_throttled', []],
    // Which is a problem until a read gets another answer.
    ['a refusal of the credentials later', NO_CREDENTIALS, 'credentials_refused', ['credentials_refused']],
  ])('E6 resume when the longer pause ends, despite %s', async (_what, later, during, after) => {
    const { refresher, clock, answer, claimed } = createReads(2, { isEndless: true })
    refresher.start()
    await clock.rest()
    expect(claimed).toEqual(['s0', 's1'])
    answer('s0', LONG)
    answer('s1', later)
    await clock.rest()
    expect(refresher.problems()).toMatchObject([{ code: during }])
    await clock.advance(MINUTE - 1)
    expect(claimed).toHaveLength(2)
    await clock.advance(2 * SECOND)
    expect(claimed.length).toBeGreaterThan(2)
    expect(refresher.problems().map(({ code }) => code)).toEqual(after)
  })

  it.each([
    ['a second when the platform names no time', { kind: 'throttled' } as const, SECOND],
    ['ten seconds when it refuses the credentials', NO_CREDENTIALS, 10 * SECOND],
  ])('E6 resume after %s', async (_what, result, pauseMs) => {
    const { refresher, clock, answer, claimed } = createReads(1, { isEndless: true })
    refresher.start()
    await clock.rest()
    answer('s0', result)
    await clock.advance(pauseMs - 1)
    expect(claimed).toHaveLength(1)
    await clock.advance(2 * SECOND)
    expect(claimed.length).toBeGreaterThan(1)
  })
})
