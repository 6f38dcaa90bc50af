import { describe, expect, it } from '@jest/globals'
import { DAY, SECOND } from '../../lib/base/clock.js'
import { decide } from '../../lib/entitlement/decide.js'
import { createDecisionCache } from '../../lib/entitlement/decision-cache.js'
import { record, ruled, subscriptionOf } from '../support/scenes/reader.js'

const MAX_STALE_MS = 60 * SECOND

describe('a cached decision', () => {
  it('does not live longer when the wall clock is set back', () => {
    const { cache, decision, pass, leap } = decisions()
    cache.set('b', decision('purchased'), true)
    leap(-2 * DAY)
    expect([cache.fresh('b')?.decision.entitled, cache.lastKnown('b').entitled]).toEqual([true, true])
    pass(MAX_STALE_MS + 1)
    expect([cache.fresh('b'), cache.lastKnown('b').entitled]).toEqual([undefined, false])
  })
})

describe('the answer while the store is down', () => {
  it('is the last decision until its evidence is too old', () => {
    const { cache, decision, pass } = decisions()
    cache.set('b', decision('purchased', 20 * SECOND), true)
    pass(MAX_STALE_MS - 20 * SECOND)
    expect(cache.lastKnown('b')).toMatchObject({ entitled: true, stale: true })
    pass(1)
    expect(cache.lastKnown('b')).toMatchObject({ entitled: false, known: false, reason: 'store_unavailable' })
  })

  it('is no for a business that is not in memory or was never read', () => {
    const { cache, decision } = decisions()
    expect(cache.lastKnown('b')).toMatchObject({ business_uid: 'b', reason: 'store_unavailable' })
    cache.set('b', decision(null), true)
    expect(cache.fresh('b')).toBeDefined()
    expect(cache.lastKnown('b')).toMatchObject({ business_uid: 'b', reason: 'store_unavailable' })
  })
})

describe('a notification', () => {
  it('ends the freshness of an unknown business, and has no effect on a business that is not in memory', () => {
    const { cache, decision } = decisions()
    cache.set('nobody', decision(undefined), true)
    cache.expire('never seen')
    expect(cache.fresh('nobody')).toBeDefined()
    cache.expire('nobody')
    expect(cache.fresh('nobody')).toBeUndefined()
  })

  it.each(['expire', 'forget'] as const)(
    'of one business or of all makes the cache %s known and unknown ones',
    (how) => {
      for (const named of [true, false]) {
        const { cache, decision } = decisions()
        cache.set('b', decision('purchased'), true)
        cache.set('nobody', decision(undefined), true)
        for (const business of named ? ['b', 'nobody'] : [null]) cache[how](business)
        expect([cache.fresh('b'), cache.fresh('nobody')]).toEqual([undefined, undefined])
        expect(cache.lastKnown('b').entitled).toBe(how === 'expire')
      }
    },
  )
})

describe('the bounds of the cache', () => {
  it('apply to known and to unknown businesses separately', () => {
    const { cache, decision } = decisions(2)
    for (const name of ['b', 'c']) cache.set(name, decision('purchased'), true)
    for (const name of ['x', 'y', 'z']) cache.set(name, decision(undefined), true)
    expect(['b', 'c', 'x', 'y', 'z'].filter((name) => cache.fresh(name))).toEqual(['b', 'c', 'y', 'z'])
    cache.set('d', decision('purchased'), true)
    expect(['b', 'c', 'd', 'y', 'z'].filter((name) => cache.fresh(name))).toEqual(['c', 'd', 'y', 'z'])
  })

  it('remove the earlier answer of a business that became known or unknown', () => {
    const { cache, decision } = decisions(1)
    cache.set('b', decision('purchased'), true)
    cache.set('b', decision(undefined), true)
    expect(cache.fresh('b')?.decision.entitled).toBe(false)
    cache.set('b', decision('purchased'), true)
    expect(cache.fresh('b')?.decision.entitled).toBe(true)
    cache.set('c', decision('purchased'), true)
    expect(cache.fresh('b')).toBeUndefined()
  })
})

/** A cache, and a clock whose wall time can leap. */
function decisions(maxEntries?: number) {
  let monotonic = 1_000
  let wall = Date.UTC(2030, 0, 1)
  const cache = createDecisionCache({
    maxStaleMs: MAX_STALE_MS,
    maxEntries,
    clock: {
      now: () => wall,
      monotonic: () => monotonic,
      setTimeout: () => undefined,
      clearTimeout: () => {},
    },
  })
  return {
    cache,
    pass(ms: number) {
      monotonic += ms
      wall += ms
    },
    leap(ms: number) {
      wall += ms
    },
    /** A decision for a business with one subscription; null: it was never read; undefined: there is none. */
    decision(state: string | null | undefined, readMsAgo = 0) {
      const subscription = subscriptionOf({
        record: state ? record(state, 1) : null,
        state: state ?? null,
        readAt: state ? wall - readMsAgo : null,
        requestedAt: null,
        pending: false,
      })
      const rules = {
        purchasableUids: [],
        entitledWhen: ruled(({ purchase_state }) => purchase_state === 'purchased'),
        maxStaleMs: MAX_STALE_MS,
      }
      return decide('b', state === undefined ? [] : [subscription], rules, wall)
    },
  }
}
