import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry, ToldItems } from '../../../lib/store/port/store.js'
import { createHandlerCalls } from '../../../lib/work/handling/call-handlers.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

describe('an entry whose payload cannot be made now', () => {
  it('waits for an hour, also if it is older than its retention from the start, and is dead then', async () => {
    const { clock, tried } = calls()
    const old = { receivedAt: clock.now() - 2 * DAY }
    expect(await tried(old, UNKNOWN)).toMatchObject({ kind: 'retry', isUntried: true })
    await clock.advance(HOUR - 1)
    expect(await tried(old, UNKNOWN)).toMatchObject({ kind: 'retry', isUntried: true })
    await clock.advance(1)
    expect(await tried(old, UNKNOWN)).toMatchObject({ kind: 'dead', isUntried: true })
  })

  it('is dead exactly when its retention ends', async () => {
    const { clock, tried } = calls()
    const young = { receivedAt: clock.now() }
    await tried(young, UNKNOWN)
    await clock.advance(DAY - 1)
    expect(await tried(young, UNKNOWN)).toMatchObject({ kind: 'retry' })
    await clock.advance(1)
    expect(await tried(young, UNKNOWN)).toMatchObject({ kind: 'dead' })
  })

  it('is dead in time beside more of them than a process remembers, and those that it does not remember are so later', async () => {
    const { clock, tried } = calls()
    const old = { receivedAt: clock.now() - 2 * DAY }
    const ids = Array.from({ length: 10_000 }, (_, i) => `e${i}`)
    const all = [...ids, 'one more']
    const kinds = async (of: readonly string[]) =>
      new Set(await Promise.all(of.map(async (id) => (await tried({ ...old, id }, UNKNOWN))?.kind)))
    expect(await kinds(all)).toEqual(new Set(['retry']))
    await clock.advance(HOUR - 1)
    expect(await kinds(all)).toEqual(new Set(['retry']))
    await clock.advance(1)
    expect(await kinds(ids)).toEqual(new Set(['dead']))
    expect(await kinds(['one more'])).toEqual(new Set(['retry']))
    await clock.advance(HOUR)
    expect(await kinds(['one more'])).toEqual(new Set(['dead']))
  })

  it('that nobody looks at any more makes room for another', async () => {
    const { clock, tried } = calls()
    const old = { receivedAt: clock.now() - 2 * DAY }
    for (let i = 0; i < 10_000; i++) await tried({ ...old, id: `gone ${i}` }, UNKNOWN)
    await clock.advance(10 * MINUTE)
    await tried(old, UNKNOWN)
    await clock.advance(HOUR)
    expect(await tried(old, UNKNOWN)).toMatchObject({ kind: 'dead' })
  })

  it('does not call handlers again that have returned before', async () => {
    const { handlers, tried } = calls()
    const called: string[] = []
    let fails = true
    handlers.onAny(() => void called.push('good'))
    handlers.onAny(() => {
      called.push('bad')
      if (fails) throw new Error('not yet')
    })
    const first = await tried({}, {}, 'lease 1')
    expect(first).toMatchObject({ kind: 'retry', inMs: SECOND })
    await tried({ triedUnder: 'lease 1' }, UNKNOWN, 'lease 2')
    fails = false
    expect(await tried({ triedUnder: 'lease 2' }, {}, 'lease 3')).toEqual({ kind: 'done' })
    expect(called.sort()).toEqual(['bad', 'bad', 'good'])
  })
})

describe('an entitlement', () => {
  const told = { businessUid: 'b', items: ['pro'], isByCall: true }

  it('calls nobody when there is nothing to do, and keeps what handlers know', async () => {
    const { telling, called, begun } = tellings()
    expect(await telling({ payload: null, told: null })).toEqual({ kind: 'done' })
    const quiet = { ...told, isByCall: false }
    expect(await telling({ payload: null, told: quiet })).toEqual({ kind: 'done', told: quiet })
    expect([called, begun]).toEqual([[], []])
  })

  it('calls every handler at each try, after the store knows that the call begins', async () => {
    const { telling, called, begun, fail } = tellings()
    fail(true)
    expect(await telling({ payload: {}, told })).toMatchObject({ kind: 'retry', inMs: SECOND })
    fail(false)
    expect(await telling({ payload: {}, told })).toEqual({ kind: 'done', told })
    expect(called).toEqual(['b', 'good', 'bad', 'b', 'good', 'bad'])
    expect(begun).toEqual(['entitlement:b', 'entitlement:b'])
  })

  it('calls nobody if the lane was lost, or the store cannot write that the call begins', async () => {
    const { telling, called, answer } = tellings()
    answer(async () => false)
    expect(await telling({ payload: {}, told })).toBeUndefined()
    answer(() => Promise.reject(new MarketplaceError('store_unavailable', 'Cannot write')))
    expect(await telling({ payload: {}, told })).toMatchObject({ kind: 'retry', isUntried: true })
    expect(called).toEqual(['b', 'b'])
  })
})

/** The payload of this try cannot be made. */
const UNKNOWN = { error: new MarketplaceError('entitlement_unknown', 'Cannot tell') }

function calls() {
  const clock = createVirtualClock({ isBusy: () => false })
  const handlers = createHandlers()
  handlers.onChange(() => {})
  const made = createHandlerCalls({
    handlers,
    payloadOf: () => ({}),
    store: { beginTelling: async () => true },
    marketplace: () => undefined,
    timeoutMs: SECOND,
    retryDelaysMs: [SECOND],
    retentionMs: DAY,
    clock: clock.forProcess(),
  })
  return {
    clock,
    handlers,
    /** One try of an entry, which is a change if it has a time. */
    tried(entry: Partial<Entry>, { error }: { error?: unknown }, lease = 'lease') {
      const kind = entry.receivedAt === undefined ? 'event' : 'change'
      const whole = { id: 'e1', kind, name: 'some', attempt: 1, triedUnder: null, ...entry } as Entry
      const prepared = error === undefined ? { payload: {} } : { error }
      return made.call(whole, prepared, { lease, interrupted: new AbortController().signal })
    },
  }
}

/** An entitlement of the business b with two handlers, one of which fails on request. */
function tellings() {
  const [called, begun]: [string[], string[]] = [[], []]
  let fails = false
  let answer = async () => true
  const handlers = createHandlers()
  handlers.onEntitlement(() => void called.push('good'))
  handlers.onEntitlement(() => {
    called.push('bad')
    if (fails) throw new Error('not yet')
  })
  const made = createHandlerCalls({
    handlers,
    payloadOf: () => ({}),
    store: {
      async beginTelling({ id }, businessUid) {
        called.push(businessUid)
        const isHeld = await answer()
        begun.push(id)
        return isHeld
      },
    },
    marketplace: () => undefined,
    timeoutMs: SECOND,
    retryDelaysMs: [SECOND],
    retentionMs: DAY,
    clock: createVirtualClock({ isBusy: () => false }).forProcess(),
  })
  const entry = {
    ...{ id: 'e', kind: 'entitlement', name: '', key: 'entitlement:b', attempt: 1, triedUnder: null },
  } as Entry
  return {
    called,
    begun,
    fail(now: boolean) {
      fails = now
    },
    answer(next: typeof answer) {
      answer = next
    },
    telling: (prepared: { payload: unknown; told: ToldItems | null }) =>
      made.call({ ...entry, receivedAt: 0 }, prepared, {
        lease: 'lease',
        interrupted: new AbortController().signal,
      }),
  }
}
