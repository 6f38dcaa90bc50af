import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import type { Clock } from '../../lib/base/clock.js'
import { createRecheck, isThenable, orAborted, sleep, withDeadline } from '../../lib/base/waiting.js'

describe('waiting', () => {
  it('sleeps for its time, and leaves no listener and no timer', async () => {
    const clock = handClock()
    const controller = new AbortController()
    const { signal } = controller
    const asleep = sleep(500, clock, signal)
    expect(clock.delays()).toEqual([500])
    clock.ring()
    await asleep
    expect(clock.cleared()).toBe(1)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('wakes as soon as the signal aborts, and does not sleep after an abort', async () => {
    const clock = handClock()
    const controller = new AbortController()
    const asleep = sleep(500, clock, controller.signal)
    controller.abort()
    await asleep
    expect(clock.cleared()).toBe(1)
    await sleep(500, clock, controller.signal)
    expect(clock.delays()).toEqual([500])
  })

  it('sleeps without a signal too', async () => {
    const clock = handClock()
    const asleep = sleep(5, clock)
    clock.ring()
    await asleep
  })

  it('looks again after the given time, after a quarter of a second at most, or as soon as it is ended', async () => {
    const clock = handClock()
    const recheck = createRecheck(clock)
    recheck.end()
    const short = recheck.wait(100)
    clock.ring()
    await short
    const long = recheck.wait(5_000)
    expect([clock.delays(), clock.cleared()]).toEqual([[100, 250], 0])
    recheck.end()
    await long
    expect(clock.cleared()).toBe(1)
  })

  it('ends with the result if that comes before the deadline, and stops its timer', async () => {
    const clock = handClock()
    await expect(withDeadline(Promise.resolve('good'), 50, clock, () => 'late')).resolves.toBe('good')
    await expect(withDeadline(Promise.reject(new Error('bad')), 50, clock, () => 'late')).rejects.toThrow(
      'bad',
    )
    expect([clock.delays(), clock.cleared()]).toEqual([[50, 50], 2])
  })

  it("ends with the deadline's error at the deadline", async () => {
    const clock = handClock()
    const waiting = withDeadline(new Promise(() => {}), 50, clock, () => new Error('late'))
    clock.ring()
    await expect(waiting).rejects.toThrow('late')
  })

  it('ends with the result, or as soon as the signal aborts', async () => {
    const controller = new AbortController()
    const { signal } = controller
    await expect(orAborted(Promise.resolve('good'), undefined)).resolves.toBe('good')
    await expect(orAborted(Promise.resolve('good'), signal)).resolves.toBe('good')
    const later = new Promise((resolve) => setImmediate(() => resolve('later')))
    await expect(orAborted(later, signal)).resolves.toBe('later')
    expect(getEventListeners(signal, 'abort')).toEqual([])
    const waiting = orAborted(new Promise(() => {}), signal)
    controller.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', message: 'the caller no longer waits' })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await expect(orAborted(new Promise(() => {}), signal)).rejects.toMatchObject({ name: 'AbortError' })
  })
})

/** A clock whose timers fire when the test lets them. */
function handClock() {
  const timers: { ring: () => void; delayMs: number }[] = []
  const cleared = new Set<unknown>()
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimeout(ring, delayMs) {
      const timer = { ring, delayMs }
      timers.push(timer)
      return timer
    },
    clearTimeout: (timer) => cleared.add(timer),
  }
  return {
    ...clock,
    ring: () => timers.at(-1)?.ring(),
    delays: () => timers.map(({ delayMs }) => delayMs),
    cleared: () => cleared.size,
  }
}

describe('a value that is awaited', () => {
  it('is an object or a function with a method then', () => {
    // By a name in a variable, because a literal with it looks like a mistake.
    const THEN = 'then'
    const are = [Promise.resolve(), { [THEN]() {} }, Object.assign(() => {}, { [THEN]() {} })]
    expect(are.map((value) => isThenable(value))).toEqual([true, true, true])
    const not = [null, undefined, 0, '', THEN, true, {}, { [THEN]: 1 }, () => {}]
    expect(not.filter((value) => isThenable(value))).toEqual([])
  })

  it('that is looked at again says whether it was ended', async () => {
    const clock = handClock()
    const recheck = createRecheck(clock, 100)
    const ended = recheck.wait(1_000)
    recheck.end()
    expect(await ended).toBe(true)
    const passed = recheck.wait(1_000)
    expect(clock.delays().at(-1)).toBe(100)
    clock.ring()
    expect(await passed).toBe(false)
  })
})
