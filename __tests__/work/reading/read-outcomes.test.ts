import { describe, expect, it } from '@jest/globals'
import { type Clock, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { HealthProblem } from '../../../lib/base/health.js'
import type { SearchResult } from '../../../lib/platform/find-subscriptions.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { createReadOutcomes } from '../../../lib/work/reading/outcomes.js'
import { found_, REFUSED } from '../../support/scenes/reader.js'

const FOUND = found_('purchased', 1)
const MISSING: ReadResult = { kind: 'missing' }
const OUTAGE: ReadResult = { kind: 'outage', code: 'platform_timeout' }

describe('the refusal that most reads get', () => {
  it.each<[ReadResult, string, number | undefined]>([
    [{ kind: 'refused', code: 'platform_refused', status: 404 }, 'platform_refused', 404],
    [{ kind: 'refused', code: 'platform_refused', status: 403 }, 'platform_refused', 403],
    [{ kind: 'refused', code: 'platform_record_mismatch' }, 'platform_record_mismatch', undefined],
    [{ kind: 'token_refused', status: 404 }, 'token_refused', 404],
  ])('has its code and status: %j', (result, code, status) => {
    const { note, refusal } = outcomes()
    note('a', FOUND)
    expect(refusal()).toBeUndefined()
    note('b', { kind: 'token_refused' })
    for (const uid of ['c', 'd']) note(uid, result)
    expect(refusal()).toMatchObject({ code, status })
  })

  it('is one of a subscription that was never read only if no other is refused', () => {
    const { note, refusal } = outcomes()
    note('a', { kind: 'refused', code: 'platform_refused', status: 404 }, true)
    note('b', FOUND)
    expect(refusal()).toMatchObject({ status: 404 })
    note('b', { kind: 'refused', code: 'platform_refused', status: 403 })
    expect(refusal()).toMatchObject({ status: 403 })
  })
})

describe('refused credentials', () => {
  it('hold up reads until the platform has answered otherwise, which a search that failed does not show', () => {
    const { noteSearch, areHeldUp, pass } = outcomes()
    noteSearch({ kind: 'credentials_refused' } as SearchResult, 0)
    pass(MINUTE)
    noteSearch({ kind: 'failed', code: 'find_subscriptions_failed' } as SearchResult, 0)
    expect(areHeldUp()).toBe(true)
    noteSearch({ kind: 'found', subscriptionUids: [] }, 0)
    expect(areHeldUp()).toBe(false)
  })
})

describe('the pause of all reads', () => {
  it.each<[ReadResult, number, string]>([
    [{ kind: 'throttled', retryAfterMs: MINUTE }, MINUTE, 'reads are paused: the platform limits our rate'],
    [{ kind: 'throttled' }, SECOND, 'reads are paused: the platform limits our rate'],
    [{ kind: 'credentials_refused' }, 10 * SECOND, "the platform refuses the app's credentials"],
  ])('lasts as long as the platform asks, or its default: %j %d ms', (result, lasts, message) => {
    const { note, problems, isPaused, pass } = outcomes()
    expect(isPaused()).toBe(false)
    note('a', result)
    // A read that began before.
    note('b', FOUND)
    pass(lasts - 1)
    expect([isPaused(), messagesOf(problems())]).toEqual([true, [message]])
    pass(1)
    expect([isPaused(), problems()]).toEqual([false, []])
  })

  it('is not shortened by a later reply', () => {
    const { note, isPaused, pass } = outcomes()
    note('a', { kind: 'throttled', retryAfterMs: MINUTE })
    note('b', { kind: 'throttled' })
    pass(MINUTE - 1)
    expect(isPaused()).toBe(true)
  })
})

describe('reads that fail', () => {
  const WORDS = 'reads fail for 3 of 3 businesses (platform_timeout)'

  it('of what was never read do not count once a read finds a record, beside those that were answered', () => {
    const { note, problems, pass } = outcomes()
    note('a', MISSING, true)
    for (const uid of ['b', 'c', 'd']) note(uid, OUTAGE, true)
    pass(30 * SECOND)
    expect(problems()).toHaveLength(1)
    note('e', FOUND)
    expect(problems()).toEqual([])
  })

  it('of known subscriptions are not hidden by quick denials of made-up ones, nor the other way round', () => {
    for (const isUnread of [undefined, true]) {
      const { note, problems, pass, refusal } = outcomes()
      for (const uid of ['a', 'b', 'c']) note(uid, OUTAGE, isUnread)
      pass(30 * SECOND)
      for (let i = 0; i < 100; i++) note(`made up ${i}`, MISSING, !isUnread)
      expect([messagesOf(problems()), refusal()]).toEqual([[WORDS], undefined])
    }
  })

  it('of what was never read count no more when the platform shows a record, of the same business or another', () => {
    for (const uid of ['a', 'b']) {
      const { note, problems, pass } = outcomes()
      note('a', OUTAGE, true)
      pass(30 * SECOND)
      expect(problems()).toHaveLength(1)
      note(uid, FOUND)
      expect(problems()).toEqual([])
    }
  })

  it('count as long as their next try may take: after that another process made it', () => {
    for (const isUnread of [undefined, true])
      for (const failingMs of [0, MINUTE, 10 * MINUTE]) {
        const { note, problems, pass } = outcomes()
        note('a', OUTAGE, isUnread)
        pass(failingMs)
        note('a', OUTAGE, isUnread)
        pass(2 * failingMs + MINUTE)
        expect(problems()).toHaveLength(1)
        pass(1)
        expect(problems()).toEqual([])
      }
  })

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
    note('bad', { kind: 'outage', code: 'platform_failing' })
    for (let i = 0; i < 8; i++) note(`bad ${i}`, OUTAGE)
    // Its new read makes it the latest, not the oldest.
    note('good 0', MISSING)
    pass(MINUTE)
    expect(problems()).toEqual([])
    for (let i = 8; i < 10; i++) note(`bad ${i}`, OUTAGE)
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
    // Until a read gets another answer, which an outage is not.
    note('a', OUTAGE)
    pass(SECOND * 20)
    expect(problems()).toMatchObject([{ code: 'credentials_refused' }])
  })
})

function messagesOf(problems: readonly HealthProblem[]): string[] {
  return problems.map(({ message }) => message)
}

function outcomes() {
  let passed = 0
  // A monotonic clock may begin with any number.
  const clock = { now: () => passed, monotonic: () => 1_000 * MINUTE + passed } as Clock
  return {
    ...createReadOutcomes({ clock }),
    pass: (ms: number) => {
      passed += ms
    },
  }
}
