import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../lib/base/clock.js'
import type { Decision } from '../../lib/entitlement/decide.js'
import { createDecisionLoads } from '../../lib/entitlement/load-decision.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { gate } from '../support/until.js'

describe('a load of a decision', () => {
  it('queries an unresponsive database once a second, and answers from memory in between', async () => {
    const { clock, load, queries, end } = loading()
    const first = load()
    await clock.advance(SECOND)
    end(0, new Error('no answer'))
    await first
    await load()
    await clock.advance(SECOND - 1)
    await load()
    expect(queries()).toBe(1)
    await clock.advance(1)
    const later = load()
    end(1)
    await later
    expect(queries()).toBe(2)
  })

  it('queries again at once after an error that came soon', async () => {
    const { clock, load, queries, end } = loading()
    const first = load()
    await clock.advance(SECOND - 1)
    end(0, new Error('a deadlock'))
    await first
    const second = load()
    end(1)
    await second
    expect(queries()).toBe(2)
  })

  it('queries again at once after an error that came soon, however long the query before it took', async () => {
    const { clock, load, loads, queries, end } = loading()
    const first = load()
    await clock.advance(SECOND - 1)
    loads.outdate('b', false)
    end(0)
    await clock.advance(SECOND - 1)
    end(1, new Error('a deadlock'))
    await first
    const second = load()
    end(2)
    await second
    expect(queries()).toBe(3)
  })

  it.each([
    [[true, false], 0],
    [[false, true], 0],
    [[false], 1],
    [[], 1],
  ])('outdated by commits under way (superseded: %j) is cached %d times', async (commits, cached) => {
    const { clock, load, loads, end, kept } = loading()
    const loaded = load()
    // The question is so late that it gets this answer, and no other query follows.
    await clock.advance(2 * SECOND)
    for (const isSuperseded of commits) loads.outdate('b', isSuperseded)
    end(0)
    await loaded
    expect(kept).toHaveLength(cached)
  })
})

/** Loads of one business from a store that answers when the test lets it. */
function loading() {
  const clock = createVirtualClock({ isBusy: () => false })
  const answers: ReturnType<typeof gate<Subscription[]>>[] = []
  const kept: Decision[] = []
  const loads = createDecisionLoads({
    store: {
      readFirst: async () => {},
      subscriptionsOf() {
        const answer = gate<Subscription[]>()
        answers.push(answer)
        return answer.opened
      },
    },
    rules: { purchasableUids: [], entitledWhen: () => true, maxStaleMs: 72 * 3_600_000 },
    waitMs: 0,
    cache: {
      set: (_business, decision) => void kept.push(decision),
      lastKnown: () => ({ entitled: false }) as Decision,
    },
    clock: clock.forProcess(),
    during: (query) => query,
  })
  return {
    clock,
    loads,
    load: () => loads.load('b'),
    queries: () => answers.length,
    kept,
    end: (query: number, error?: Error) => (error ? answers[query]?.fail(error) : answers[query]?.open([])),
  }
}
