import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../lib/base/clock.js'
import type { Decision } from '../../lib/entitlement/decide.js'
import { createDecisionLoads, type Searches } from '../../lib/entitlement/load-decision.js'
import type { Search, Subscription } from '../../lib/store/port/store.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { ruled, subscriptionOf } from '../support/scenes/reader.js'
import { gate } from '../support/until.js'

const ANSWERED: Search = {
  isAnswered: true,
  pending: false,
  isAsked: true,
  wantedAt: 0,
  answeredAt: 0,
  nextAt: null,
  failure: null,
}

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
  ])(
    'whose repeated query is outdated by commits (superseded: %j) is cached %d times',
    async (commits, cached) => {
      const { clock, load, loads, end, kept } = loading()
      const loaded = load()
      loads.outdate('b', true)
      end(0)
      await clock.rest()
      for (const isSuperseded of commits) loads.outdate('b', isSuperseded)
      end(1)
      await loaded
      expect(kept).toHaveLength(cached)
    },
  )

  it('A236 waits for two queries although commits outdate both, and who asks after the second commit gets a later answer', async () => {
    const { clock, load, loads, queries, end } = loading()
    const order: string[] = []
    const asks = (who: string) => load().then(() => order.push(who))
    const first = asks('first')
    loads.outdate('b', false)
    const second = asks('second')
    expect(queries()).toBe(1)
    end(0)
    await clock.rest()
    expect(queries()).toBe(2)
    const third = asks('third')
    loads.outdate(null, false)
    // The query under way may lack that commit.
    const fourth = asks('fourth')
    const fifth = asks('fifth')
    expect(queries()).toBe(3)
    end(1)
    await Promise.all([first, second, third])
    expect(order).toEqual(['first', 'second', 'third'])
    end(2)
    await Promise.all([fourth, fifth])
    expect(queries()).toBe(3)
    // None is under way any more.
    const last = load()
    end(3)
    await last
    expect(queries()).toBe(4)
  })

  it('A236 outdates the earlier loads too: none of them is cached after a commit that supersedes its answer', async () => {
    const { clock, load, loads, end, kept } = loading()
    const first = load()
    loads.outdate('b', false)
    end(0)
    await clock.rest()
    loads.outdate('b', false)
    const second = load()
    loads.outdate('b', true)
    end(1)
    await first
    expect(kept).toHaveLength(0)
    end(2)
    await clock.rest()
    end(3)
    await second
    expect(kept).toHaveLength(1)
  })

  it.each([
    ['answered', ANSWERED],
    ['deleted, because what it has found was read', undefined],
  ])('J100 knows what a search has found that was %s between its two queries', async (_what, search) => {
    let stored: Subscription[] = []
    const { loads, load } = loading({
      subscriptionsOf: async () => stored,
      searches: {
        async searchOf() {
          stored = [subscriptionOf()]
          return search
        },
      },
    })
    expect(await load()).toMatchObject({ reason: 'not_read_yet', known: false })
    expect(await loads.soFar('b')).toMatchObject({ reason: 'not_read_yet' })
  })
})

/** Loads of one business from a store that answers when the test lets it. */
function loading({
  subscriptionsOf,
  searches,
}: {
  subscriptionsOf?: () => Promise<Subscription[]>
  searches?: Searches
} = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const answers: ReturnType<typeof gate<Subscription[]>>[] = []
  const kept: Decision[] = []
  const loads = createDecisionLoads({
    store: {
      readFirst: async () => {},
      subscriptionsOf() {
        if (subscriptionsOf) return subscriptionsOf()
        const answer = gate<Subscription[]>()
        answers.push(answer)
        return answer.opened
      },
    },
    rules: { purchasableUids: [], entitledWhen: ruled(() => true), maxStaleMs: 72 * 3_600_000 },
    waitMs: 0,
    cache: {
      set: (_business, decision) => void kept.push(decision),
      lastKnown: () => ({ entitled: false }) as Decision,
    },
    clock: clock.forProcess(),
    during: (query) => query,
    searches,
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
