import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Entry } from '../../../lib/store/port/store.js'
import { createHandlerCalls } from '../../../lib/work/handling/call-handlers.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { type Unit, unitAt } from '../../../lib/work/handling/units.js'
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

describe('the payload of a unit', () => {
  const interrupted = new AbortController().signal
  const unit = [{ id: 'e1' }] as unknown as Unit

  it('is deeply frozen, whether it is made at once or later', async () => {
    const { prepare } = calls({ payloadOf: () => ({ deep: { list: [1] } }) }).made
    const { prepare: prepareLater } = calls({ payloadOf: async () => ({ deep: { list: [1] } }) }).made
    for (const prepared of [prepare(unit, interrupted), await prepareLater(unit, interrupted)]) {
      expect(prepared).toEqual({ payload: { deep: { list: [1] } } })
      const { payload } = prepared as { payload: { deep: { list: number[] } } }
      expect([payload, payload.deep, payload.deep.list].every(Object.isFrozen)).toBe(true)
    }
  })

  it('is an error if making it fails, at once or later', async () => {
    const error = new Error('no payload')
    const fails = () => {
      throw error
    }
    expect(calls({ payloadOf: fails }).made.prepare(unit, interrupted)).toEqual({ error })
    const later = calls({ payloadOf: async () => fails() }).made.prepare(unit, interrupted)
    expect(later).toBeInstanceOf(Promise)
    expect(await later).toEqual({ error })
  })

  it('is an error as soon as the lane is interrupted, however long the answer takes', async () => {
    const aborting = new AbortController()
    const prepared = calls({ payloadOf: () => new Promise(() => {}) }).made.prepare(unit, aborting.signal)
    aborting.abort()
    expect(await prepared).toHaveProperty('error')
  })
})

describe('a unit of several entries', () => {
  it('calls only the failed handlers again, and all of them when a further entry has joined it', async () => {
    const { handlers, triedTogether } = calls()
    const called: string[] = []
    let fails = true
    handlers.onEntitlement(() => void called.push('good'))
    handlers.onEntitlement(() => {
      called.push('bad')
      if (fails) throw new Error('not yet')
    })
    const retried = { kind: 'retry', inMs: SECOND }
    expect(await triedTogether(['e1'], null, 'lease 1')).toMatchObject(retried)
    expect(called.splice(0)).toEqual(['good', 'bad'])
    expect(await triedTogether(['e1'], 'lease 1', 'lease 2')).toMatchObject(retried)
    expect(called.splice(0)).toEqual(['bad'])
    expect(await triedTogether(['e1', 'e2'], 'lease 2', 'lease 3')).toMatchObject(retried)
    expect(called.splice(0)).toEqual(['good', 'bad'])
    fails = false
    expect(await triedTogether(['e1', 'e2'], 'lease 3', 'lease 4')).toEqual({ kind: 'done' })
    expect(called.splice(0)).toEqual(['bad'])
  })

  it('calls all handlers again when its first entry is dead, and the others are a unit of their own', async () => {
    const { handlers, triedTogether } = calls({ retryDelaysMs: [] })
    let called = 0
    handlers.onEntitlement(() => void called++)
    handlers.onEntitlement(() => {
      throw new Error('a mistake')
    })
    expect(await triedTogether(['e1', 'e2'], null, 'lease 1')).toMatchObject({ kind: 'dead' })
    expect(await triedTogether(['e2'], null, 'lease 1')).toMatchObject({ kind: 'dead' })
    expect(called).toBe(2)
  })
})

describe('the units of a lane', () => {
  it('are its entries one by one, and of an entitlement all that were handed out', () => {
    const of = (kind: Entry['kind']) => ['e1', 'e2', 'e3'].map((id) => ({ id, kind }) as Entry)
    const idsAt = (kind: Entry['kind'], place: number) => unitAt(of(kind), place)?.map(({ id }) => id)
    for (const kind of ['event', 'change', 'unrecognised'] as const) {
      expect(idsAt(kind, 0)).toEqual(['e1'])
      expect(idsAt(kind, 2)).toEqual(['e3'])
    }
    expect(idsAt('entitlement', 0)).toEqual(['e1', 'e2', 'e3'])
    expect(idsAt('entitlement', 1)).toEqual(['e2', 'e3'])
    expect(idsAt('entitlement', 3)).toBeUndefined()
  })
})

/** The payload of this try cannot be made. */
const UNKNOWN = { error: new MarketplaceError('entitlement_unknown', 'Cannot tell') }

function calls({
  retryDelaysMs = [SECOND],
  payloadOf = () => ({}),
}: {
  retryDelaysMs?: number[]
  payloadOf?: () => unknown
} = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const handlers = createHandlers()
  handlers.onChange(() => {})
  const made = createHandlerCalls({
    handlers,
    payloadOf,
    marketplace: () => undefined,
    timeoutMs: SECOND,
    retryDelaysMs,
    retentionMs: DAY,
    clock: clock.forProcess(),
  })
  return {
    clock,
    handlers,
    made,
    /** One try of an entry, which is a change if it has a time. */
    tried(entry: Partial<Entry>, { error }: { error?: unknown }, lease = 'lease') {
      const kind = entry.receivedAt === undefined ? 'event' : 'change'
      const whole = { id: 'e1', kind, name: 'some', attempt: 1, triedUnder: null, ...entry } as Entry
      const prepared = error === undefined ? { payload: {} } : { error }
      return made.call([whole], prepared, { lease, interrupted: new AbortController().signal })
    },
    /** One try of a unit of entitlements, the first of which was last tried under a lease. */
    triedTogether(ids: readonly string[], triedUnder: string | null, lease: string) {
      const unit = ids.map((id, i) => {
        return { id, kind: 'entitlement', name: '', attempt: 1, triedUnder: i === 0 ? triedUnder : null }
      })
      const interrupted = new AbortController().signal
      return made.call(unit as unknown as Unit, { payload: {} }, { lease, interrupted })
    },
  }
}
