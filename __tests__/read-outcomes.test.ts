import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, MINUTE, SECOND } from '../lib/clock.js'
import type { ReadResult } from '../lib/platform/read-result.js'
import type { SubscriptionCounts } from '../lib/store/store.js'
import { createReadOutcomes, knownRefused } from '../lib/work/read-outcomes.js'
import { found_, REFUSED } from './support/reader.js'

const FOUND = found_('purchased', 1)
const MISSING: ReadResult = { kind: 'missing' }
const OUTAGE: ReadResult = { kind: 'outage', code: 'platform_timeout' }
const LOOK = 'look at platform.baseUrl, and whether the app may read subscriptions'
const LOOK_AT_TOKENS =
  'look at platform.authUrl, app.clientId and app.clientSecret, and whether the businesses have the app installed'

describe('refused reads', () => {
  it('are a problem when all reads are refused, or at least three and more than half', () => {
    const words = (refused: number, good: number) => {
      const { note, problems } = outcomes()
      for (let i = 0; i < good; i++) note(`good ${i}`, true, FOUND)
      for (let i = 0; i < refused; i++) note(`bad ${i}`, true, REFUSED)
      return problems()
    }
    expect(words(0, 0)).toEqual([])
    expect(words(0, 3)).toEqual([])
    expect(words(1, 0)).toEqual([
      `the platform refuses the reads of 1 of 1 businesses (platform_refused): ${LOOK}`,
    ])
    expect(words(2, 1)).toEqual([])
    expect(words(3, 3)).toEqual([])
    expect(words(3, 2)).toEqual([
      `the platform refuses the reads of 3 of 5 businesses (platform_refused): ${LOOK}`,
    ])
  })

  it.each([
    [
      { kind: 'refused', code: 'platform_refused', status: 404 },
      '404 platform_refused',
      'look at platform.baseUrl',
    ],
    [{ kind: 'refused', code: 'platform_refused', status: 403 }, '403 platform_refused', LOOK],
    [
      { kind: 'refused', code: 'platform_record_mismatch', recordBusinessUid: 'b' },
      'platform_record_mismatch',
      LOOK,
    ],
    [{ kind: 'token_refused' }, 'token_refused', LOOK_AT_TOKENS],
    [{ kind: 'token_refused', status: 404 }, '404 token_refused', LOOK_AT_TOKENS],
  ] as [ReadResult, string, string][])('are reported with the next step: %j', (result, code, advice) => {
    const { note, problems } = outcomes()
    note('b', true, result)
    expect(problems()).toEqual([`the platform refuses the reads of 1 of 1 businesses (${code}): ${advice}`])
  })

  it('are reported with the most common answer', () => {
    const { note, problems } = outcomes()
    note('a', true, { kind: 'refused', code: 'platform_refused', status: 403 })
    note('b', true, { kind: 'token_refused' })
    note('c', true, { kind: 'token_refused' })
    expect(problems()[0]).toContain('3 of 3 businesses (token_refused)')
  })

  it('are forgotten for subscriptions that were never read once a read succeeds, because those may be forged', () => {
    const { note, problems } = outcomes()
    note('a', true, REFUSED)
    for (const uid of ['b', 'c', 'd']) note(uid, false, REFUSED)
    note('e', true, MISSING)
    expect(problems()).toHaveLength(1)
    note('e', true, FOUND)
    expect(problems()).toEqual([])
    // The earlier reads still count.
    for (const uid of ['b', 'c']) note(uid, true, REFUSED)
    expect(problems()[0]).toContain('3 of 4 businesses')
  })

  it('count for the latest twenty businesses only', () => {
    const { note, problems } = outcomes()
    for (let i = 0; i < 11; i++) note(`good ${i}`, true, MISSING)
    for (let i = 0; i < 9; i++) note(`bad ${i}`, true, REFUSED)
    // Its new read makes it the latest, not the oldest.
    note('good 0', true, MISSING)
    expect(problems()).toEqual([])
    for (let i = 9; i < 11; i++) note(`bad ${i}`, true, REFUSED)
    expect(problems()[0]).toContain('11 of 20 businesses')
  })
})

describe('records that vanish', () => {
  it('D26 are a problem when they are at least three and more than half', () => {
    for (const [vanished, good, isProblem] of [
      [2, 0, false],
      [3, 0, true],
      [3, 3, false],
      [4, 3, true],
    ] as const) {
      const { note, problems, manyVanished } = outcomes()
      for (let i = 0; i < good; i++) note(`good ${i}`, true, FOUND, true)
      for (let i = 0; i < vanished; i++) note(`bad ${i}`, true, MISSING, true)
      expect(manyVanished()).toBe(isProblem)
      const of = `${vanished} of ${vanished + good} businesses`
      expect(problems()).toEqual(
        isProblem ? [`the platform no longer shows the subscriptions of ${of}: ${LOOK}`] : [],
      )
    }
  })

  it('D26 count from the time they are accepted as missing, for a day, and only while they are missing', () => {
    const { note, manyVanished, pass } = outcomes()
    for (const uid of ['a', 'b', 'c']) note(uid, true, MISSING, true)
    note('a', true, MISSING, false)
    expect(manyVanished()).toBe(true)
    note('a', true, FOUND, false)
    expect(manyVanished()).toBe(false)
    note('a', true, MISSING, true)
    pass(20 * HOUR)
    for (const uid of ['a', 'b']) note(uid, true, MISSING, true)
    expect(manyVanished()).toBe(true)
    pass(4 * HOUR)
    expect(manyVanished()).toBe(false)
  })

  it('D26 do not include those that were missing before, or were never read', () => {
    const { note, manyVanished } = outcomes()
    for (const uid of ['a', 'b', 'c']) note(uid, true, MISSING, false)
    expect(manyVanished()).toBe(false)
  })
})

describe('reads that fail', () => {
  const WORDS =
    'reads fail for 3 of 3 businesses (platform_timeout): is the platform up, and are platform.baseUrl and platform.authUrl right?'

  it('are a problem after half a minute', () => {
    const { note, problems, pass } = outcomes()
    for (const uid of ['a', 'b', 'c']) note(uid, true, OUTAGE)
    pass(30 * SECOND - 1)
    expect(problems()).toEqual([])
    pass(1)
    expect(problems()).toEqual([WORDS])
  })

  it('last since the first of them', () => {
    const { note, problems, pass } = outcomes()
    note('a', true, OUTAGE)
    pass(20 * SECOND)
    for (const uid of ['a', 'b', 'c']) note(uid, true, OUTAGE)
    pass(10 * SECOND)
    expect(problems()).toEqual([WORDS])
  })

  it('restart their duration after any other result', () => {
    const { note, problems, pass } = outcomes()
    note('a', true, OUTAGE)
    pass(MINUTE)
    note('a', true, MISSING)
    note('a', true, OUTAGE)
    expect(problems()).toEqual([])
    note('a', true, REFUSED)
    note('a', true, OUTAGE)
    expect(problems()).toEqual([])
  })

  it('are not counted if the platform limits the rate, or refuses the whole app', () => {
    for (const kind of ['throttled', 'credentials_refused'] as const) {
      const { note, problems } = outcomes()
      note('a', true, REFUSED)
      note('a', true, { kind })
      expect(problems()).toEqual([])
    }
  })
})

describe('the check whether the platform has served other reads', () => {
  it('is true if a read has succeeded since, and not most reads are refused', () => {
    const { note, hasServedSince, now, pass } = outcomes()
    expect(hasServedSince(0)).toBe(false)
    pass(HOUR)
    const at = now()
    note('a', true, MISSING)
    expect(hasServedSince(0)).toBe(false)
    note('a', true, FOUND)
    pass(MINUTE)
    expect(hasServedSince(at)).toBe(true)
    expect(hasServedSince(at + 1)).toBe(false)
    for (const uid of ['b', 'c']) note(uid, true, REFUSED)
    expect(hasServedSince(at)).toBe(true)
    note('d', true, REFUSED)
    expect(hasServedSince(at)).toBe(false)
  })
})

describe('the counts of the store', () => {
  it('report that most reads were refused, even to a process with few reads of its own', () => {
    const words = `the last reads of 3 of 5 subscriptions were refused: ${LOOK}`
    const counts = { active: 5, refused: 3 }
    const { note, problems } = outcomes()
    expect(problems(counts)).toEqual([words])
    note('a', true, REFUSED)
    expect(problems(counts)).toEqual([expect.stringContaining('1 of 1 businesses')])
    expect(knownRefused({ ...NONE, active: 6, refused: 3 })).toEqual([])
    expect(knownRefused({ ...NONE, active: 0, refused: 0 })).toEqual([])
  })

  it('report that a known subscription is not read any more', () => {
    expect(knownRefused({ ...NONE, knownGivenUp: 1 })).toEqual([
      '1 subscriptions that were read before are not read any more',
    ])
    expect(knownRefused(NONE)).toEqual([])
  })
})

const NONE: SubscriptionCounts = {
  subscriptions: 0,
  requested: 0,
  oldestRequestMs: null,
  givenUp: 0,
  knownGivenUp: 0,
  active: 0,
  refused: 0,
}

function outcomes() {
  let passed = 0
  const now = () => 1_000_000 + passed
  const clock = { now, monotonic: () => passed } as Clock
  const { note, hasServedSince, manyVanished, problems } = createReadOutcomes({ clock })
  return {
    note,
    manyVanished,
    hasServedSince,
    now,
    pass: (ms: number) => {
      passed += ms
    },
    problems: (counts: Partial<SubscriptionCounts> = {}) => problems({ ...NONE, ...counts }),
  }
}
