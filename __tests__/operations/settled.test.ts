import { describe, expect, it } from '@jest/globals'
import { HOUR, systemClock } from '../../lib/base/clock.js'
import { createSettling } from '../../lib/operations/settled.js'
import { storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { withStoreFaults } from '../support/engines/store-faults.js'
import { storeOption } from '../support/engines/store-option.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { createScene, openMarketplace } from '../support/scene.js'
import { gate, until } from '../support/until.js'

describe.each(ENGINE_NAMES)('settled() on %s', (name) => {
  const engine = useEngine(name)

  it('queries in one statement: between two, a read could end and its change would be missed', async () => {
    const { store, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    const queries = await queriesOf(() => store.dueWork({ withinMs: 1_000, topics: ['change'] }))
    expect(queries.filter(({ text }) => /from (lanes|subscriptions)/.test(text))).toHaveLength(1)
  })

  it('resolves when every delivery is read and its changes are handled', async () => {
    const { platform, marketplace } = await createScene({ store: await engine.freshAddress() })
    const handled: string[] = []
    marketplace.onPurchaseChange(async ({ business_uid }) => {
      await new Promise(setImmediate)
      handled.push(business_uid)
    })
    for (let i = 0; i < 20; i++) platform.purchase({ business_uid: `b${i}`, payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    expect(handled.sort()).toEqual(Array.from({ length: 20 }, (_, i) => `b${i}`).sort())
    expect(await marketplace.isEntitled('b7')).toBe(true)
  })
})

describe('settled() of several processes', () => {
  const engine = useEngine('PostgreSQL')

  it('waits for the work of another process', async () => {
    const store = await engine.freshAddress()
    const { platform, deliver } = await createScene({ store, worker: false })
    const { opened, open } = gate()
    const worker = openMarketplace(platform, { store })
    let isDone = false
    worker.on('application/installed', async () => {
      await opened
      isDone = true
    })
    await worker.start()
    const receiver = openMarketplace(platform, { store, worker: false })
    await until('the store knows the handler', async () => {
      await deliver(sampleDelivery('application/installed'))
      return (await worker.journal.list({ status: 'pending' })).length > 0
    })
    const idle = receiver.settled().then(() => isDone)
    open()
    expect(await idle).toBe(true)
  })

  it('says why at once when the store belongs to another app now, also while a new handler waits for the store', async () => {
    const store = await engine.freshAddress()
    quietWarnings()
    const { platform, marketplace } = await createScene({ store })
    await marketplace.start()
    await openMarketplace(platform, { store, app: { clientId: 'other-app' }, adoptStore: true }).start()
    await until('it has noticed', async () => (await marketplace.health()).status === 'failing')
    marketplace.on('application/installed', () => {})
    await expect(marketplace.settled({ timeoutMs: 2_000 })).rejects.toMatchObject({
      code: 'store_of_another_app',
      message: expect.stringContaining('adoptStore: true'),
    })
  })
})

describe('settled()', () => {
  it('waits for a running handler, and rejects with its name when it takes too long', async () => {
    const { marketplace, deliver } = await createScene()
    const { opened, open } = gate()
    marketplace.on('application/installed', () => opened)
    await deliver(sampleDelivery('application/installed'))
    await expect(marketplace.settled({ timeoutMs: 50 })).rejects.toMatchObject({
      code: 'not_settled',
      message: 'Cannot settle within 50 ms: an entry of the journal is due or under way',
    })
    open()
    await marketplace.settled()
  })

  it('waits for a retry that is near, but not for a distant one', async () => {
    const { marketplace, deliver } = await createScene({
      handlers: { retryDelaysMs: [20, HOUR] },
      ...internals({ pollMs: 20 }),
    })
    quietWarnings()
    const attempts: number[] = []
    marketplace.on('application/installed', (_event, { attempt }) => {
      attempts.push(attempt)
      throw new Error('not yet')
    })
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(attempts).toEqual([1, 2])
  })

  it('waits for a delivery that is being accepted', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace, deliver } = await createScene({ store: storeOption(store) })
    const handled: string[] = []
    marketplace.on('application/installed', ({ id }) => void handled.push(id))
    await marketplace.start()
    const fault = store.faults.add({ on: 'accept', kind: 'hang' })
    const reply = deliver(sampleDelivery('application/installed'))
    await until('the store holds the delivery', () => store.faults.held === 1)
    await expect(marketplace.settled({ timeoutMs: 50 })).rejects.toThrow('a delivery is being accepted')
    fault.remove()
    const { id } = await reply
    await marketplace.settled()
    expect(handled).toEqual([id])
  })

  it('waits until the store knows a new handler, which gets the events of the minute before it', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace, deliver } = await createScene({ store: storeOption(store) })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    const fault = store.faults.add({ on: 'handleTopics', kind: 'hang' })
    const handled: string[] = []
    marketplace.on('application/installed', (event) => void handled.push(event.id))
    await expect(marketplace.settled({ timeoutMs: 50 })).rejects.toThrow(
      'the store does not know a new handler yet',
    )
    fault.remove()
    await marketplace.settled()
    expect(handled).toEqual([id])
  })

  it('waits for a delivery that came while it looked into the store, and no longer if that fails', async () => {
    const looking = gate()
    const { settled, accepting } = createSettling({
      store: {
        async dueWork() {
          await looking.opened
          return { reads: false, entries: false }
        },
      },
      topics: undefined,
      areTopicsKnown: () => true,
      isWorking: () => false,
      clock: systemClock,
    })
    let isSettled = false
    const ended = settled().then(() => {
      isSettled = true
    })
    const delivery = gate()
    const accepted = accepting(() => delivery.opened)
    looking.open()
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    expect(isSettled).toBe(false)
    delivery.fail(new Error('not accepted'))
    await expect(accepted).rejects.toThrow('not accepted')
    await ended
  })

  it('waits until a result is told that the database shows before its answer has come', async () => {
    const store = storeFor('sqlite::memory:', systemClock)
    const late: typeof store = {
      ...store,
      async finishLanes(finishes) {
        const held = await store.finishLanes(finishes)
        await new Promise((resolve) => setTimeout(resolve, 100))
        return held
      },
    }
    const { marketplace, deliver } = await createScene({
      store: storeOption(late),
      handlers: { retryDelaysMs: [] },
    })
    const told: unknown[] = []
    marketplace.onHandlerError(({ error }) => void told.push(error))
    marketplace.on('application/installed', () => {
      throw 'no'
    })
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(told).toEqual(['no'])
  })

  it('waits neither for changes without a handler nor for entries whose handler was removed', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const off = marketplace.on('application/installed', () => {})
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    off()
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(await marketplace.journal.list({ kind: 'change', status: 'pending' })).toHaveLength(1)
  })
})
