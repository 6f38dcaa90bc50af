import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { HOUR, systemClock } from '../lib/clock.js'
import type { DeadEntry, Marketplace, PurchaseChange } from '../lib/index.js'
import type { ClaimLanes, Store } from '../lib/store/store.js'
import { storeFor } from '../lib/store-option.js'
import { type Simulator, sampleDelivery } from '../lib/testing/index.js'
import { temporaryFolder } from './support/clean-up.js'
import { createScene, openMarketplace, startPlatform } from './support/scene.js'
import { gate, until } from './support/until.js'

const B1 = 'business-one'
const QUICK = { pollMs: 50, handlerRetryDelaysMs: [10, 10, 10] }

describe('every change', () => {
  it('reaches every handler with its full description', async () => {
    const { platform, marketplace } = await createScene()
    const [first, second]: [PurchaseChange[], PurchaseChange[]] = [[], []]
    marketplace.onPurchaseChange((change) => void first.push(change))
    marketplace.onPurchaseChange((change, { attempt, marketplace: given, signal }) => {
      second.push(change)
      expect([attempt, given === marketplace, signal.aborted]).toEqual([1, true, false])
    })
    const record = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('both', () => first.length + second.length === 2)
    platform.cancel(record.uid)
    await until('both again', () => first.length + second.length === 4)

    expect(first).toEqual(second)
    expect(first[0]).toEqual({
      gone: null,
      id: expect.any(String),
      business_uid: B1,
      subscription_uid: record.uid,
      from: null,
      to: 'purchased',
      entitled: true,
      record: expect.objectContaining({
        uid: record.uid,
        purchase_price: '9.99',
        purchase_state: 'purchased',
      }),
      observedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    })
    expect(first[1]).toMatchObject({ from: 'purchased', to: 'canceled', entitled: false })
    expect(first[1]?.id).not.toBe(first[0]?.id)
  })

  it('includes whether the business may use the app, considering all its subscriptions', async () => {
    const { platform, marketplace } = await createScene()
    const seen: [string | null, boolean][] = []
    marketplace.onPurchaseChange(({ to, entitled }) => void seen.push([to, entitled]))
    const old = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the first', () => seen.length === 1)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the second', () => seen.length === 2)
    platform.cancel(old.uid)
    await until('the end of the first', () => seen.length === 3)
    expect(seen).toEqual([
      ['purchased', true],
      ['purchased', true],
      ['canceled', true],
    ])
  })

  it('D1 is delivered once for many deliveries about it, and never when the state stays the same', async () => {
    const { platform, marketplace } = await createScene()
    const seen: PurchaseChange[] = []
    marketplace.onPurchaseChange((change) => void seen.push(change))
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 20 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    platform.touch(uid)
    await marketplace.refresh(B1)
    platform.cancel(uid)
    await platform.settled()
    await until('the end', () => seen.some(({ to }) => to === 'canceled'))
    expect(seen.map(({ from, to }) => [from, to])).toEqual([
      [null, 'purchased'],
      ['purchased', 'canceled'],
    ])
  })

  it('waits in the journal until a handler of changes is added', async () => {
    const { platform, marketplace } = await createScene()
    await bringAbout(platform, marketplace, ['purchased', 'suspended', 'purchased'])
    expect(await marketplace.journal.list({ kind: 'change', status: 'waiting' })).toHaveLength(3)
    const seen: (string | null)[] = []
    marketplace.onPurchaseChange(({ to }) => void seen.push(to))
    await until('all three', () => seen.length === 3)
    expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
    await until('the journal is done', async () => (await pendingChanges(marketplace)) === 0)
  })

  it('H5 is delivered again under the same id by the next process when a process ends during its handler', async () => {
    const platform = await startPlatform()
    const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
    const ids: string[] = []
    const first = openMarketplace(platform, { store, closeGraceMs: 50 })
    first.onPurchaseChange(({ id }) => {
      ids.push(id)
      return new Promise(() => {})
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.track({ subscription_uid: uid, business_uid: B1 })
    await until('the handler has been called', () => ids.length === 1)
    await first.close()

    const second = openMarketplace(platform, { store })
    second.onPurchaseChange(({ id }) => void ids.push(id))
    await until('it is called again', () => ids.length === 2)
    expect(ids[1]).toBe(ids[0])
    await until('it is done', async () => (await pendingChanges(second)) === 0)
    expect(ids).toHaveLength(2)
  })
})

describe('the changes of one subscription', () => {
  it('H6 arrive in order and never two at once, while changes of other subscriptions go on', async () => {
    const { platform, marketplace } = await createScene({ worker: { ...QUICK, concurrency: 4 } })
    const states = ['purchased', 'suspended', 'purchased', 'suspended', 'canceled']
    const uids = []
    for (const business of ['b1', 'b2', 'b3']) {
      uids.push(await bringAbout(platform, marketplace, states, business))
    }
    const running = new Map<string, number>()
    const seen = new Map<string, (string | null)[]>()
    let most = 0
    const overlaps: string[] = []
    marketplace.onPurchaseChange(async ({ subscription_uid: uid, to }) => {
      // Not an `expect`: an error in a handler is retried, and the test would not see it.
      if ((running.get(uid) ?? 0) > 0) overlaps.push(`${uid} ${to}`)
      running.set(uid, (running.get(uid) ?? 0) + 1)
      most = Math.max(
        most,
        [...running.values()].reduce((sum, n) => sum + n),
      )
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      seen.set(uid, [...(seen.get(uid) ?? []), to])
      running.set(uid, 0)
    })
    await until('all of them', async () => (await pendingChanges(marketplace)) === 0)
    expect(overlaps).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(uids.map((uid) => [uid, states])))
    expect(most).toBeGreaterThan(1)
    expect(await marketplace.journal.list({ status: 'dead' })).toEqual([])
  })

  it('H6 wait behind a change that fails, while changes of other subscriptions go on', async () => {
    const { platform, marketplace } = await createScene({ worker: QUICK })
    const failing = await bringAbout(platform, marketplace, ['purchased', 'suspended'], 'b1')
    await bringAbout(platform, marketplace, ['purchased', 'suspended'], 'b2')
    const seen: string[] = []
    marketplace.onPurchaseChange(({ subscription_uid, to, business_uid }, { attempt }) => {
      seen.push(`${business_uid} ${to} ${attempt}`)
      if (subscription_uid === failing && to === 'purchased' && attempt < 3) throw new Error('not yet')
    })
    await until('all of them', async () => (await pendingChanges(marketplace)) === 0)
    expect(seen.filter((each) => each.startsWith('b1'))).toEqual([
      'b1 purchased 1',
      'b1 purchased 2',
      'b1 purchased 3',
      'b1 suspended 1',
    ])
    expect(seen.filter((each) => each.startsWith('b2'))).toEqual(['b2 purchased 1', 'b2 suspended 1'])
  })
})

describe('a handler that fails', () => {
  it('H1 is called again under the same id until its entry is dead, reported once, and revived by a replay', async () => {
    const { platform, marketplace } = await createScene({ worker: QUICK })
    const calls: { id: string; attempt: number }[] = []
    const dead: DeadEntry[] = []
    let isBroken = true
    marketplace.onDead((entry) => void dead.push(entry))
    marketplace.onPurchaseChange(({ id }, { attempt }) => {
      calls.push({ id, attempt })
      if (isBroken) throw new TypeError('the mail server is away')
    })
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('it is dead', () => dead.length > 0)
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(1)
    expect(dead).toEqual([
      {
        id: calls[0]?.id,
        kind: 'change',
        name: '',
        business_uid: B1,
        subscription_uid: uid,
        attempts: 4,
        error: 'TypeError: the mail server is away',
      },
    ])
    const [entry] = await marketplace.journal.list({ status: 'dead' })
    expect(entry).toMatchObject({
      id: calls[0]?.id,
      attempts: 4,
      error: 'TypeError: the mail server is away',
    })
    expect((await marketplace.health()).status).toBe('degraded')
    // It delays no caller, and access does not depend on it.
    await bringAbout(platform, marketplace, ['purchased'], 'b2')
    expect(await marketplace.isEntitled(B1)).toBe(true)

    isBroken = false
    calls.splice(0)
    expect(await marketplace.journal.replay(entry?.id as string)).toBe(true)
    await until('the replay', () => calls.some(({ id }) => id === entry?.id))
    expect(calls.find(({ id }) => id === entry?.id)?.attempt).toBe(1)
    expect(await marketplace.journal.replay('no-such-id')).toBe(false)
  })

  it('is called again alone: handlers that returned are not called again', async () => {
    const { platform, marketplace } = await createScene({ worker: QUICK })
    const calls = { good: 0, bad: 0 }
    marketplace.onPurchaseChange(() => void calls.good++)
    marketplace.onPurchaseChange(() => {
      if (++calls.bad < 3) throw new Error('not yet')
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await until('the third try', async () => calls.bad === 3 && (await pendingChanges(marketplace)) === 0)
    expect(calls).toEqual({ good: 1, bad: 3 })
  })

  it('is called by a replay together with the handlers that returned', async () => {
    const { marketplace, deliver } = await createScene({
      worker: { pollMs: 50, handlerRetryDelaysMs: [HOUR] },
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
    await until('the second', () => calls.bad === 2)
    expect(calls).toEqual({ good: 2, bad: 2 })
  })

  it('does not end the process through a listener whose promise rejects', async () => {
    const { marketplace, deliver } = await createScene({ worker: { pollMs: 50, handlerRetryDelaysMs: [] } })
    const dead: string[] = []
    marketplace.onDead(async () => explode())
    marketplace.onDead(({ id }) => void dead.push(id))
    marketplace.on('application/installed', () => explode())
    const ids = [await deliver(sampleDelivery('application/installed'))].map(({ id }) => id)
    await until('it is dead', () => dead.length === 1)
    // An unhandled rejection would have ended this process by now.
    await new Promise((resolve) => setImmediate(resolve))
    expect(dead).toEqual(ids)
  })

  const things: [string, () => unknown][] = [
    ['undefined', () => undefined],
    ['null', () => null],
    ['a frozen object', () => Object.freeze({})],
    ['an object without a prototype', () => Object.create(null)],
    ['an error that throws when looked at', () => hostileError()],
    ['a thenable that throws', () => thenable(explode)],
    ['a thenable that never settles', () => thenable(() => {})],
    ['a symbol', () => Symbol('s')],
    ['a megabyte', () => 'x'.repeat(1_000_000)],
    ['a revoked proxy', () => revokedProxy()],
  ]
  it.each(things)('H1 fails by throwing %s', async (_what, thing) => {
    const { platform, marketplace } = await createScene({ worker: QUICK })
    let calls = 0
    const dead: DeadEntry[] = []
    marketplace.onDead((entry) => void dead.push(entry))
    marketplace.onPurchaseChange(() => {
      calls++
      throw thing()
    })
    marketplace.onPurchaseChange(() => Promise.reject(thing()))
    await bringAbout(platform, marketplace, ['purchased'])
    await until('it is dead', () => dead.length > 0)
    expect(calls).toBe(4)
    expect(dead[0]?.error.length).toBeLessThanOrEqual(500)
    expect(await marketplace.isEntitled(B1)).toBe(true)
  })

  it.each(things)('H1, H2 does not fail by returning %s, unless it rejects', async (what, thing) => {
    const { platform, marketplace } = await createScene({ worker: { ...QUICK, handlerTimeoutMs: 100 } })
    const dead: DeadEntry[] = []
    marketplace.onDead((entry) => void dead.push(entry))
    marketplace.onPurchaseChange(thing)
    await bringAbout(platform, marketplace, ['purchased'])
    await until('it has ended', async () => (await pendingChanges(marketplace)) === 0)
    expect(dead).toHaveLength(/thenable|proxy/.test(what) ? 1 : 0)
  })

  it('does not stop the other listeners for dead entries', async () => {
    const { platform, marketplace } = await createScene({ worker: { pollMs: 50, handlerRetryDelaysMs: [] } })
    const dead: string[] = []
    marketplace.onDead(() => explode())
    marketplace.onDead(({ id }) => void dead.push(id))
    marketplace.onPurchaseChange(() => explode())
    await bringAbout(platform, marketplace, ['purchased', 'suspended'])
    await until('both', () => dead.length === 2)
  })
})

describe('H2 a handler that never settles', () => {
  it('is aborted by its signal, and its slot becomes free', async () => {
    const { platform, marketplace } = await createScene({
      worker: { pollMs: 50, concurrency: 1, handlerTimeoutMs: 100, handlerRetryDelaysMs: [] },
    })
    const reasons: unknown[] = []
    const seen: string[] = []
    const dead: DeadEntry[] = []
    marketplace.onDead((entry) => void dead.push(entry))
    marketplace.onPurchaseChange(({ business_uid }, { signal }) => {
      seen.push(business_uid)
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return business_uid === B1 ? new Promise(() => {}) : undefined
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await bringAbout(platform, marketplace, ['purchased'], 'b2')
    await until('the other', () => seen.includes('b2'))
    expect(reasons).toEqual([expect.objectContaining({ code: 'handler_timeout' })])
    expect(dead).toEqual([
      expect.objectContaining({ business_uid: B1, error: expect.stringContaining('0.1 s') }),
    ])
  })

  it('may end late: its result then changes nothing', async () => {
    const late = gate()
    const { platform, marketplace } = await createScene({
      worker: { pollMs: 50, handlerTimeoutMs: 50, handlerRetryDelaysMs: [10] },
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
    await until('the next', () => calls === 3)
    expect(await marketplace.journal.list({ status: 'dead' })).toEqual([])
  })
})

describe('a handler', () => {
  it('H7 may call any method of the marketplace', async () => {
    const { platform, marketplace } = await createScene({ worker: { pollMs: 50, concurrency: 1 } })
    const answers: unknown[] = []
    marketplace.onPurchaseChange(async ({ business_uid, subscription_uid, id }, { marketplace: m }) => {
      if (answers.length > 0) return
      answers.push(
        await m.isEntitled(business_uid),
        (await m.refresh(business_uid)).entitled,
        (await m.explain(business_uid)).reason,
        await m.track({ subscription_uid, business_uid }),
        (await m.journal.list({ status: 'pending' })).some((entry) => entry.id === id),
        (await m.health()).status,
      )
      m.onPurchaseChange(() => {})()
    })
    await bringAbout(platform, marketplace, ['purchased'])
    await until(
      'it has returned',
      async () => answers.length > 0 && (await pendingChanges(marketplace)) === 0,
    )
    expect(answers).toEqual([true, true, 'purchased', undefined, true, 'ok'])
  })

  it('H7 may even close the marketplace and wait for it', async () => {
    const { platform, marketplace } = await createScene({ closeGraceMs: 100 })
    const closed = gate()
    marketplace.onPurchaseChange(async (_change, { marketplace: m }) => {
      await m.close()
      closed.open()
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('closed', async () => (await closed.opened) === undefined)
  })

  it.each([{ state: 'dead' }, { status: 'ded' }, { limit: '10' }, { businessUid: '' }, null, 'dead'])(
    'of an operator gets an error, not all entries, when it lists %j',
    async (filter) => {
      const marketplace = openMarketplace(await startPlatform())
      await expect(marketplace.journal.list(filter as never)).rejects.toMatchObject({
        code: 'argument_invalid',
        message: expect.stringMatching(/^Cannot list the journal: ./),
      })
    },
  )

  it('H6 is never called twice at once, also when its entry is replayed', async () => {
    const { marketplace, deliver } = await createScene({ worker: { pollMs: 50, leaseMs: 1_000 } })
    const [running, calls]: [Set<number>, number[]] = [new Set(), []]
    let attempts = 0
    marketplace.on('application/installed', async (_event, { signal }) => {
      const own = ++attempts
      running.add(own)
      calls.push(running.size)
      // Until its signal aborts, because its entry is leased to another claimer.
      if (own === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      running.delete(own)
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await until('it runs', () => attempts === 1)
    expect(await marketplace.journal.replay(id)).toBe(true)
    await until('it is called again', () => attempts === 2)
    expect(calls).toEqual([1, 1])
  })

  it('that unsubscribes while a change is on its way leaves the change to the next handler', async () => {
    const inner = storeFor('sqlite::memory:', systemClock)
    let leave = () => {}
    const store = new Proxy(inner, {
      get(target, name: keyof Store) {
        const method = target[name] as (...given: unknown[]) => unknown
        if (name !== 'claimLanes') return method.bind(target)
        return async (options: ClaimLanes) => {
          const claimed = await inner.claimLanes(options)
          if (claimed.some(({ entries }) => entries.some(({ kind }) => kind === 'change'))) leave()
          return claimed
        }
      },
    })
    const { platform, marketplace } = await createScene({ store })
    const seen: string[] = []
    const unsubscribe = marketplace.onPurchaseChange(() => void seen.push('the one that left'))
    let hasLeft = false
    leave = () => {
      hasLeft = true
      unsubscribe()
    }
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it is on its way', () => hasLeft)
    expect(await marketplace.journal.list({ kind: 'change' })).toMatchObject([
      { status: 'pending', attempts: 0 },
    ])
    leave = () => {}
    marketplace.onPurchaseChange(() => void seen.push('the next'))
    await until('it is called', () => seen.length > 0)
    expect(seen).toEqual(['the next'])
  })

  it.each([undefined, null, 'application/installed', {}])('%p is refused at registration', async (what) => {
    const marketplace = openMarketplace(await startPlatform())
    const handler = what as never
    for (const register of [
      () => marketplace.on('application/installed', handler),
      () => marketplace.onAny(handler),
      () => marketplace.onUnrecognised(handler),
      () => marketplace.onPurchaseChange(handler),
      () => marketplace.onDead(handler),
    ]) {
      expect(register).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
    }
  })

  it('H9 gets a frozen payload, so it cannot change the payload of another handler', async () => {
    const { platform, marketplace } = await createScene()
    const kept: PurchaseChange[] = []
    const faults: unknown[] = []
    marketplace.onPurchaseChange((change) => {
      for (const spoil of [
        () => Object.assign(change, { entitled: false }),
        () => Object.assign(change.record as object, { purchase_state: 'suspended' }),
        () => Reflect.deleteProperty(change, 'id') || explode(),
      ]) {
        try {
          spoil()
        } catch (error) {
          faults.push(error)
        }
      }
    })
    marketplace.onPurchaseChange((change) => void kept.push(change))
    await bringAbout(platform, marketplace, ['purchased'])
    await until('both', () => kept.length === 1 && faults.length === 3)
    expect(kept[0]).toMatchObject({ entitled: true, record: { purchase_state: 'purchased' } })
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: true })
  })

  it('gets nothing after it unsubscribed, and unsubscribing twice does no harm', async () => {
    const { platform, marketplace } = await createScene()
    const seen: string[] = []
    const unsubscribe = marketplace.onPurchaseChange(() => void seen.push('first'))
    marketplace.onPurchaseChange(() => void seen.push('second'))
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('both', () => seen.length === 2)
    unsubscribe()
    unsubscribe()
    platform.cancel(uid)
    await until('the second alone', () => seen.length === 3)
    expect(seen).toEqual(['first', 'second', 'second'])
  })

  it('registered twice is called twice, and each registration ends separately', async () => {
    const { platform, marketplace } = await createScene()
    let calls = 0
    const handler = () => void calls++
    const unsubscribe = marketplace.onPurchaseChange(handler)
    marketplace.onPurchaseChange(handler)
    const uid = await bringAbout(platform, marketplace, ['purchased'])
    await until('two calls', () => calls === 2)
    unsubscribe()
    platform.cancel(uid)
    await until('one more', async () => calls === 3 && (await pendingChanges(marketplace)) === 0)
  })

  it('of events gets each by its name, and onAny gets all, at least once and in order per subscription', async () => {
    const { platform, marketplace, deliver } = await createScene({ worker: QUICK })
    const [named, any, odd]: string[][] = [[], [], []]
    const tries: { id: string; receivedAt: string }[] = []
    marketplace.on('purchasable_subscription/update', ({ name, data, id, receivedAt }) => {
      named?.push(name, data.subscription_uid)
      // Checked at the end, because an error in a handler does not fail this test.
      tries.push({ id, receivedAt })
    })
    marketplace.on('purchasable_subscription/update', ({ id, receivedAt }, { attempt }) => {
      tries.push({ id, receivedAt })
      if (attempt === 1) throw new Error('not yet')
    })
    marketplace.onAny(({ name }) => void any?.push(name))
    marketplace.onUnrecognised(({ envelope }) => void odd?.push(String(envelope)))
    const uid = await bringAbout(platform, marketplace, ['purchased', 'suspended'])
    platform.install(B1)
    await deliver('"what is this"')
    await until('all', () => (any?.length ?? 0) >= 3 && (odd?.length ?? 0) >= 1)
    expect(named).toEqual(['purchasable_subscription/update', uid])
    expect(any).toEqual([
      'purchasable_subscription/create',
      'purchasable_subscription/update',
      'application/installed',
    ])
    expect(odd).toEqual(['what is this'])
    await until('the second try', () => tries.length === 3)
    const [entry] = (await marketplace.journal.list({ kind: 'event' })).filter(({ name }) =>
      /update/.test(name),
    )
    expect(tries).toEqual(Array(3).fill({ id: entry?.id, receivedAt: entry?.receivedAt }))
  })
})

/** A purchase, and moves until each of the states has been seen by the marketplace. */
async function bringAbout(
  platform: Simulator,
  marketplace: Marketplace,
  states: readonly string[],
  business_uid = B1,
): Promise<string> {
  const { uid } = platform.purchase({
    business_uid,
    payment: states[0] === 'purchased' ? 'succeeded' : 'failed',
  })
  for (const [i, state] of states.entries()) {
    if (i > 0 && state === 'purchased') platform.confirmPayment(uid)
    if (i > 0 && state === 'suspended') platform.paymentIssue(uid)
    if (i > 0 && state === 'canceled') platform.cancel(uid)
    await until(`${state} is seen`, async () => {
      const { subscriptions } = await marketplace.explain(business_uid)
      return subscriptions.some((each) => each.subscription_uid === uid && each.purchase_state === state)
    })
  }
  return uid
}

/** Changes that have not been handled to the end. */
async function pendingChanges({ journal }: Marketplace): Promise<number> {
  const changes = await journal.list({ kind: 'change' })
  return changes.filter(({ status }) => status === 'pending' || status === 'waiting').length
}

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

function explode(): never {
  throw new Error('a hostile value')
}
