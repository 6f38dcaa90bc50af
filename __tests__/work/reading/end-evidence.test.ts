import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { believe, createEndCheck, hasFailed } from '../../../lib/work/reading/believe-end.js'
import { type Evidence, evidenceOfEnd } from '../../../lib/work/reading/end-evidence.js'
import { readFacts } from '../../../lib/work/reading/facts.js'
import { progressText } from '../../../lib/work/reading/schedule.js'
import { createKnown, createReader, record } from '../../support/scenes/reader.js'

const TOKEN: ReadResult = { kind: 'token_refused' }
const FORBIDDEN: ReadResult = { kind: 'refused', code: 'platform_refused', status: 403 }
const NOT_FOUND: ReadResult = { kind: 'refused', code: 'platform_refused', status: 404 }
const MISSING: ReadResult = { kind: 'missing' }
const NOW = Date.UTC(2030, 0, 1)

interface Case {
  uninstalled?: boolean
  end?: boolean
  /** How long ago an update came. */
  updateMs?: number
  /** How long and how often the platform has refused it before. */
  refusedMs?: number
  refusals?: number
  missingMs?: number
  missing?: number
  state?: string
}

describe('D60 the evidence for an end', () => {
  it.each([
    // An uninstall, and a token refused twice over a minute.
    [TOKEN, { uninstalled: true }, undefined],
    [TOKEN, { uninstalled: true, refusals: 1, refusedMs: MINUTE - 1 }, undefined],
    [TOKEN, { uninstalled: true, refusals: 1, refusedMs: MINUTE }, 'uninstall'],
    [FORBIDDEN, { uninstalled: true, refusals: 1, refusedMs: MINUTE }, 'uninstall'],
    [NOT_FOUND, { uninstalled: true, refusals: 1, refusedMs: MINUTE }, undefined],
    [TOKEN, { refusals: 9, refusedMs: HOUR }, undefined],
    // An uninstall, and other refusals for an hour since.
    [NOT_FOUND, { uninstalled: true, refusals: 9, refusedMs: HOUR - 1 }, undefined],
    [NOT_FOUND, { uninstalled: true, refusals: 9, refusedMs: HOUR }, 'update'],
    // An event whose own record shows an end, and one refusal.
    [TOKEN, { end: true }, 'record'],
    [NOT_FOUND, { end: true }, 'record'],
    [MISSING, { end: true }, undefined],
    // An update, and refusals for an hour since.
    [TOKEN, { updateMs: 2 * HOUR, refusals: 9, refusedMs: HOUR - 1 }, undefined],
    [TOKEN, { updateMs: HOUR - 1, refusals: 9, refusedMs: 2 * HOUR }, undefined],
    [TOKEN, { updateMs: HOUR, refusals: 9, refusedMs: HOUR }, 'update'],
    // Refusals for maxStaleMs.
    [TOKEN, { refusals: 9, refusedMs: 72 * HOUR - 1 }, undefined],
    [FORBIDDEN, { refusals: 9, refusedMs: 72 * HOUR }, 'silence'],
    // No record in three reads over a minute.
    [MISSING, { missing: 1, missingMs: MINUTE }, undefined],
    [MISSING, { missing: 2, missingMs: MINUTE - 1 }, undefined],
    [MISSING, { missing: 2, missingMs: MINUTE }, 'missing'],
    // Nothing else ends anything, and a canceled subscription has nothing to end.
    [{ kind: 'credentials_refused' }, { end: true, refusals: 9, refusedMs: 99 * HOUR }, undefined],
    [
      { kind: 'outage', code: 'platform_timeout' },
      { end: true, refusals: 9, refusedMs: 99 * HOUR },
      undefined,
    ],
    [
      TOKEN,
      { state: 'canceled', end: true, uninstalled: true, refusals: 9, refusedMs: 99 * HOUR },
      undefined,
    ],
  ] as [ReadResult, Case, Evidence | undefined][])('%j after %j is %s', (result, given, evidence) => {
    expect(evidenceOfEnd(readFacts(claimOf(given), result, ENV))).toBe(evidence)
  })
})

describe('D61 an end is believed', () => {
  const others = {
    ...{ failing: 1, served: 0, recovered: 0, isSteady: false, exist: true },
    ...{ untested: 0, lately: { failing: 0, served: 0 } },
  }

  it.each([
    ['when another business was served since', { served: 1 }, 'believed'],
    ['when there is no other business', { exist: false }, 'believed'],
    ['when two of two have an announced end', { failing: 2, exist: false }, 'believed'],
    ['not while no other business was read since', {}, 'unproven'],
    ['not when three of three fail', { failing: 3, exist: false }, 'many'],
    ['not when more fail than are served', { failing: 30, served: 10, isSteady: true }, 'many'],
    ['when as many are served', { failing: 5, served: 5 }, 'believed'],
    ['when those that came back announced nothing', { failing: 2, served: 3, recovered: 3 }, 'believed'],
  ])('%s', (_when, more, belief) => {
    expect(believe('uninstall', { ...others, ...more }, false, true)).toBe(belief)
  })

  it('D95 not while most of the served ones have just come back, unless an event announced it', () => {
    const recovering = { ...others, failing: 2, served: 3, recovered: 3, isSteady: false, exist: true }
    expect(believe('missing', recovering, false)).toBe('many')
    expect(believe('missing', { ...recovering, recovered: 0 }, false)).toBe('believed')
  })

  it('of one that no event announced only when some others were read since, more if any of them fails', () => {
    const one = { ...others, served: 4, untested: 9 }
    expect(believe('missing', one, false)).toBe('unproven')
    expect(believe('update', { ...one, served: 5 }, false)).toBe('believed')
    expect(believe('missing', { ...one, untested: 0 }, false)).toBe('believed')
    expect(believe('missing', { ...one, failing: 2, served: 18 }, false)).toBe('unproven')
    expect(believe('missing', { ...one, failing: 2, served: 19 }, false)).toBe('believed')
    expect(believe('record', one, false, true)).toBe('believed')
  })

  it('not when most of those that were read since the first of the day have vanished without an event', () => {
    const lately = { failing: 9, served: 8 }
    expect(believe('missing', { ...others, served: 20, lately }, false)).toBe('many')
    expect(believe('missing', { ...others, served: 20, lately: { failing: 9, served: 9 } }, false)).toBe(
      'believed',
    )
  })

  it('after maxStaleMs also when many fail, if another one was served all the time', () => {
    const many = { ...others, failing: 30, served: 10, recovered: 0, exist: true }
    expect(believe('silence', { ...many, isSteady: true }, true)).toBe('believed')
    expect(believe('silence', { ...many, isSteady: false }, true)).toBe('many')
  })

  it('of a subscription that was never read only when another business was served', () => {
    expect(believe('never shown', { ...others, exist: false }, false)).toBe('unproven')
    expect(believe('never shown', { ...others, served: 1 }, false)).toBe('believed')
  })
})

const ENV = {
  now: NOW,
  random: () => 0.5,
  reconcileEveryMs: 24 * HOUR,
  maxStaleMs: 72 * HOUR,
  waitMs: SECOND,
  stateOf: () => 'purchased',
}

describe('the look at other businesses', () => {
  it('begins after a minute of refusals of a subscription that was never read', async () => {
    for (const [refusedMs, asked] of [
      [MINUTE - 1, 0],
      [MINUTE, 1],
    ] as const) {
      const { store, calls } = failingStore()
      await createEndCheck(store)(neverRead(refusedMs))
      expect(calls()).toBe(asked)
      expect(hasFailed(neverRead(refusedMs))).toBe(asked === 1)
    }
    expect(hasFailed(neverRead(null))).toBe(false)
  })

  it('is not made for one that was never read and is shown, or is not being verified', async () => {
    const { store, calls } = failingStore()
    const shown = createReader()
    shown.claim.progress = progressText(shown.claim, { refusals: 1, refusedSince: NOW - HOUR })
    for (const verifying of [true, false]) {
      shown.claim.subscription.verifying = verifying
      const result = verifying ? ({ kind: 'found', record: record('purchased', 1) } as const) : NOT_FOUND
      expect(await createEndCheck(store)(factsOf(shown.claim, result))).toBeUndefined()
    }
    expect(calls()).toBe(0)
  })

  it('is made for others that fail only after a read that follows a failed one of a known subscription', () => {
    const { claim } = createKnown()
    for (const failingSince of [null, NOW]) {
      claim.failingSince = failingSince
      expect(hasFailed(factsOf(claim, NOT_FOUND))).toBe(failingSince !== null)
    }
  })

  it('proves nothing while the store cannot answer: nobody loses access, or gets a definite no', async () => {
    const check = createEndCheck(failingStore().store)
    expect(await check(neverRead(MINUTE))).toBe('unproven')
    const known = createKnown()
    known.showsEnd()
    expect(await check(factsOf(known.claim, TOKEN))).toBe('unproven')
    known.claim.endAt = null
    known.claim.failingSince = NOW - MINUTE
    expect(await check(factsOf(known.claim, NOT_FOUND))).toBeUndefined()
  })
})

function failingStore() {
  let calls = 0
  const fails = () => {
    calls++
    return Promise.reject(new Error('the store does not answer'))
  }
  return { store: { otherBusinesses: fails, readOthers: fails }, calls: () => calls }
}

/** A subscription that the platform has refused for this long, and never shown. */
function neverRead(refusedMs: number | null) {
  const { claim } = createReader()
  claim.subscription.verifying = true
  claim.progress = progressText(claim, {
    refusals: 1,
    refusedSince: refusedMs === null ? null : NOW - refusedMs,
  })
  return factsOf(claim, NOT_FOUND)
}

function factsOf(claim: ReadClaim, result: ReadResult) {
  const env = { now: NOW, random: () => 0.5, reconcileEveryMs: 24 * HOUR, maxStaleMs: 72 * HOUR, waitMs: 0 }
  return readFacts(claim, result, { ...env, stateOf: ({ purchase_state }) => purchase_state })
}

function claimOf(given: Case): ReadClaim {
  const { uninstalled, end, updateMs, refusedMs = 0, refusals = 0, missing = 0, missingMs = 0 } = given
  const { claim } = createReader()
  const ago = (ms: number) => NOW - ms
  return {
    ...claim,
    uninstalledAt: uninstalled ? ago(HOUR) : null,
    endAt: end ? ago(HOUR) : null,
    updateAt: updateMs === undefined ? null : ago(updateMs),
    failingSince: refusals > 0 ? ago(refusedMs) : null,
    progress: progressText(claim, {
      refusals,
      refusedSince: refusals > 0 ? ago(refusedMs) : null,
      missing,
      missingSince: missing > 0 ? ago(missingMs) : null,
    }),
    subscription: {
      ...claim.subscription,
      record: record('purchased', 1),
      state: given.state ?? 'purchased',
    },
  }
}
