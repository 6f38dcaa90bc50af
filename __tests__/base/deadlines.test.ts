import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { createDeadlines } from '../../lib/base/deadlines.js'
import { createDoors } from '../../lib/express/doors.js'
import type { ReceiverOptions } from '../../lib/express/take-delivery.js'
import { onCleanUp } from '../support/clean-up.js'
import { RECEIVER_DEFAULTS } from '../support/defaults.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { until } from '../support/until.js'

const LIMIT = 1_000

describe('deadlines that share one timer', () => {
  it('expire at their limit, neither before nor after, and in order', async () => {
    const { clock, late, deadlines } = setUp()
    for (const item of ['a', 'b', 'c', 'd']) {
      deadlines.start(item)
      await clock.advance(300)
    }
    // a, b, c and d were started at 0, 300, 600 and 900; the time is 1,200 now.
    expect(late).toEqual([['a', 1_000]])
    await clock.advance(99)
    expect(late).toHaveLength(1)
    await clock.advance(1)
    expect(late.at(-1)).toEqual(['b', 1_300])
    await clock.advance(10 * LIMIT)
    expect(late.slice(2)).toEqual([
      ['c', 1_600],
      ['d', 1_900],
    ])
  })

  it('skip an item that was stopped in time, at any position', async () => {
    const { clock, late, deadlines } = setUp()
    for (const item of ['a', 'b', 'c', 'd']) {
      deadlines.start(item)
      await clock.advance(100)
    }
    deadlines.stop('a')
    deadlines.stop('c')
    await clock.advance(10 * LIMIT)
    expect(late).toEqual([
      ['b', 1_100],
      ['d', 1_300],
    ])
    deadlines.stop('d')
    expect(late).toHaveLength(2)
  })

  it('start again for an item that is started while others expire', async () => {
    const again: string[] = []
    const { clock, late, timers, deadlines } = setUp((item) => {
      if (again.length < 2) {
        again.push(item)
        deadlines.start(item)
      }
    })
    deadlines.start('a')
    await clock.advance(10 * LIMIT)
    expect(late).toEqual([
      ['a', 1_000],
      ['a', 2_000],
      ['a', 3_000],
    ])
    expect(timers).toEqual({ set: 3, most: 1, armed: 0 })
  })

  it('use one timer at a time, and none when no deadline is pending', async () => {
    const { clock, timers, deadlines } = setUp()
    for (let i = 0; i < 1_000; i++) {
      deadlines.start(`item ${i}`)
      if (i % 10 !== 0) deadlines.stop(`item ${i}`)
    }
    expect(timers).toEqual({ set: 1, most: 1, armed: 1 })
    await clock.advance(10 * LIMIT)
    expect(timers).toEqual({ set: 1, most: 1, armed: 0 })
    deadlines.start('later')
    expect(timers.armed).toBe(1)
    deadlines.rest()
    expect(timers.armed).toBe(1)
    deadlines.stop('later')
    deadlines.rest()
    expect(timers.armed).toBe(0)
  })

  it('continue when one of them throws', async () => {
    const { clock, late, deadlines } = setUp((item) => {
      if (item === 'a') throw new Error('from the test')
    })
    deadlines.start('a')
    await clock.advance(1)
    deadlines.start('b')
    await expect(clock.advance(10 * LIMIT)).rejects.toThrow('from the test')
    await clock.advance(10 * LIMIT)
    expect(late.map(([item]) => item)).toEqual(['a', 'b'])
  })

  it('do not expire early when a timer fires early', () => {
    const late: string[] = []
    let now = 0
    let fire = () => {}
    const delays: number[] = []
    const deadlines = createDeadlines(LIMIT, {
      now: () => now,
      monotonic: () => now,
      setTimeout: (callback, delayMs) => {
        fire = callback
        delays.push(delayMs)
      },
      clearTimeout: () => {},
    })
    deadlines.set(() => late.push('a'))
    now = LIMIT - 0.5
    fire()
    expect([late, delays]).toEqual([[], [LIMIT, 0.5]])
    now = LIMIT
    fire()
    expect(late).toEqual(['a'])
  })
})

describe('the deadlines of a receiver', () => {
  it('A13 apply to a body: 408 at the limit, and not a millisecond before', async () => {
    const { clock, port, waiting, outcomes } = await receiving({})
    const socket = connect(port, '127.0.0.1')
    onCleanUp(() => socket.destroy())
    socket.write(`POST /secret HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{`)
    const reply = once(socket, 'data')
    await until('the receiver waits for the body', waiting)
    await clock.advance(LIMIT - 1)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual(['body_timeout'])
    expect(String(await reply)).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('apply to a write: 503 at the limit, and not a millisecond before', async () => {
    const never = new Promise<never>(() => {})
    let isAsked = false
    const accept = () => {
      isAsked = true
      return never
    }
    const { clock, port, outcomes } = await receiving({ accept })
    const reply = fetch(`http://127.0.0.1:${port}/secret`, { method: 'POST', body: '{}' })
    await until('the receiver waits for the write', () => isAsked)
    await clock.advance(2 * LIMIT - 1)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual(['delivery_not_accepted'])
    expect((await reply).status).toBe(503)
  })
})

async function receiving(options: Partial<ReceiverOptions>) {
  const clock = createVirtualClock({ isBusy: () => false })
  const outcomes: string[] = []
  let isWaiting = false
  const inner = clock.forProcess()
  const { router } = createDoors({
    ...RECEIVER_DEFAULTS,
    indexOfSecret: (candidate) => ['secret'].indexOf(candidate),
    accept: async () => [{ id: 'e1', issues: null }],
    bodyTimeoutMs: LIMIT,
    acceptTimeoutMs: 2 * LIMIT,
    clock: {
      ...inner,
      setTimeout(callback, delayMs) {
        isWaiting = true
        return inner.setTimeout(callback, delayMs)
      },
    },
    count: (outcome) => outcomes.push(outcome),
    ...options,
  })
  const server = createServer(router).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanUp(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { clock, port, outcomes, waiting: () => isWaiting }
}

/** `late` lists the items that expired, and when. `timers` counts the timers of the clock. */
function setUp(onLate: (item: string) => void = () => {}) {
  const clock = createVirtualClock({ startAt: 0, isBusy: () => false })
  const inner = clock.forProcess()
  const timers = { set: 0, most: 0, armed: 0 }
  const late: [item: string, at: number][] = []
  const { set, rest } = createDeadlines(LIMIT, {
    ...inner,
    setTimeout(callback, delayMs) {
      timers.set++
      timers.armed++
      timers.most = Math.max(timers.most, timers.armed)
      return inner.setTimeout(() => {
        timers.armed--
        callback()
      }, delayMs)
    },
    clearTimeout(handle) {
      timers.armed--
      inner.clearTimeout(handle)
    },
  })
  const cancels = new Map<string, () => void>()
  const deadlines = {
    start: (item: string) =>
      cancels.set(
        item,
        set(() => {
          late.push([item, clock.now()])
          onLate(item)
        }),
      ),
    stop: (item: string) => cancels.get(item)?.(),
    rest,
  }
  return { clock, timers, late, deadlines }
}
