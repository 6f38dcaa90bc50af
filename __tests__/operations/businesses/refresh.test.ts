import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { createRefreshAndWait } from '../../../lib/operations/businesses/refresh.js'
import type { Search, Subscription } from '../../../lib/store/port/store.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { subscriptionOf } from '../../support/scenes/reader.js'

const PENDING: Search = {
  isAnswered: false,
  pending: true,
  isAsked: true,
  wantedAt: 0,
  answeredAt: null,
  nextAt: null,
  failure: null,
}

describe('businesses.refresh', () => {
  it('J100 waits for the read of what a search has found that ended between its two queries', async () => {
    const clock = createVirtualClock({ isBusy: () => false })
    let stored: Subscription[] = []
    let looks = 0
    const refresh = createRefreshAndWait({
      store: {
        requestRefresh: async () => {},
        subscriptionsOf: async () => stored,
        readFirst: async () => {},
        subscribe: () => () => {},
      },
      explain: async () => stored[0]?.readAt,
      timeoutMs: 5 * SECOND,
      searches: {
        requestSearch: async () => true,
        async searchOf() {
          if (looks++ === 0) return PENDING
          stored = [subscriptionOf()]
          return { ...PENDING, isAnswered: true, pending: false }
        },
      },
      rules: { purchasableUids: [] },
      clock: clock.forProcess(),
    })
    const refreshed = refresh('b')
    await clock.advance(SECOND)
    stored = [subscriptionOf({ readAt: 1, settledGeneration: 1 })]
    await clock.advance(SECOND)
    expect(await refreshed).toBe(1)
  })
})
