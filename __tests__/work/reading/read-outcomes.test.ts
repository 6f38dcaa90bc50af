import { describe, expect, it } from '@jest/globals'
import { type Clock, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { HealthProblem } from '../../../lib/base/health.js'
import { refusedBusinesses } from '../../../lib/operations/health/problems-of-counts.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { SubscriptionCounts } from '../../../lib/store/port/store.js'
import { createReadOutcomes } from '../../../lib/work/reading/outcomes.js'
import { found_, REFUSED } from '../../support/scenes/reader.js'

const FOUND = found_('purchased', 1)
const MISSING: ReadResult = { kind: 'missing' }
const OUTAGE: ReadResult = { kind: 'outage', code: 'platform_timeout' }

describe('businesses that the platform refuses', () => {
  it('are a problem when they are all, or at least three and more than half', () => {
    expect(words({})).toEqual([])
    expect(words({ active: 3 })).toEqual([])
    expect(words({ active: 1, refused: 1 })).toEqual([
      `the platform refuses the reads of 1 of 1 businesses (platform_refused)`,
    ])
    expect(words({ active: 3, refused: 2 })).toEqual([])
    expect(words({ active: 6, refused: 3 })).toEqual([])
    expect(words({ active: 5, refused: 3 })).toEqual([
      `the platform refuses the reads of 3 of 5 businesses (platform_refused)`,
    ])
  })

  it('M3 are a problem among those that were read lately, when most others were read long before', () => {
    const lately = { active: 174, refused: 42, withoutToken: 42, leaving: 6 }
    expect(words({ ...lately, refusedLately: 36, servedMeanwhile: 36 })).toEqual([])
    expect(words({ ...lately, refusedLately: 36, servedMeanwhile: 35 })).toEqual([
      'the platform refuses the reads of 36 of the 71 businesses that were read lately (token_refused)',
    ])
    expect(words({ ...lately, refusedLately: 2, servedMeanwhile: 0 })).toEqual([])
  })

  it('are reported with the next step', () => {
    const problems = (counts: Partial<SubscriptionCounts>) => refusedBusinesses({ ...NONE, ...counts })
    expect(problems({ active: 3, refused: 3, withoutToken: 2 })).toMatchObject([{ code: 'tokens_refused' }])
    expect(problems({ active: 3, refused: 3, withoutToken: 1 })).toMatchObject([{ code: 'reads_refused' }])
    expect(problems({ active: 3, refused: 3, hidden: 2 })).toMatchObject([{ code: 'records_vanished' }])
  })

  it('D60 are no problem while they are expected to end, unless they are many', () => {
    expect(words({ active: 1, refused: 1, leaving: 1 })).toEqual([])
    expect(words({ active: 2, refused: 2, leaving: 2 })).toEqual([])
    expect(words({ active: 2, refused: 2, leaving: 1 })).toHaveLength(1)
    expect(words({ active: 4, refused: 3, leaving: 3 })).toHaveLength(1)
  })

  it('are a problem if a known subscription is not read any more', () => {
    expect(words({ knownGivenUp: 1 })).toEqual([
      '1 subscriptions that were read before are not read any more',
    ])
  })
})

describe('the refusal that most reads get', () => {
  it.each([
    [{ kind: 'refused', code: 'platform_refused', status: 404 }, '404 platform_refused', 'reads_refused'],
    [{ kind: 'refused', code: 'platform_refused', status: 403 }, '403 platform_refused', 'reads_refused'],
    [{ kind: 'refused', code: 'platform_record_mismatch' }, 'platform_record_mismatch', 'reads_refused'],
    [{ kind: 'token_refused', status: 404 }, '404 token_refused', 'tokens_refused'],
  ] as [ReadResult, string, string][])(
    'is named with its status, under the code of its next step: %j',
    (result, answer, code) => {
      const { note, refusal } = outcomes()
      note('a', FOUND)
      expect(refusal()).toBeUndefined()
      for (const uid of ['b', 'c']) note(uid, result)
      note('d', { kind: 'token_refused' })
      expect(refusedBusinesses({ ...NONE, active: 2, refused: 2 }, refusal())).toMatchObject([
        { code, message: `the platform refuses the reads of 2 of 2 businesses (${answer})` },
      ])
    },
  )
})

describe('reads that fail', () => {
  const WORDS = 'reads fail for 3 of 3 businesses (platform_timeout)'

  it('are a problem after half a minute', () => {
    const { note, problems, pass } = outcomes()
    for (const uid of ['a', 'b', 'c']) note(uid, OUTAGE)
    pass(30 * SECOND - 1)
    expect(problems()).toEqual([])
    pass(1)
    expect(messagesOf(problems())).toEqual([WORDS])
  })

  it('last since the first of them', () => {
    const { note, problems, pass } = outcomes()
    note('a', OUTAGE)
    pass(20 * SECOND)
    for (const uid of ['a', 'b', 'c']) note(uid, OUTAGE)
    pass(10 * SECOND)
    expect(messagesOf(problems())).toEqual([WORDS])
  })

  it('restart their duration after any other result', () => {
    for (const result of [MISSING, REFUSED, FOUND]) {
      const { note, problems, pass } = outcomes()
      note('a', OUTAGE)
      pass(MINUTE)
      note('a', result)
      note('a', OUTAGE)
      expect(problems()).toEqual([])
    }
  })

  it('are named with the most common error, and count for the latest twenty businesses only', () => {
    const { note, problems, pass } = outcomes()
    for (let i = 0; i < 11; i++) note(`good ${i}`, MISSING)
    for (let i = 0; i < 9; i++) note(`bad ${i}`, OUTAGE)
    // Its new read makes it the latest, not the oldest.
    note('good 0', MISSING)
    pass(MINUTE)
    expect(problems()).toEqual([])
    for (let i = 9; i < 11; i++) note(`bad ${i}`, { kind: 'outage', code: 'platform_failing' })
    expect(messagesOf(problems())[0]).toContain('11 of 20 businesses (platform_timeout)')
  })

  it('are not counted if the platform limits the rate, or refuses the whole app', () => {
    const { note, problems, pass } = outcomes()
    note('a', OUTAGE)
    note('a', { kind: 'throttled' })
    pass(MINUTE)
    expect(problems()).toEqual([])
    note('a', OUTAGE)
    note('a', { kind: 'credentials_refused' })
    pass(MINUTE)
    expect(problems()).toMatchObject([{ code: 'credentials_refused' }])
  })
})

function words(counts: Partial<SubscriptionCounts>): string[] {
  return messagesOf(refusedBusinesses({ ...NONE, ...counts }))
}

const NONE: SubscriptionCounts = {
  subscriptions: 0,
  requested: 0,
  oldestRequestMs: null,
  oldestOverdueMs: null,
  givenUp: 0,
  knownGivenUp: 0,
  lapsed: 0,
  active: 0,
  refused: 0,
  hidden: 0,
  withoutToken: 0,
  leaving: 0,
  refusedLately: 0,
  servedMeanwhile: 0,
  stale: 0,
  confirmed: 0,
}

function messagesOf(problems: readonly HealthProblem[]): string[] {
  return problems.map(({ message }) => message)
}

function outcomes() {
  let passed = 0
  const clock = { now: () => passed, monotonic: () => passed } as Clock
  const { note, problems, refusal } = createReadOutcomes({ clock })
  return {
    note,
    refusal,
    problems,
    pass: (ms: number) => {
      passed += ms
    },
  }
}
