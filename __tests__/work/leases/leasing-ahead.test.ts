import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR } from '../../../lib/base/clock.js'
import type { ClaimLanes, LaneClaim, LaneFinish } from '../../../lib/store/port/store.js'
import { createDispatcher } from '../../../lib/work/handling/dispatcher.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

const CONCURRENCY = 2
const HANDLER_MS = 4

describe('lanes that are leased ahead', () => {
  it('are leased while every slot is busy, so that no slot waits for a claim', async () => {
    const { advance, dispatcher, claims } = scene(HANDLER_MS)
    dispatcher.start()
    await advance(400)
    const later = claims.slice(3)
    expect(later.length).toBeGreaterThan(3)
    expect(later.map(({ busy }) => busy)).toEqual(later.map(() => CONCURRENCY))
  })

  it('do not exist while handlers are slow', async () => {
    const { advance, dispatcher, claims } = scene(100)
    dispatcher.start()
    await advance(2_000)
    expect(claims.length).toBeGreaterThan(10)
    expect(claims.every(({ busy, lanes }) => busy + lanes <= CONCURRENCY)).toBe(true)
  })
})

/** A store with any number of lanes of one entry each. For each claim it notes the running handlers and the limit. */
function scene(handlerMs: number) {
  const time = createVirtualClock({ isBusy: () => false })
  const clock = time.forProcess()
  const claims: { busy: number; lanes: number }[] = []
  let busy = 0
  let count = 0
  const store = {
    async claimLanes({ limit }: ClaimLanes): Promise<LaneClaim[]> {
      const lanes = Math.min(limit, 100)
      claims.push({ busy, lanes })
      return Array.from({ length: lanes }, () => laneOf(`k${++count}`))
    },
    finishLanes: async (finishes: readonly LaneFinish[]) => finishes.map(({ id }) => id),
    renewLane: async () => true,
  }
  const handlers = createHandlers()
  handlers.onAny(async () => {
    busy++
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, handlerMs))
    busy--
  })
  const dispatcher = createDispatcher({
    store,
    handlers,
    payloadOf: ({ id }) => ({ id }),
    marketplace: () => undefined,
    timeoutMs: HOUR,
    retryDelaysMs: [],
    retentionMs: DAY,
    concurrency: CONCURRENCY,
    leaseMs: HOUR,
    renewEveryMs: HOUR,
    pollMs: HOUR,
    clock,
    onDead() {},
    onError(error) {
      throw error
    },
  })
  return { advance: time.advance, dispatcher, claims }
}

function laneOf(key: string): LaneClaim {
  return {
    id: key,
    leaseToken: 'held',
    lapses: 0,
    entries: [
      {
        id: key,
        kind: 'event',
        name: 'x',
        key,
        businessUid: null,
        subscriptionUid: null,
        payload: '{}',
        issues: null,
        receivedAt: 0,
        attempt: 1,
      },
    ],
  }
}
