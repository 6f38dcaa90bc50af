import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { createSlots, type Slot } from '../../../lib/work/leases/slots.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

const PATIENCE_MS = 500

describe('slots', () => {
  it('are as many as the concurrency; further items wait in order', async () => {
    const { take, taken, end, slots, clock } = scene()
    for (const item of ['a', 'b', 'c', 'd']) take(item)
    await clock.rest()
    expect(taken).toEqual(['a', 'b'])
    expect(slots.taken()).toEqual(['a', 'b', 'c', 'd'])
    end('b')
    await clock.rest()
    expect(taken).toEqual(['a', 'b', 'c'])
    for (const item of ['a', 'c', 'd']) {
      end(item)
      await clock.rest()
    }
    expect([taken, slots.taken()]).toEqual([['a', 'b', 'c', 'd'], []])
  })

  it('are not given to an item whose lease has ended, before or while it waits', async () => {
    const { take, taken, end, clock } = scene()
    take('lost', AbortSignal.abort())
    const waits = new AbortController()
    for (const item of ['a', 'b']) take(item)
    take('loses', waits.signal)
    take('c')
    waits.abort()
    end('a')
    await clock.rest()
    expect(taken).toEqual(['no lost', 'a', 'b', 'no loses', 'c'])
  })

  it('leave no listener on a signal', async () => {
    const { take, end, clock } = scene()
    for (const item of ['a', 'b']) take(item)
    const { signal } = new AbortController()
    take('c', signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    end('a')
    await clock.rest()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('are not waited for longer than half a second, and then nothing is leased ahead', async () => {
    const { slots, take, taken, end, clock } = scene()
    take('quick')
    await clock.advance(1)
    end('quick')
    expect(slots.room()).toBe(62)
    for (const item of ['a', 'b', 'c']) take(item)
    await clock.advance(PATIENCE_MS - 1)
    expect(taken).toEqual(['quick', 'a', 'b'])
    await clock.advance(1)
    expect(taken).toEqual(['quick', 'a', 'b', 'no c'])
    expect(slots.room()).toBe(0)
  })

  it('are leased ahead, as many as will be free within 30 ms or two claims, at most 64', async () => {
    const { slots, take, end, clock } = scene()
    const holds = async (ms: number) => {
      take('item')
      await clock.advance(ms)
      end('item')
    }
    expect(slots.room()).toBe(2)
    await holds(10)
    expect(slots.room()).toBe(2 + 6)
    // A new time counts a tenth: 0.9 × 10 + 0.1 × 20.
    await holds(20)
    expect(slots.room()).toBe(2 + 5)
    // And a claim a fifth.
    slots.claimTook(200)
    expect(slots.room()).toBe(2 + 14)
    for (let i = 0; i < 100; i++) await holds(0)
    expect(slots.room()).toBe(2 + 64)
  })

  it('have room for a claim when half of the items leased ahead are missing', async () => {
    const { slots, take, end, clock } = scene()
    take('first')
    await clock.advance(10)
    end('first')
    for (const item of ['a', 'b', 'c', 'd', 'e']) take(item)
    expect(slots.room()).toBe(0)
    end('a')
    await clock.rest()
    expect(slots.room()).toBe(4)
  })

  it('go to the next item while the last one is being written, up to 128 of them', async () => {
    const { slots, take, leave, end, clock } = scene()
    for (let i = 0; i < 128; i++) {
      take(`${i}`)
      await clock.rest()
      leave(`${i}`)
    }
    expect(slots.taken()).toEqual([])
    for (const item of ['a', 'b']) {
      take(item)
      leave(item)
    }
    expect(slots.taken()).toEqual(['a', 'b'])
    end('a')
    end('7')
    leave('b')
    await clock.rest()
    expect(slots.taken()).toEqual([])
  })

  it('are not taken by items that only wait, up to 250 of them', async () => {
    const { slots, take, clock } = scene({ isWaiting: (item) => item.startsWith('waits') })
    for (let i = 0; i < 250; i++) take(`waits ${i}`)
    take('a')
    await clock.rest()
    expect(slots.taken()).toEqual(['a'])
    take('waits too')
    await clock.rest()
    expect(slots.taken()).toHaveLength(2)
    expect(slots.room()).toBe(0)
  })

  it('pass over an item that has no place beside the others', async () => {
    const { take, taken, end, clock } = scene({
      hasSeat: (item, others, seats) => item !== 'routine' || others.length < seats - 1,
    })
    for (const item of ['a', 'routine', 'b', 'c']) take(item)
    await clock.rest()
    expect(taken).toEqual(['a', 'b'])
    end('a')
    await clock.rest()
    expect(taken).toEqual(['a', 'b', 'c'])
    end('b')
    end('c')
    await clock.rest()
    expect(taken).toEqual(['a', 'b', 'c', 'routine'])
  })

  it('are given to nobody once they are closed', async () => {
    const { slots, take, taken, clock } = scene()
    for (const item of ['a', 'b', 'c']) take(item)
    slots.close()
    take('d')
    await clock.rest()
    expect(taken.sort()).toEqual(['a', 'b', 'no c', 'no d'])
    expect(slots.room()).toBe(0)
  })
})

/** Two slots. `taken` has the items in the order in which they got one, or "no" and the item. */
function scene(
  options: {
    isWaiting?(item: string): boolean
    hasSeat?(item: string, others: readonly string[], seats: number): boolean
  } = {},
) {
  const clock = createVirtualClock({ isBusy: () => false })
  const taken: string[] = []
  const held = new Map<string, Slot>()
  const slots = createSlots<string>({ concurrency: 2, clock: clock.forProcess(), ...options })
  const note = (item: string, slot: Slot | undefined) => {
    taken.push(slot ? item : `no ${item}`)
    if (slot) held.set(item, slot)
  }
  return {
    clock,
    slots,
    taken,
    take(item: string, signal = new AbortController().signal) {
      const slot = slots.take(item, signal)
      if (slot instanceof Promise) slot.then((later) => note(item, later))
      else note(item, slot)
    },
    leave: (item: string) => held.get(item)?.leave(),
    end: (item: string) => held.get(item)?.end(),
  }
}
