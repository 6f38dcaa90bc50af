import { describe, expect, it } from '@jest/globals'
import { createDeadlines } from '../../lib/base/deadlines.js'
import { countingClock } from '../support/machine/counting-clock.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'

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
    const { clock, late, timers, deadlines } = setUp()
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
    deadlines.start('after the rest')
    expect(timers.armed).toBe(1)
    await clock.advance(LIMIT)
    expect(late.at(-1)?.[0]).toBe('after the rest')
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

/** `late` lists the items that expired, and when. `timers` counts the timers of the clock. */
function setUp(onLate: (item: string) => void = () => {}) {
  const clock = createVirtualClock({ startAt: 0, isBusy: () => false })
  const { clock: counting, timers } = countingClock(clock.forProcess())
  const late: [item: string, at: number][] = []
  const { set, rest } = createDeadlines(LIMIT, counting)
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
