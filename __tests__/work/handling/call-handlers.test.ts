import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry } from '../../../lib/store/port/store.js'
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

/** The payload of this try cannot be made. */
const UNKNOWN = { error: new MarketplaceError('entitlement_unknown', 'Cannot tell') }

function calls() {
  const clock = createVirtualClock({ isBusy: () => false })
  const handlers = createHandlers()
  handlers.onChange(() => {})
  const made = createHandlerCalls({
    handlers,
    payloadOf: () => ({}),
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
