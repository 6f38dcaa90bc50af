import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import type { Clock } from '../lib/clock.js'
import { prefersHtml } from '../lib/express/accept-header.js'
import { mergeProblems } from '../lib/health.js'
import { newId } from '../lib/ids.js'
import { errorWords, isObject, saysError } from '../lib/platform/error-replies.js'
import type { HttpReply } from '../lib/platform/http.js'
import { orAborted, sleep, withDeadline } from '../lib/waiting.js'

describe('an Accept header', () => {
  it.each([
    'text/html',
    'TEXT/HTML, application/json;q=0.9',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'text/*;q=0.5, application/json;q=0.4',
    'text/html ; level=1 ; q=0.7, */*;q=0.1',
    'application/*;q=0, text/html;q=0.1',
    '*/*, application/json;q=0.5, application/problem+json;q=0.5',
    'application/json;q=2, application/problem+json;q=-1, text/html;q=0.1',
    'application/json;q=many, application/problem+json;q=, text/html;q=1',
  ])('prefers a page: %s', (accept) => {
    expect(prefersHtml(accept)).toBe(true)
  })

  it.each([
    undefined,
    5,
    ['text/html'],
    '',
    '*/*',
    'application/json',
    'text/html, application/json',
    'text/html;q=0.5, application/problem+json;q=0.6',
    'text/html;q=0.5, application/*;q=0.6',
    'text/html;q=0',
    'text/html;q=-0.5',
    'text/html;q=0, application/*;q=-1',
    'text/plain',
    'text/html;q=1.5',
  ])('does not prefer a page: %p', (accept) => {
    expect(prefersHtml(accept)).toBe(false)
  })

  it('goes by the most specific range, wherever it stands', () => {
    expect(prefersHtml('*/*;q=0.9, text/*;q=0.8, text/html;q=0.1')).toBe(false)
    expect(prefersHtml('text/*;q=0.1, text/html;q=1, */*;q=0.5')).toBe(true)
    expect(prefersHtml('*/*;q=0.5, text/*;q=0.6')).toBe(true)
  })
})

describe('an identifier of ours', () => {
  const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

  it('is a UUID of version 7 that begins with its millisecond', () => {
    const ids = Array.from({ length: 1_000 }, () => newId(0x0123456789))
    for (const id of ids) expect(id).toMatch(UUID_7)
    for (const id of ids) expect(id.slice(0, 14)).toBe('00012345-6789-')
  })

  it('never comes twice, and is random in each of its other places', () => {
    const ids = Array.from({ length: 2_000 }, () => newId(1))
    expect(new Set(ids).size).toBe(ids.length)
    for (const at of [15, 16, 17, 20, 21, 22, 24, 26, 28, 30, 32, 34, 35]) {
      expect(new Set(ids.map((id) => id[at])).size).toBe(16)
    }
    expect(new Set(ids.map((id) => id[19]))).toEqual(new Set(['8', '9', 'a', 'b']))
    // Each of its ten random bytes is another one.
    expect(new Set(ids.map((id) => id.slice(24))).size).toBe(ids.length)
    expect(ids.filter((id) => id.slice(15, 18) === id.slice(24, 27)).length).toBeLessThan(20)
  })
})

describe('problems of parts', () => {
  it('are those of all of them, in their order', () => {
    expect(
      mergeProblems([
        { failing: ['a'], degraded: ['b'] },
        { failing: [], degraded: [] },
        { failing: ['c'], degraded: ['d'] },
      ]),
    ).toEqual({ failing: ['a', 'c'], degraded: ['b', 'd'] })
  })
})

describe('an error reply', () => {
  it('is an object, which an array and null are not', () => {
    expect([{}, { a: 1 }].every(isObject)).toBe(true)
    expect([null, undefined, [], 'text', 5].some(isObject)).toBe(false)
  })

  it('says in its body that it is an error, or is a page', () => {
    const bad = [{ success: false }, { error: 'no' }, { error: {} }, { status: 'Error' }]
    for (const json of bad) expect(saysError(reply(json))).toBe(true)
    const good = [{}, { success: true }, { error: null }, { error: '' }, { error: false }, { status: 'ok' }]
    for (const json of good) expect(saysError(reply(json))).toBe(false)
    expect(saysError(reply({ success: true }, true))).toBe(false)
    for (const json of [undefined, [], null]) {
      expect([saysError(reply(json, true)), saysError(reply(json))]).toEqual([true, false])
    }
  })

  it('has its codes and messages in one text, each once', () => {
    expect(
      errorWords(reply({ code: 'a', error: 'b', error_description: 'c', message: 'd', other: 'e' })),
    ).toBe('a b c d')
    expect(errorWords(reply({ error: { code: 'a', message: 'b' }, message: 'a' }))).toBe('a b')
    expect(errorWords(reply({ errors: [{ code: 'a', message: 'b' }, 'c', 5, null] }))).toBe('a b c')
    expect(errorWords(reply({ errors: ['1', '2', '3', '4', '5', '6'] }))).toBe('1 2 3 4 5')
    expect(errorWords(reply({ errors: 'text' }))).toBe('')
    for (const json of [undefined, null, 'text', ['text']]) expect(errorWords(reply(json))).toBe('')
  })
})

describe('waiting', () => {
  it('sleeps so long, and keeps no listener and no timer', async () => {
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

  it('wakes as soon as the signal aborts, and does not sleep when it has', async () => {
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

  it('ends with the result before the deadline, and stops its timer', async () => {
    const clock = handClock()
    await expect(withDeadline(Promise.resolve('good'), 50, clock, () => 'late')).resolves.toBe('good')
    await expect(withDeadline(Promise.reject(new Error('bad')), 50, clock, () => 'late')).rejects.toThrow(
      'bad',
    )
    expect([clock.delays(), clock.cleared()]).toEqual([[50, 50], 2])
  })

  it('ends with what is said of lateness at the deadline', async () => {
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
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', message: 'given up' })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await expect(orAborted(new Promise(() => {}), signal)).rejects.toMatchObject({ name: 'AbortError' })
  })
})

function reply(json: unknown, isPage = false): HttpReply {
  return { json, isPage } as HttpReply
}

/** Timers ring when the test lets them. */
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
