import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, systemClock } from '../../../lib/base/clock.js'
import type { HandlerFailure } from '../../../lib/index.js'
import type { Store } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { createDispatcher } from '../../../lib/work/handling/dispatcher.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { createPayloads } from '../../../lib/work/handling/payloads.js'
import { EVERY_TOPIC, eventOf, handling } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, openMarketplace } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('the queue on %s', (name) => {
  const engine = useEngine(name)

  it('H20 loses, ends and delays no event when a process without handlers runs', async () => {
    const store = storeFor(await engine.freshAddress(), systemClock)
    const retries = { handlers: { retryDelaysMs: [200, 200, 200] }, ...internals({ pollMs: 20 }) }
    const { platform, marketplace, deliver } = await createScene({
      store: storeOption(store),
      ...retries,
    })
    let calls = 0
    marketplace.on('application/installed', () => {
      if (++calls < 3) throw new Error('not yet')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await until('the first try', () => calls === 1)
    const script = openMarketplace(platform, { store: storeOption(store), ...internals({ pollMs: 20 }) })
    await script.start()
    await until('the event is handled', () => calls === 3)
    await until(
      'the entry is done',
      async () => (await marketplace.journal.list({ status: 'done' })).length === 1,
    )
    expect(await script.journal.list({})).toMatchObject([{ id, status: 'done', attempts: 3 }])
  })

  it('H21 marks an event without a handler as unhandled, and no later handler gets it', async () => {
    const { marketplace, deliver } = await createScene({ store: await engine.freshAddress() })
    const { id } = await deliver(sampleDelivery('application/installed'))
    expect(await marketplace.journal.list({})).toMatchObject([{ id, status: 'unhandled', attempts: 0 }])
    expect((await marketplace.health()).counts).toMatchObject({
      pending: 0,
      retrying: 0,
      oldestPendingMs: null,
    })
  })
})

describe('H22 100,000 events behind a handler that hangs', () => {
  it('cost the other events nothing', async () => {
    const store = storeFor('sqlite::memory:', systemClock)
    await store.open()
    await handling(store, EVERY_TOPIC)
    for (let i = 0; i < 100; i++) await store.accept(many(1_000, 'hung'))
    const options = { limit: 8, entryLimit: 128, leaseMs: HOUR, topics: EVERY_TOPIC, exceptKeys: [] }
    expect(await store.claimLanes(options)).toHaveLength(1)
    const look = async () => {
      const began = performance.now()
      for (let i = 0; i < 100; i++) expect(await store.claimLanes(options)).toEqual([])
      return (performance.now() - began) / 100
    }
    // Took 40 ms when each look read all waiting entries; now it needs a few statements.
    expect(await look()).toBeLessThan(10)
    await store.close()
  }, 60_000)
})

describe('H23 a restart with thousands of events whose handler returns at once', () => {
  it('lets the event loop run, and keeps the order of each key', async () => {
    const store = storeFor('sqlite::memory:', systemClock)
    await store.open()
    await handling(store, EVERY_TOPIC)
    for (let i = 0; i < 10; i++) await store.accept(many(500, undefined, i * 500))
    const seen: string[] = []
    let turns = 0
    const { dispatcher, handlers } = dispatcherOver(store)
    handlers.onAny(({ id }) => void seen.push(id))
    const turn = () => {
      turns++
      if (seen.length < 5_000) setImmediate(turn)
    }
    setImmediate(turn)
    dispatcher.start()
    await until('all events are handled', () => seen.length === 5_000)
    // If all ran in one turn of microtasks, there would be two or three turns; a busy machine once had only 50.
    expect(turns).toBeGreaterThan(20)
    for (const key of ['k0', 'k249']) {
      const ofKey = seen.filter((id) => id.endsWith(` ${key}`)).map((id) => Number(id.split(' ')[0]))
      expect(ofKey).toEqual([...ofKey].sort((a, b) => a - b))
      expect(ofKey).toHaveLength(20)
    }
    await dispatcher.close(1_000)
    await store.close()
  }, 60_000)
})

describe('H24 a wall clock that leaps', () => {
  it.each([70_000, -70_000, 24 * HOUR])('by %d ms starts no second handler of one key', async (ms) => {
    const { clock, leap } = jumpingClock()
    const store = storeFor('sqlite::memory:', clock)
    await store.open()
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1', { id: 'e1', key: 'k' }), eventOf('s1', { id: 'e2', key: 'k' })])
    const { dispatcher, handlers } = dispatcherOver(store, clock)
    const open = gate()
    let running = 0
    const calls: [string, number][] = []
    handlers.onAny(async ({ id }) => {
      calls.push([id, ++running])
      await open.opened
      running--
    })
    dispatcher.start()
    await until('the first handler is called', () => calls.length === 1)
    leap(ms)
    for (let i = 0; i < 20; i++) {
      dispatcher.wake()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(calls).toEqual([['e1', 1]])
    open.open()
    await until('the second handler is called', () => calls.length >= 2)
    expect(calls.every(([, atOnce]) => atOnce === 1)).toBe(true)
    await dispatcher.close(1_000)
    await store.close()
  })
})

describe('H25 a handler that fails', () => {
  it('is reported at each try, causes one warning, and is shown by health while it is retried', async () => {
    const { marketplace, deliver } = await createScene({
      handlers: { retryDelaysMs: [10, HOUR] },
      ...internals({ pollMs: 20 }),
    })
    const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const failures: HandlerFailure[] = []
    marketplace.onHandlerError(() => {
      throw new Error('a listener that fails')
    })
    marketplace.onHandlerError((failure) => void failures.push(failure))
    marketplace.on('application/installed', () => {
      throw new TypeError('the mail server is away')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await until('two tries have failed', () => failures.length === 2)
    expect(failures.map(({ attempt, retryInMs }) => [attempt, retryInMs])).toEqual([
      [1, 10],
      [2, HOUR],
    ])
    expect(failures[0]).toMatchObject({
      id,
      kind: 'event',
      name: 'application/installed',
      business_uid: sampleDelivery('application/installed').data.business_id,
      subscription_uid: null,
      error: expect.objectContaining({ message: 'the mail server is away' }),
    })
    await until(
      'the entry is retried',
      async () => (await marketplace.journal.list({ status: 'retrying' })).length === 1,
    )
    const health = await marketplace.health()
    expect(health).toMatchObject({ status: 'degraded', counts: { retrying: 1, pending: 1 } })
    expect(health.problems).toMatchObject([
      { code: 'entries_retrying', message: expect.stringMatching(/^1 journal entries are tried again/) },
    ])
    // Its next try is due in an hour.
    expect(health.counts?.oldestPendingMs).toBeNull()
    const warnings = emitWarning.mock.calls.map(([text]) => String(text))
    emitWarning.mockRestore()
    expect(warnings.filter((text) => text.includes('the mail server is away'))).toHaveLength(1)
  })
})

/** Events of one key, or of 250 keys in turn. The id contains the event's number and its key. */
function many(count: number, key?: string, first = 0) {
  return Array.from({ length: count }, (_, i) => {
    const own = key ?? `k${(first + i) % 250}`
    const event = eventOf('s1', { key: own, refresh: null })
    return key === undefined ? { ...event, id: `${first + i} ${own}` } : event
  })
}

function dispatcherOver(store: Store, clock = systemClock) {
  const handlers = createHandlers()
  const dispatcher = createDispatcher({
    store,
    handlers,
    payloadOf: createPayloads({
      classify: () => ({ recognised: false }),
      store,
      answerOf: () => ({ entitled: true, known: true, meaning: '' }),
      entitlementChangeOf: async () => undefined,
    }),
    marketplace: () => undefined,
    concurrency: 8,
    timeoutMs: 30_000,
    retryDelaysMs: [],
    retentionMs: DAY,
    leaseMs: 60_000,
    renewEveryMs: 10_000,
    pollMs: 50,
    clock,
    onDead() {},
    onError() {},
  })
  return { handlers, dispatcher }
}
