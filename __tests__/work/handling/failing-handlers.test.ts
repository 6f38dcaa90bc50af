import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import type { HandlerFailure } from '../../../lib/index.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { internals } from '../../support/internals.js'
import { captureDebug } from '../../support/output.js'
import { createScene } from '../../support/scene.js'
import { bringAbout, explode, pendingChanges } from '../../support/scenes/changes.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

const QUICK = { handlers: { retryDelaysMs: [10, 10, 10] }, ...internals({ pollMs: 50 }) }

describe('a handler that fails', () => {
  it('H1 is called again with the same id until its entry is dead and reported once; a replay revives the entry', async () => {
    const { platform, marketplace } = await createScene({ ...QUICK })
    const calls: { id: string; attempt: number }[] = []
    const dead: HandlerFailure[] = []
    let isBroken = true
    marketplace.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
    marketplace.onPurchaseChange(({ id }, { attempt }) => {
      calls.push({ id, attempt })
      if (isBroken) throw new TypeError('the mail server is away')
    })
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('the entry is dead', () => dead.length > 0)
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(1)
    expect(dead).toEqual([
      {
        id: calls[0]?.id,
        kind: 'change',
        name: '',
        business_uid: B1,
        subscription_uid: uid,
        attempt: 4,
        error: new TypeError('the mail server is away'),
        retryInMs: null,
      },
    ])
    const [entry] = await marketplace.journal.list({ status: 'dead' })
    expect(entry).toMatchObject({
      id: calls[0]?.id,
      attempts: 4,
      error: 'TypeError: the mail server is away',
    })
    expect((await marketplace.health()).status).toBe('degraded')
    // The failing handler delays no caller, and access does not depend on it.
    await bringAbout(platform, marketplace, ['purchased'], 'b2')
    expect(await marketplace.isEntitled(B1)).toBe(true)

    isBroken = false
    calls.splice(0)
    expect(await marketplace.journal.replay(entry?.id as string)).toBe(true)
    await until('the replay is handled', () => calls.some(({ id }) => id === entry?.id))
    expect(calls.find(({ id }) => id === entry?.id)?.attempt).toBe(1)
    expect(await marketplace.journal.replay('no-such-id')).toBe(false)
  })

  it('is called again alone: handlers that have returned are not called again', async () => {
    const { platform, marketplace } = await createScene({ ...QUICK })
    const calls = { good: 0, bad: 0 }
    marketplace.onPurchaseChange(() => void calls.good++)
    marketplace.onPurchaseChange(() => {
      if (++calls.bad < 3) throw new Error('not yet')
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await until('the third try', async () => calls.bad === 3 && (await pendingChanges(marketplace)) === 0)
    expect(calls).toEqual({ good: 1, bad: 3 })
  })

  it('is called by a replay, and so are the handlers that have returned', async () => {
    const { marketplace, deliver } = await createScene({
      handlers: { retryDelaysMs: [HOUR] },
      ...internals({ pollMs: 50 }),
    })
    const calls = { good: 0, bad: 0 }
    marketplace.on('application/installed', () => void calls.good++)
    marketplace.on('application/installed', () => {
      calls.bad++
      throw new Error('not yet')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await until('the first try has ended', async () =>
      (await marketplace.journal.list({})).some(({ error }) => error !== null),
    )
    expect(await marketplace.journal.replay(id)).toBe(true)
    await until('the second try has ended', () => calls.bad === 2)
    expect(calls).toEqual({ good: 2, bad: 2 })
  })

  it('does not end the process through a listener whose promise rejects', async () => {
    const { marketplace, deliver } = await createScene({
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    })
    const dead: string[] = []
    const logged = captureDebug()
    marketplace.onHandlerError(async () => {
      throw new Error('the pager is away')
    })
    marketplace.onHandlerError(({ id, retryInMs }) => void (retryInMs === null && dead.push(id)))
    marketplace.on('application/installed', () => explode())
    const ids = [await deliver(sampleDelivery('application/installed'))].map(({ id }) => id)
    await until('the entry is dead', () => dead.length === 1)
    // By now, an unhandled rejection would have ended this process.
    await new Promise((resolve) => setImmediate(resolve))
    expect(dead).toEqual(ids)
    // Without the text, which may repeat what was received.
    expect(logged.join()).toMatch(
      /listeners A listener of onHandlerError or onHealthChange failed: Error, whose message .*failing-handlers/,
    )
  })

  const things: [string, () => unknown][] = [
    ['undefined', () => undefined],
    ['null', () => null],
    ['a frozen object', () => Object.freeze({})],
    ['an object without a prototype', () => Object.create(null)],
    ['an error that throws when it is read', () => hostileError()],
    ['a thenable that throws', () => thenable(explode)],
    ['a thenable that never settles', () => thenable(() => {})],
    ['a symbol', () => Symbol('s')],
    ['a megabyte', () => 'x'.repeat(1_000_000)],
    ['a revoked proxy', () => revokedProxy()],
  ]
  it.each(things)('H1 fails by throwing %s', async (_what, thing) => {
    const { platform, marketplace } = await createScene({ ...QUICK })
    let calls = 0
    const dead: HandlerFailure[] = []
    marketplace.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
    marketplace.onPurchaseChange(() => {
      calls++
      throw thing()
    })
    marketplace.onPurchaseChange(() => Promise.reject(thing()))
    await bringAbout(platform, marketplace, ['purchased'])
    await until('the entry is dead', () => dead.length > 0)
    expect(calls).toBe(4)
    const [entry] = await marketplace.journal.list({ status: 'dead' })
    expect(entry?.error?.length).toBeLessThanOrEqual(500)
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it.each(things)('H1, H2 does not fail by returning %s, unless it rejects', async (what, thing) => {
    const { platform, marketplace } = await createScene({
      ...QUICK,
      handlers: { ...QUICK.handlers, timeoutMs: 100 },
    })
    const dead: HandlerFailure[] = []
    marketplace.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
    marketplace.onPurchaseChange(thing)
    await bringAbout(platform, marketplace, ['purchased'])
    await until('the handler has ended', async () => (await pendingChanges(marketplace)) === 0)
    expect(dead).toHaveLength(/thenable|proxy/.test(what) ? 1 : 0)
  })
})

describe('H2 a handler that never settles', () => {
  it('is aborted by its signal, and its slot becomes free', async () => {
    const { platform, marketplace } = await createScene({
      handlers: { concurrency: 1, timeoutMs: 100, retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    })
    const reasons: unknown[] = []
    const seen: string[] = []
    const dead: HandlerFailure[] = []
    marketplace.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
    marketplace.onPurchaseChange(({ business_uid }, { signal }) => {
      seen.push(business_uid)
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return business_uid === B1 ? new Promise(() => {}) : undefined
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await bringAbout(platform, marketplace, ['purchased'], 'b2')
    await until('the other entry is handled', () => seen.includes('b2'))
    await until('the first one is dead', () => dead.length > 0)
    expect(reasons).toEqual([expect.objectContaining({ code: 'handler_timeout' })])
    expect(dead).toEqual([
      expect.objectContaining({
        business_uid: B1,
        error: expect.objectContaining({ message: expect.stringContaining('0.1 s') }),
      }),
    ])
  })

  it('may end late: its result then changes nothing', async () => {
    const late = gate()
    const { platform, marketplace } = await createScene({
      handlers: { timeoutMs: 50, retryDelaysMs: [10] },
      ...internals({ pollMs: 50 }),
    })
    let calls = 0
    marketplace.onPurchaseChange(() => (++calls === 1 ? late.opened : undefined))
    await bringAbout(platform, marketplace, ['purchased'])
    await until(
      'the second try is done',
      async () => calls === 2 && (await pendingChanges(marketplace)) === 0,
    )
    late.fail(new Error('too late'))
    await bringAbout(platform, marketplace, ['purchased'], 'b2')
    await until('the next entry is handled', () => calls === 3)
    expect(await marketplace.journal.list({ status: 'dead' })).toEqual([])
  })
})

function thenable(then: () => void): object {
  return Object.defineProperty({}, 'then', { value: then })
}

function hostileError(): Error {
  return Object.defineProperties(new Error(), {
    stack: { get: explode },
    name: { get: explode },
    message: { get: explode },
  })
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
