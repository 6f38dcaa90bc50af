import { describe, expect, it } from '@jest/globals'
import { problemOfTurnedAway, problemsOfCounts } from '../../../lib/operations/health/problems-of-counts.js'
import type { StoreCounts } from '../../../lib/store/port/store.js'

describe('businesses that the platform refuses', () => {
  it('are a problem when they are all, or at least three and more than half', () => {
    expect(problems({})).toEqual([])
    expect(problems({ active: 3 })).toEqual([])
    expect(problems({ active: 1, refused: 1 })).toEqual([
      'reads_refused: the platform refuses the reads of 1 of 1 businesses (platform_refused)',
    ])
    expect(problems({ active: 3, refused: 2 })).toEqual([])
    expect(problems({ active: 6, refused: 3 })).toEqual([])
    expect(problems({ active: 5, refused: 3 })).toEqual([
      'reads_refused: the platform refuses the reads of 3 of 5 businesses (platform_refused)',
    ])
  })

  it('M3 are a problem among those that were read lately, when most others were read long before', () => {
    const lately = { active: 174, refused: 42, withoutToken: 42, leaving: 6 }
    expect(problems({ ...lately, refusedLately: 36, servedMeanwhile: 36 })).toEqual([])
    expect(problems({ ...lately, refusedLately: 36, servedMeanwhile: 35 })).toEqual([
      'tokens_refused: the platform refuses the reads of 36 of the 71 businesses that were read lately (token_refused)',
    ])
    expect(problems({ ...lately, refusedLately: 2, servedMeanwhile: 0 })).toEqual([])
    expect(problems({ ...lately, refusedLately: 3, servedMeanwhile: 0 })).toHaveLength(1)
  })

  it.each([
    [{ withoutToken: 1 }, 'reads_refused: the platform refuses the reads of ALL (platform_refused)'],
    [{ withoutToken: 2 }, 'tokens_refused: the platform refuses the reads of ALL (token_refused)'],
    [{ hidden: 2 }, 'reads_refused: the platform refuses the reads of ALL (platform_refused)'],
    [{ hidden: 3 }, 'records_vanished: the platform no longer shows the subscriptions of ALL'],
  ])('are reported by what half of them, or most, have in common: %j', (counts, problem) => {
    const words = problem.replace('ALL', '4 of 4 businesses')
    expect(problems({ active: 4, refused: 4, ...counts })).toEqual([words])
  })

  it.each([
    ['platform_refused', 404, 'reads_refused', '404 platform_refused'],
    ['platform_record_mismatch', undefined, 'reads_refused', 'platform_record_mismatch'],
    ['token_refused', 404, 'tokens_refused', '404 token_refused'],
  ])('are named with the refusal that this process knows: %s %s', (code, status, problem, answer) => {
    expect(problems({ active: 2, refused: 2, withoutToken: 1 }, { code, status })).toEqual([
      `${problem}: the platform refuses the reads of 2 of 2 businesses (${answer})`,
    ])
  })

  it('D60 are no problem while they are expected to end, unless they are many', () => {
    expect(problems({ active: 1, refused: 1, leaving: 1 })).toEqual([])
    expect(problems({ active: 2, refused: 2, leaving: 2 })).toEqual([])
    expect(problems({ active: 2, refused: 2, leaving: 1 })).toHaveLength(1)
    expect(problems({ active: 4, refused: 3, leaving: 3 })).toHaveLength(1)
  })
})

describe('the other counts of the store', () => {
  it.each<[Partial<StoreCounts>, string]>([
    [{ knownGivenUp: 1 }, 'reads_given_up: 1 subscriptions that were read before are not read any more'],
    [{ dead: 1 }, 'entries_dead: 1 journal entries are dead'],
    [{ retrying: 2 }, 'entries_retrying: 2 journal entries are tried again because a handler failed'],
    [
      { failedSearches: 3, askedSearches: 10_000 },
      'find_subscriptions_failed: the search for subscriptions fails for 3 of 10000 businesses',
    ],
    [
      { failedSearches: 1, askedSearches: 1 },
      'find_subscriptions_failed: the search for subscriptions fails for 1 of 1 businesses',
    ],
    [
      { unsearched: 2 },
      'searches_full: 2 questions of the last hour made no search for subscriptions, because there are enough',
    ],
    [
      { lapsed: 1 },
      'reads_end_process: the process ended each time it read 1 subscriptions, so their reads are put off',
    ],
    [
      { stale: 3, confirmed: 2 },
      'answers_stale: the answers of 3 businesses are stale, and those of 2 are confirmed',
    ],
    [
      { unannouncedFirstRecords: 3, recentFirstRecords: 5 },
      'events_missing: 3 of the last 5 first records came without an event this week',
    ],
    [
      { unannouncedChanges: 3, recentChanges: 3 },
      'events_missing: 3 of the last 3 changes of known subscriptions came without an event this week',
    ],
    [
      { unannouncedFirstRecords: 3, recentFirstRecords: 4, unannouncedChanges: 4, recentChanges: 7 },
      'events_missing: 3 of the last 4 first records, and 4 of the last 7 changes of known subscriptions came without an event this week',
    ],
  ])('are a problem: %j', (counts, problem) => {
    expect(problems(counts)).toEqual([problem])
  })

  it.each<Partial<StoreCounts>>([
    { stale: 3, confirmed: 3 },
    { stale: 2, confirmed: 1 },
    { unannouncedFirstRecords: 2, recentFirstRecords: 2 },
    { failedSearches: 2, askedSearches: 3 },
    { unannouncedChanges: 3, recentChanges: 6 },
  ])('are no problem while they are few, or half: %j', (counts) => {
    expect(problems(counts)).toEqual([])
  })
})

/** Each problem as `code: message`. */
function problems(counts: Partial<StoreCounts>, refusal?: Parameters<typeof problemsOfCounts>[1]): string[] {
  return problemsOfCounts({ ...NONE, ...counts }, refusal).map(({ code, message }) => `${code}: ${message}`)
}

describe('deliveries beyond what is kept or read', () => {
  const nothing = { refused: 0, deleted: 0, counted: [] }

  it.each([
    [{ refused: 2 }, 'within the last hour 2 deliveries got 503'],
    [{ deleted: 3 }, 'within the last hour 3 finished entries were deleted before their retention ended'],
    [
      { counted: [['a/b', 4] as const, ['c', 5] as const] },
      'within the last hour unrecognised ones were only counted: 4 of "a/b", 5 of "c"',
    ],
    [
      { refused: 1, deleted: 1, counted: [['c', 1] as const] },
      'within the last hour 1 deliveries got 503; 1 finished entries were deleted before their retention ended; unrecognised ones were only counted: 1 of "c"',
    ],
  ])('are a problem that says what became of them: %j', (turnedAway, message) => {
    expect(problemOfTurnedAway({ ...nothing, ...turnedAway })).toMatchObject([
      { code: 'deliveries_turned_away', message },
    ])
  })

  it('are none when there were none', () => {
    expect(problemOfTurnedAway(null)).toEqual([])
  })
})

const NONE: StoreCounts = {
  pending: 0,
  retrying: 0,
  oldestPendingMs: null,
  dead: 0,
  oldestMissedMs: null,
  unrecognised: 0,
  recentChanges: 0,
  unannouncedChanges: 0,
  recentFirstRecords: 0,
  unannouncedFirstRecords: 0,
  subscriptions: 0,
  requested: 0,
  oldestRequestMs: null,
  oldestOverdueMs: null,
  askedSearches: 0,
  failedSearches: 0,
  unsearched: 0,
  oldestSearchMs: null,
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
