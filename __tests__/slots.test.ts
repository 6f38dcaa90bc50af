import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../lib/clock.js'
import { createLaneSlots } from '../lib/work/lane-slots.js'
import { createSlotQueue } from '../lib/work/slot-queue.js'
import { createVirtualClock } from './support/virtual-clock.js'

const NEVER = new AbortController().signal

describe('the queue for slots', () => {
  it('gives each free slot to the item that has waited longest', async () => {
    const { queue, wait, ends, clock } = slotQueue()
    for (const name of ['a', 'b', 'c']) wait(name)
    expect(queue.size()).toBe(3)
    queue.admit()
    queue.admit()
    await clock.rest()
    expect(ends).toEqual(['a enters', 'b enters', 'a: true', 'b: true'])
    expect(queue.size()).toBe(1)
  })

  it('has no effect when no item waits', () => {
    const { queue } = slotQueue()
    queue.admit()
    queue.clear()
    expect(queue.size()).toBe(0)
  })

  it('lets an item go that has waited too long, and reports it', async () => {
    const { queue, wait, ends, clock, late } = slotQueue()
    wait('a')
    await clock.advance(500)
    wait('b')
    await clock.advance(499)
    expect(ends).toEqual([])
    await clock.advance(1)
    expect(ends).toEqual(['a: false'])
    expect([late(), queue.size()]).toEqual([1, 1])
    queue.admit()
    await clock.advance(5 * SECOND)
    expect(ends).toEqual(['a: false', 'b enters', 'b: true'])
    expect(late()).toBe(1)
  })

  it('lets an item go that gives up; its place in the queue gets no slot', async () => {
    const { queue, wait, ends, clock, late } = slotQueue()
    const gone = new AbortController()
    wait('a', gone.signal)
    wait('b')
    gone.abort()
    queue.admit()
    await clock.advance(5 * SECOND)
    expect(ends).toEqual(['b enters', 'a: false', 'b: true'])
    expect(late()).toBe(0)
  })

  it('leaves no listener on a signal', async () => {
    const { queue, wait } = slotQueue()
    const { signal } = new AbortController()
    wait('a', signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    queue.admit()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('ends all waits when it is cleared', async () => {
    const { queue, wait, ends, clock } = slotQueue()
    wait('a')
    wait('b')
    queue.clear()
    await clock.rest()
    expect(ends).toEqual(['a: false', 'b: false'])
    expect(queue.size()).toBe(0)
  })
})

describe('the slots of lanes', () => {
  it('are as many as the concurrency; further lanes wait in order', async () => {
    const { slots, take, taken, clock } = laneSlots()
    for (const name of ['a', 'b', 'c', 'd']) take(name)
    await clock.rest()
    expect(taken).toEqual(['a: true', 'b: true'])
    expect(slots.waiting()).toBe(2)
    slots.leave(clock.now())
    await clock.rest()
    expect(taken).toEqual(['a: true', 'b: true', 'c: true'])
    slots.leave(clock.now())
    slots.leave(clock.now())
    slots.leave(clock.now())
    for (const name of ['e', 'f', 'g']) take(name)
    await clock.rest()
    expect(taken.slice(3)).toEqual(['d: true', 'e: true', 'f: true'])
  })

  it('are not given to a lane whose lease has ended', () => {
    const { slots, take, taken } = laneSlots()
    expect(slots.take(AbortSignal.abort())).toBe(false)
    take('a')
    take('b')
    take('c')
    expect(slots.waiting()).toBe(1)
    expect(taken).toEqual([])
  })

  it('are not reserved for a lane that has waited for a second', async () => {
    const { slots, take, taken, clock } = laneSlots()
    for (const name of ['a', 'b', 'c']) take(name)
    await clock.advance(SECOND - 1)
    expect(taken).toEqual(['a: true', 'b: true'])
    await clock.advance(1)
    expect(taken).toEqual(['a: true', 'b: true', 'c: false'])
    slots.leave(clock.now())
    take('d')
    await clock.rest()
    expect(taken.at(-1)).toBe('d: true')
  })

  it('are leased ahead, as many as will be free within 40 ms, within the bound', () => {
    const { slots, clock } = laneSlots()
    expect(slots.ahead()).toBe(0)
    slots.take(NEVER)
    slots.leave(clock.now() - 10)
    expect(slots.ahead()).toBe(8)
    // A new time counts a tenth: 0.9 × 10 + 0.1 × 20.
    slots.take(NEVER)
    slots.leave(clock.now() - 20)
    expect(slots.ahead()).toBe(7)
    for (let i = 0; i < 100; i++) {
      slots.take(NEVER)
      slots.leave(clock.now())
    }
    expect(slots.ahead()).toBe(20)
  })

  it('are not leased ahead after a lane has waited too long', async () => {
    const { slots, take, clock } = laneSlots()
    slots.take(NEVER)
    slots.leave(clock.now() - 1)
    expect(slots.ahead()).toBe(20)
    for (const name of ['a', 'b', 'c']) take(name)
    await clock.advance(SECOND)
    expect(slots.ahead()).toBe(0)
  })
})

function slotQueue() {
  const clock = createVirtualClock({ isBusy: () => false })
  const ends: string[] = []
  let lates = 0
  const queue = createSlotQueue({ patienceMs: SECOND, clock: clock.forProcess(), onLate: () => void lates++ })
  return {
    clock,
    queue,
    ends,
    late: () => lates,
    wait(name: string, signal = NEVER) {
      queue
        .wait(signal, () => ends.push(`${name} enters`))
        .then((hasSlot) => ends.push(`${name}: ${hasSlot}`))
    },
  }
}

/** Two slots, with at most 20 lanes leased ahead. */
function laneSlots() {
  const clock = createVirtualClock({ isBusy: () => false })
  const taken: string[] = []
  const slots = createLaneSlots({ concurrency: 2, maxAhead: 20, clock: clock.forProcess() })
  return {
    clock,
    slots,
    taken,
    take(name: string) {
      Promise.resolve(slots.take(NEVER)).then((hasSlot) => taken.push(`${name}: ${hasSlot}`))
    },
  }
}
