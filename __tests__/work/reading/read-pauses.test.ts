import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { createRefresher } from '../../../lib/work/reading/refresher.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { createReader } from '../../support/scenes/reader.js'

const LONG: ReadResult = { kind: 'throttled', retryAfterMs: MINUTE }
const SHORT: ReadResult = { kind: 'throttled', retryAfterMs: SECOND }
const NO_CREDENTIALS: ReadResult = { kind: 'credentials_refused' }

describe('reads that pause because the platform limits the rate', () => {
  it.each([
    ['a shorter pause that the platform requests later', SHORT, 'reads_throttled', []],
    // Which is a problem until a read gets another answer.
    ['a refusal of the credentials later', NO_CREDENTIALS, 'credentials_refused', ['credentials_refused']],
  ])('E6 resume when the longer pause ends, despite %s', async (_what, later, during, after) => {
    const { clock, answer, claims, problems } = reads(2)
    await clock.rest()
    expect(claims()).toBe(2)
    answer(LONG)
    answer(later)
    await clock.rest()
    expect(problems()).toMatchObject([{ code: during }])
    await clock.advance(MINUTE - 1)
    expect(claims()).toBe(2)
    await clock.advance(2 * SECOND)
    expect(claims()).toBeGreaterThan(2)
    expect(problems().map(({ code }) => code)).toEqual(after)
  })

  it.each([
    ['a second when the platform names no time', { kind: 'throttled' } as const, SECOND],
    ['ten seconds when it refuses the credentials', NO_CREDENTIALS, 10 * SECOND],
  ])('E6 resume after %s', async (_what, result, pauseMs) => {
    const { clock, answer, claims } = reads(1)
    await clock.rest()
    answer(result)
    await clock.advance(pauseMs - 1)
    expect(claims()).toBe(1)
    await clock.advance(2 * SECOND)
    expect(claims()).toBeGreaterThan(1)
  })
})

/** A refresher with this many slots, over a store with a read that is always due. */
function reads(concurrency: number) {
  const clock = createVirtualClock({ isBusy: () => false })
  const waiting: ((result: ReadResult) => void)[] = []
  let claims = 0
  const refresher = createRefresher({
    store: {
      async claimReads({ urgencies, limit }) {
        if (!urgencies.includes(0)) return []
        return Array.from({ length: limit }, () => {
          const id = `s${claims++}`
          const { claim } = createReader()
          return {
            ...claim,
            id,
            urgency: 0,
            subscription: { ...claim.subscription, subscriptionUid: id, businessUid: id },
          } satisfies ReadClaim
        })
      },
      finishRead: async () => true,
      renewRead: async () => true,
      otherBusinesses: async () => ({
        ...{ failing: 1, served: 0, recovered: 0, isSteady: false, exist: false },
        ...{ unread: 0, lately: { failing: 0, served: 0 } },
      }),
      readOthers: async () => 0,
    },
    read: () => new Promise((resolve) => waiting.push(resolve)),
    isWaitingForToken: () => false,
    stateOf: ({ purchase_state }) => purchase_state,
    concurrency,
    leaseMs: 10 * MINUTE,
    renewEveryMs: 5 * MINUTE,
    pollMs: SECOND,
    reconcileEveryMs: MINUTE,
    maxStaleMs: 4_320 * MINUTE,
    waitMs: 0,
    clock: clock.forProcess(),
    onError(error) {
      throw error
    },
  })
  refresher.start()
  return {
    clock,
    answer: (result: ReadResult) => waiting.shift()?.(result),
    claims: () => claims,
    problems: () => refresher.problems(),
  }
}
