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
      const { call } = calls()
      expect(call(() => value)).toBeUndefined()
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
    const { call, clock } = calls()
    let signal: AbortSignal | undefined
    const ended = noted(
      call((_payload, context) => {
        signal = context.signal
        return gate().opened
      }),
    )
    await clock.advance(TIMEOUT_MS - 1)
    expect([ended.code, signal?.aborted]).toEqual([undefined, false])
    await clock.advance(1)
    expect([ended.code, signal?.reason.code]).toEqual(['handler_timeout', 'handler_timeout'])
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
  it.each(['open', 'fail'] as const)(
    'sees its signal abort, and has ended only when it settles: %s',
    async (settle) => {
      const { call, clock, lost } = calls()
      const handler = gate<unknown>()
      let signal: AbortSignal | undefined
      const ended = noted(
        call((_payload, context) => {
          signal = context.signal
          return handler.opened
        }),
      )
      lost.abort()
      await clock.advance(TIMEOUT_MS - 1)
      expect([ended.is, signal?.reason.code]).toEqual([false, 'lease_lapsed'])
      handler[settle](undefined)
      await clock.rest()
      expect([ended.is, ended.code]).toEqual([true, undefined])
    },
  )

  it('ends at its deadline if it ignores its signal, whose reason stays', async () => {
    const { call, clock, lost } = calls()
    let context: Context | undefined
    const ended = noted(
      call((_payload, given) => {
        context = given
        return gate().opened
      }),
    )
    lost.abort()
    await clock.advance(TIMEOUT_MS)
    expect([ended.code, context?.signal.reason.code]).toEqual(['handler_timeout', 'lease_lapsed'])
  })
})

describe('a call that has ended', () => {
  it('leaves no listener and no deadline behind', async () => {
    const { call, clock, lost, rest, timers } = calls()
    for (const settle of ['open', 'fail'] as const) {
      const handler = gate<unknown>()
      const ended = noted(call(() => handler.opened))
      expect(getEventListeners(lost.signal, 'abort')).toHaveLength(1)
      handler[settle](undefined)
      await clock.rest()
      expect([ended.is, getEventListeners(lost.signal, 'abort')]).toEqual([true, []])
      rest()
      expect(timers()).toBe(0)
    }
    noted(call(() => gate().opened))
    await clock.advance(TIMEOUT_MS)
    expect(getEventListeners(lost.signal, 'abort')).toEqual([])
  })
})

function calls({ around }: { around?(entry: Entry, call: () => unknown): unknown } = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const counting = countingClock(clock.forProcess())
  const lost = new AbortController()
  const { call, rest } = createHandlerCall({
    marketplace: () => 'marketplace',
    timeoutMs: TIMEOUT_MS,
    clock: counting.clock,
    around,
  })
  return {
    clock,
    lost,
    rest,
    timers: () => counting.timers.armed,
    call: (handler: (payload: unknown, context: Context) => unknown) =>
      call(handler as Parameters<typeof call>[0], 'payload', ENTRY, lost.signal),
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
  triedUnder: null,
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
