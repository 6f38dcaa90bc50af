import { describe, expect, it } from '@jest/globals'
import { HOUR, SECOND } from '../../lib/base/clock.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { createAnswers, inState } from '../support/scenes/answers.js'
import { record, subscriptionOf } from '../support/scenes/reader.js'

describe('the wait of a question for a read', () => {
  it('counts from the delivery, not from the question', async () => {
    const { clock, ask } = asked({ requestedMsAgo: 1_500 })
    const question = ask()
    await clock.advance(499)
    expect(question.answer).toBeUndefined()
    await clock.advance(1)
    expect(question.answer).toBe(false)
  })

  it('lasts the whole time for a delivery that came just now, or has a time in the future', async () => {
    for (const requestedMsAgo of [0, -SECOND]) {
      const { clock, ask } = asked({ requestedMsAgo })
      const question = ask()
      await clock.advance(1_999)
      expect(question.answer).toBeUndefined()
      await clock.advance(1)
      expect(question.answer).toBe(false)
    }
  })

  it.each([
    ['was requested longer ago', { requestedMsAgo: 2 * SECOND }],
    ['has failed', { requestedMsAgo: 0, failure: 'platform_timeout' }],
    ['is not due any more', { requestedMsAgo: 0, pending: false }],
    ['was never requested', { requestedMsAgo: null }],
    [
      'verifies a record that was shown before',
      { requestedMsAgo: 0, pending: false, verifying: true, record: record('canceled', 1) },
    ],
  ])('is zero when the read %s', async (_what, given) => {
    const { clock, ask } = asked(given)
    const question = ask()
    await clock.rest()
    expect(question.answer).toBe(false)
  })

  it('is zero when another subscription of the business gives access and this one was never shown', async () => {
    const { clock, ask, have } = asked({ requestedMsAgo: 0 })
    const unread = {
      record: null,
      state: null,
      readAt: null,
      requestedAt: clock.now(),
      owedSince: clock.now(),
    }
    have([
      subscriptionOf({ ...confirmed, readAt: clock.now(), requestedAt: null, pending: false }),
      subscriptionOf({ ...unread, subscriptionUid: 'new', pending: false, verifying: true }),
    ])
    const question = ask()
    await clock.rest()
    expect(question.answer).toBe(true)
  })

  it('counts from the first request that has no answer, however many follow', async () => {
    const clock = Date.UTC(2030, 0, 1)
    const { ask, ...virtual } = asked({ requestedMsAgo: 0, owedSince: clock - 1_900 })
    const question = ask()
    await virtual.clock.advance(99)
    expect(question.answer).toBeUndefined()
    await virtual.clock.advance(1)
    expect(question.answer).toBe(false)
  })

  describe('of a business that may use the app, if requests and reads follow each other', () => {
    it.each([
      ['shown', SECOND],
      ['refused', HOUR / 2],
    ])('lasts waitMs in all, while the reads are %s', async (_how, readMsAgo) => {
      const { clock, ask, change } = asked({ requestedMsAgo: 0, ...confirmed })
      for (const expectedMs of [2_000, 0, 0]) {
        const begun = clock.now()
        change({ readAt: begun - readMsAgo, triedAt: begun - SECOND, owedSince: begun })
        const question = ask()
        await clock.rest()
        if (expectedMs > 0) {
          await clock.advance(expectedMs - 1)
          expect(question.answer).toBeUndefined()
          await clock.advance(1)
        }
        expect(question.answer).toBe(true)
      }
    })

    it.each([
      ['is five seconds after the last read', -5_000, {}, true],
      ['is less than that after the last read', -4_999, {}, false],
      ['follows an answer that was no', -1, inState('suspended'), true],
    ])('begins again, or not, when the request %s', async (_when, triedAt, between, again) => {
      const { clock, ask, change } = asked({ requestedMsAgo: 0, ...confirmed })
      const readAt = clock.now() - SECOND
      change({ readAt, triedAt: readAt, owedSince: clock.now() })
      const first = ask()
      await clock.advance(2_000)
      expect(first.answer).toBe(true)
      change({ ...between, pending: false })
      ask()
      await clock.rest()
      change({ ...confirmed, pending: true, triedAt: clock.now() + triedAt, owedSince: clock.now() })
      const second = ask()
      await clock.rest()
      expect(second.answer).toBe(again ? undefined : true)
    })
  })

  it.each([
    ['purchased', 0],
    ['suspended', 2_000],
  ])(
    'A227 lasts for a further subscription of a business that was shown before only if the answer is no: %s, %i ms',
    async (state, waitMs) => {
      const { clock, ask, have } = asked({ requestedMsAgo: 0 })
      const now = clock.now()
      const further = {
        record: null,
        subscriptionUid: 'made up',
        pending: true,
        requestedAt: now,
        owedSince: now,
      }
      have([
        subscriptionOf({ ...inState(state), readAt: now, pending: false }),
        subscriptionOf({ ...further, failure: null }),
      ])
      const question = ask()
      await clock.rest()
      expect(question.answer).toBe(waitMs === 0 ? true : undefined)
      await clock.advance(waitMs)
      expect(question.answer).toBe(state === 'purchased')
    },
  )

  it('ends when the marketplace closes, after a last look at its store', async () => {
    const { clock, ask, close, fail, subscribed } = asked({ requestedMsAgo: 0 })
    const question = ask()
    await clock.advance(100)
    expect([question.answer, subscribed()]).toEqual([undefined, 1])
    fail()
    close()
    await clock.rest()
    expect([question.answer, subscribed()]).toEqual([false, 0])
  })

  it('puts a read that waits behind others first, also without searches, but not for a person who looks', async () => {
    const { clock, ask, explain, first, change } = asked({ requestedMsAgo: 2 * SECOND })
    change({ refreshAt: clock.now() - 2 * SECOND })
    await explain('b', { search: false })
    expect(first()).toBe(0)
    ask()
    await clock.rest()
    expect(first()).toBe(1)
  })

  it('lasts for a subscription that was never shown while it is being verified', async () => {
    const { clock, ask } = asked({ requestedMsAgo: 0, pending: false, verifying: true })
    const question = ask()
    await clock.advance(1_999)
    expect(question.answer).toBeUndefined()
    await clock.advance(1)
    expect(question.answer).toBe(false)
  })
})

const confirmed = inState('purchased')

/** A business with one announced subscription that was never read. A question about it waits at most two seconds. */
function asked({ requestedMsAgo, ...given }: { requestedMsAgo: number | null } & Partial<Subscription>) {
  const more = (now: number) => {
    const requestedAt = requestedMsAgo === null ? null : now - requestedMsAgo
    const unread = { record: null, state: null, readAt: null, pending: true, owedSince: requestedAt }
    return { ...unread, ...given, requestedAt }
  }
  const answers = createAnswers({ more, rules: { maxStaleMs: HOUR }, waitMs: 2 * SECOND })
  return {
    ...answers,
    /** Commits a change of the subscription. */
    change(changes: Partial<Subscription>) {
      answers.change(changes)
      answers.notify({ kind: 'requested', businessUid: 'b' })
    },
    ask() {
      const question: { answer?: boolean } = {}
      answers.isEntitled('b').then((answer) => {
        question.answer = answer
      })
      return question
    },
  }
}
