import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import type { Entry } from '../../../lib/store/port/store.js'
import { createHandlerCall } from '../../../lib/work/handling/call-handler.js'
import { countingClock } from '../../support/machine/counting-clock.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

const TIMEOUT_MS = 30 * SECOND
const THEN = 'then'

interface Context {
  signal: AbortSignal
  attempt: number
  marketplace: unknown
}

describe('a call of a handler', () => {
  it('gives it the payload, the attempt and the marketplace', () => {
    const { call } = calls()
    const seen: unknown[] = []
    call((payload, { attempt, marketplace }) => void seen.push(payload, attempt, marketplace))
    expect(seen).toEqual(['payload', 3, 'marketplace'])
  })

  it.each([undefined, null, 7, 'then', {}, { [THEN]: 1 }])(
    'has ended when the handler returns %p',
    (value) => {
      const { call, busyKeys } = calls()
      expect(call(() => value)).toBeUndefined()
      expect(busyKeys()).toEqual([])
    },
  )

  it('throws the error of the handler', () => {
    const { call } = calls()
    expect(() =>
      call(() => {
        throw new Error('odd')
      }),
    ).toThrow('odd')
  })

  it('ends with the promise that the handler returns, even if it is only a thenable', async () => {
    const { call } = calls()
    await expect(call(async () => 'anything')).resolves.toBeUndefined()
    await expect(call(() => Promise.reject(new Error('odd')))).rejects.toThrow('odd')
    const later = (done: (value: unknown) => void) => void setImmediate(done)
    for (const thenable of [{ [THEN]: later }, Object.assign(() => {}, { [THEN]: later })]) {
      const ended = call(() => thenable)
      expect(ended).toBeInstanceOf(Promise)
      await ended
    }
  })

  it('runs inside the wrapper of the app', async () => {
    const seen: unknown[] = []
    const { call } = calls({
      around(entry, inner) {
        seen.push(entry.key)
        return inner()
      },
    })
    await call(async () => void seen.push('inside'))
    expect(seen).toEqual(['k', 'inside'])
  })
})

describe('a handler that takes too long', () => {
  it('ends at its deadline, and its signal aborts with the reason', async () => {
    const { call, clock, busyKeys } = calls()
    let signal: AbortSignal | undefined
    const ended = noted(
      call((_payload, context) => {
        signal = context.signal
        return gate().opened
      }),
    )
    await clock.advance(TIMEOUT_MS - 1)
    expect([ended.code, signal?.aborted, busyKeys()]).toEqual([undefined, false, ['k']])
    await clock.advance(1)
    expect([ended.code, signal?.reason.code, busyKeys()]).toEqual(['handler_timeout', 'handler_timeout', []])
  })

  it('sees an aborted signal even if it first reads the signal after the deadline', async () => {
    const { call, clock } = calls()
    let context: Context | undefined
    const ended = noted(
      call((_payload, given) => {
        context = given
        return gate().opened
      }),
    )
    await clock.advance(TIMEOUT_MS)
    expect(ended.code).toBe('handler_timeout')
    expect([context?.signal.aborted, context?.signal.reason.code]).toEqual([true, 'handler_timeout'])
    expect(context?.signal).toBe(context?.signal)
  })
})

describe('a handler whose lease is lost', () => {
  it('ends at once for the caller, and its key stays busy until it returns', async () => {
    const { call, clock, lost, busyKeys } = calls()
    const handler = gate()
    let signal: AbortSignal | undefined
    const ended = noted(
      call((_payload, context) => {
        signal = context.signal
        return handler.opened
      }),
    )
    lost.abort()
    await clock.rest()
    expect([ended.code, signal?.reason.code, busyKeys()]).toEqual(['lease_lapsed', 'lease_lapsed', ['k']])
    handler.open()
    await clock.rest()
    expect(busyKeys()).toEqual([])
  })

  it('keeps its key busy until its deadline if it ignores its signal', async () => {
    const { call, clock, lost, busyKeys } = calls()
    const ended = noted(call(() => gate().opened))
    lost.abort()
    await clock.advance(TIMEOUT_MS - 1)
    expect(busyKeys()).toEqual(['k'])
    await clock.advance(1)
    expect([ended.code, busyKeys()]).toEqual(['lease_lapsed', []])
  })
})

describe('a call that has ended', () => {
  it('leaves no listener, no deadline and no busy key behind', async () => {
    const { call, clock, lost, busyKeys, rest, timers } = calls()
    for (const settle of ['open', 'fail'] as const) {
      const handler = gate<unknown>()
      const ended = noted(call(() => handler.opened))
      expect(getEventListeners(lost.signal, 'abort')).toHaveLength(1)
      handler[settle](undefined)
      await clock.rest()
      expect([ended.is, getEventListeners(lost.signal, 'abort'), busyKeys()]).toEqual([true, [], []])
      rest()
      expect(timers()).toBe(0)
    }
    noted(call(() => gate().opened))
    await clock.advance(TIMEOUT_MS)
    expect(getEventListeners(lost.signal, 'abort')).toEqual([])
  })

  it('keeps its key busy while another handler of that key runs', async () => {
    const { call, clock, busyKeys } = calls()
    const handlers = [gate(), gate(), gate()]
    for (const [at, { opened }] of handlers.entries()) noted(call(() => opened, at === 2 ? 'other' : 'k'))
    expect(busyKeys()).toEqual(['k', 'other'])
    handlers[0]?.open()
    await clock.rest()
    expect(busyKeys()).toEqual(['k', 'other'])
    handlers[1]?.open()
    await clock.rest()
    expect(busyKeys()).toEqual(['other'])
  })

  it('is counted once if its handler returns after the deadline', async () => {
    const { call, clock, busyKeys } = calls()
    const [late, running] = [gate(), gate()]
    noted(call(() => late.opened))
    await clock.advance(TIMEOUT_MS - SECOND)
    noted(call(() => running.opened))
    await clock.advance(SECOND)
    late.open()
    await clock.rest()
    expect(busyKeys()).toEqual(['k'])
  })
})

function calls({ around }: { around?(entry: Entry, call: () => unknown): unknown } = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const counting = countingClock(clock.forProcess())
  const lost = new AbortController()
  const { call, busyKeys, rest } = createHandlerCall({
    marketplace: () => 'marketplace',
    timeoutMs: TIMEOUT_MS,
    clock: counting.clock,
    around,
  })
  return {
    clock,
    lost,
    busyKeys,
    rest,
    timers: () => counting.timers.armed,
    call: (handler: (payload: unknown, context: Context) => unknown, key = 'k') =>
      call(handler as Parameters<typeof call>[0], 'payload', { ...ENTRY, key }, lost.signal),
  }
}

const ENTRY: Entry = {
  id: 'e',
  kind: 'event',
  name: 'x',
  key: 'k',
  businessUid: null,
  subscriptionUid: null,
  payload: '{}',
  issues: null,
  receivedAt: 0,
  attempt: 3,
}

/** Notes whether and how a call has ended. */
function noted(call: Promise<void> | undefined) {
  const seen: { is: boolean; code?: unknown } = { is: false }
  call?.then(
    () => {
      seen.is = true
    },
    (error) => {
      seen.is = true
      seen.code = error?.code
    },
  )
  return seen
}
