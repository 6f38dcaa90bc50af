import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Store } from '../../../lib/store/port/store.js'
import { createDispatcher } from '../../../lib/work/handling/dispatcher.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { EVERY_TOPIC, ending, finish, handling, leasedEntries, retry } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { openMarketplace, startPlatform } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('entries that were handed out, on %s', (engineName) => {
  const engine = useEngine(engineName)
  const open = async () => openStoreWithSql(await engine.freshAddress())

  it('H215 are handled one after the other, although each payload takes longer than a lane may keep its slot', async () => {
    const { store } = await open()
    const { clock, jump } = jumpingClock()
    const { handlers, dispatcher } = dispatcherOver(store, {
      clock,
      async payloadOf([{ id }]) {
        jump(1_500)
        return id
      },
    })
    const seen: string[] = []
    handlers.onAny((id) => void seen.push(id))
    const ids = await accepted(store, 3)
    dispatcher.start()
    await until('all are handled', () => seen.length === 3)
    expect(seen).toEqual(ids)
    await dispatcher.close(0)
  })

  it.each([
    ['has deleted them', false],
    ['has deleted them while the app closes', true],
  ])('H216 are not handled after an erasure of this process %s', async (_, closes) => {
    const { store, engine: own } = await open()
    const ids = await accepted(store, 3)
    const [first, erasing, written] = [gate(), gate(), gate()]
    const write = own.write
    own.write = async (work) => {
      let isErasure = false
      const result = await write((trx) =>
        work({
          ...trx,
          query(query) {
            isErasure ||= /delete from journal where/.test(query.text)
            return trx.query(query)
          },
        }),
      )
      if (isErasure) {
        // The batch is committed, and the erasure continues when the result of the first entry has been written.
        first.open()
        await erasing.opened
      }
      return result
    }
    const marketplace = openMarketplace(await startPlatform(), {
      store: storeOption({
        ...store,
        async finishLanes(finishes) {
          const held = await store.finishLanes(finishes)
          written.open()
          return held
        },
      }),
    })
    const seen: string[] = []
    marketplace.onAny(async ({ id }) => {
      seen.push(id)
      if (seen.length === 1) await first.opened
    })
    await until('the first one is under way', () => seen.length === 1)
    const erased = marketplace.businesses.erase('b1', { actor: 'ada' })
    const closing = closes ? marketplace.close() : undefined
    await written.opened
    erasing.open()
    await Promise.allSettled([erased, closing])
    expect(seen).toEqual(ids.slice(0, 1))
  })

  it('H216 are not handled if an erasure of this process deletes them while they are being claimed', async () => {
    const { store } = await open()
    const [claimed, erased] = [gate(), gate()]
    const marketplace = openMarketplace(await startPlatform(), {
      store: storeOption({
        ...store,
        async claimLanes(options) {
          const claims = await store.claimLanes(options)
          if (claims.length > 0) {
            claimed.open()
            await erased.opened
          }
          return claims
        },
      }),
    })
    const seen: string[] = []
    marketplace.onAny(({ id }) => void seen.push(id))
    await accepted(store, 1)
    await claimed.opened
    await marketplace.businesses.erase('b1', { actor: 'ada' })
    erased.open()
    const ofAnother = eventOf('s2', 'b2')
    await store.accept([ofAnother])
    await until('the event of another business is handled', () => seen.includes(ofAnother.id))
    expect(seen).toEqual([ofAnother.id])
  })

  it('H216 are not handled after the erasure of the business that has their subscription, although they name another', async () => {
    const { store } = await open()
    const marketplace = openMarketplace(await startPlatform(), { store: storeOption(store) })
    const seen: string[] = []
    const [begun, erased] = [gate(), gate()]
    await handling(store, EVERY_TOPIC)
    marketplace.onAny(async ({ id }) => {
      seen.push(id)
      begun.open()
      await erased.opened
    })
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'erased' })
    const events = [eventOf('s1', 'other'), eventOf('s1', 'other')]
    await store.accept(events)
    await begun.opened
    await marketplace.businesses.erase('erased', { actor: 'ada' })
    erased.open()
    const later = eventOf('s2', 'other')
    await store.accept([later])
    await until('a later event is handled', () => seen.includes(later.id))
    expect(seen).toEqual([events[0]?.id, later.id])
  })

  it('H216 are not handled while it cannot be found out whether they were erased', async () => {
    const { store } = await open()
    let isAway = false
    const finished = gate()
    const { handlers, dispatcher } = dispatcherOver({
      ...store,
      async renewLane(lane, leaseMs) {
        if (isAway) throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is away')
        return store.renewLane(lane, leaseMs)
      },
      async finishLanes(finishes) {
        const held = await store.finishLanes(finishes)
        if (finishes.some(({ keepLease }) => !keepLease)) finished.open()
        return held
      },
      claimLanes: async (options) => (isAway ? [] : store.claimLanes(options)),
    })
    const seen: unknown[] = []
    handlers.onAny((id) => {
      seen.push(id)
      if (seen.length > 1) return
      isAway = true
      dispatcher.doubt(null)
    })
    const ids = await accepted(store, 2)
    dispatcher.start()
    await finished.opened
    expect(seen).toEqual(ids.slice(0, 1))
    isAway = false
    await until('the second one is handled', () => seen.length === 2)
    expect(seen).toEqual(ids)
    await dispatcher.close(0)
  })

  it('H220 go back at a close when their handler obeys its signal, and stay leased while it runs on', async () => {
    const { store } = await open()
    const [obeying, ignoring] = [dispatcherOver(store), dispatcherOver(store)]
    const late = gate()
    let begun = 0
    obeying.handlers.onAny((_id, { signal }) => {
      begun++
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const [id] = await accepted(store, 1)
    obeying.dispatcher.start()
    await until('the first handler runs', () => begun === 1)
    await obeying.dispatcher.close(20)
    ignoring.handlers.onAny(() => {
      begun++
      return late.opened
    })
    ignoring.dispatcher.start()
    await until('the second handler runs', () => begun === 2)
    await ignoring.dispatcher.close(20)
    expect(await leasedEntries(store)).toEqual([])
    expect(await store.listEntries({})).toMatchObject([{ id, status: 'pending', attempts: 0 }])
    late.open()
    await until('it is done', async () => (await store.getEntry(String(id)))?.status === 'done')
  })

  it('H222 are handled by all handlers after a replay that another process tried, also by those that returned before', async () => {
    const { store } = await open()
    const { handlers, dispatcher } = dispatcherOver(store)
    const calls = { good: 0, bad: 0 }
    handlers.onAny(() => void calls.good++)
    handlers.onAny(() => {
      calls.bad++
      throw new Error('not yet')
    })
    const [id] = await accepted(store, 1)
    dispatcher.start()
    const isTried = async () => (await store.getEntry(String(id)))?.attempts === 1
    await until('the first try has ended', isTried)
    await dispatcher.halt()
    expect(await store.replayEntry(String(id))).toBe(true)
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, retry(0))),
    )
    dispatcher.resume()
    await until('it is tried again', () => calls.bad === 2)
    expect(calls).toEqual({ good: 2, bad: 2 })
    await dispatcher.close(0)
  })

  it('H6 are not leased again by their process while their handler runs on, although the lease that a replay took is over', async () => {
    const { store } = await open()
    let claims = 0
    const leaseMs = 300
    const { handlers, dispatcher } = dispatcherOver(
      {
        ...store,
        claimLanes(options) {
          claims++
          return store.claimLanes(options)
        },
      },
      { leaseMs, renewEveryMs: 100 },
    )
    const late = gate()
    let [calls, running, most] = [0, 0, 0]
    handlers.onAny(async () => {
      calls++
      most = Math.max(most, ++running)
      await late.opened
      running--
    })
    const [id] = await accepted(store, 1)
    dispatcher.start()
    await until('its handler runs', () => calls === 1)
    await store.replayEntry(id as string)
    const overAt = Date.now() + 2 * leaseMs
    await until('the lease is over', () => Date.now() > overAt)
    const before = claims
    await until('it has looked for more', () => claims > before + 2)
    expect(calls).toBe(1)
    late.open()
    await until('it is handled again', () => calls === 2)
    expect(most).toBe(1)
    await dispatcher.close(0)
  })

  it('H223 are waited for before a suspect begins, although their lease is lost', async () => {
    const { store } = await open()
    const lost = gate()
    const { handlers, dispatcher } = dispatcherOver(
      { ...store, renewLane: async () => false },
      { leaseMs: 1_000, renewEveryMs: 50 },
    )
    const late = gate()
    handlers.onAny((_id, { signal }) => {
      signal.addEventListener('abort', () => lost.open())
      return late.opened
    })
    await accepted(store, 1)
    dispatcher.start()
    await lost.opened
    let hasEnded = false
    const halted = dispatcher.halt().then(() => {
      hasEnded = true
    })
    for (let i = 0; i < 10; i++) await store.counts()
    expect(hasEnded).toBe(false)
    late.open()
    await halted
    await dispatcher.close(0)
  })
})

/** Accepts events of one subscription, and returns their ids. */
async function accepted(store: Store, count: number) {
  await handling(store, EVERY_TOPIC)
  const events = Array.from({ length: count }, () => ({ ...eventOf('s1'), refresh: null }))
  await store.accept(events)
  return events.map(({ id }) => id)
}

function dispatcherOver(store: Store, options: Partial<Parameters<typeof createDispatcher>[0]> = {}) {
  const handlers = createHandlers()
  const dispatcher = createDispatcher({
    store,
    handlers,
    payloadOf: ([{ id }]) => id,
    marketplace: () => undefined,
    concurrency: 8,
    timeoutMs: 30_000,
    retryDelaysMs: [HOUR, HOUR],
    retentionMs: DAY,
    leaseMs: 60_000,
    renewEveryMs: 10_000,
    pollMs: 50,
    clock: jumpingClock().clock,
    onDead() {},
    onError() {},
    ...options,
  })
  return { handlers, dispatcher }
}
