import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { withStoreFaults } from '../../support/engines/store-faults.js'
import { storeOption } from '../../support/engines/store-option.js'
import { internals } from '../../support/internals.js'
import { quietWarnings } from '../../support/output.js'
import { createScene } from '../../support/scene.js'

describe('readiness()', () => {
  it('is ready once the store is open, and not before', async () => {
    quietWarnings()
    const folder = temporaryFolder()
    const { marketplace } = await createScene({ store: `sqlite:${folder}/not-there/m.db` })
    const { ready, problems } = await marketplace.readiness()
    expect({ ready, problems }).toMatchObject({
      ready: false,
      problems: [{ code: 'store_not_open', message: expect.stringContaining('Cannot') }],
    })
    const good = await createScene({ store: `sqlite:${folder}/m.db` })
    expect(await good.marketplace.readiness()).toEqual({ ready: true, problems: [] })
  })

  it('answers within a second even if the store does not', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace } = await createScene({ store: storeOption(store), worker: false })
    await marketplace.start()
    const fault = store.faults.add({ on: 'subscriptionsOf', kind: 'hang' })
    const { ready, problems } = await marketplace.readiness()
    expect({ ready, problems }).toMatchObject({
      ready: false,
      problems: [{ code: 'store_not_answering', message: 'the store did not answer within 0.9 s' }],
    })
    fault.remove()
    expect(await marketplace.readiness()).toMatchObject({ ready: true })
  })

  it('counts a write as quick within the deadline of a delivery', async () => {
    const inner = storeFor('sqlite::memory:', systemClock)
    const asked: unknown[] = []
    const problem = (ms?: number) => {
      asked.push(ms)
      return inner.problem(ms)
    }
    const store = storeOption({ ...inner, problem })
    const { marketplace } = await createScene({
      store,
      worker: false,
      ...internals({ acceptTimeoutMs: 700 }),
    })
    await marketplace.readiness()
    await marketplace.health()
    expect([...new Set(asked)]).toEqual([700])
  })

  it('stays ready while handlers fail, because they would fail in another instance too', async () => {
    quietWarnings()
    const { marketplace, deliver } = await createScene({
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 20 }),
    })
    marketplace.on('application/installed', () => {
      throw new Error('never')
    })
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(await marketplace.health()).toMatchObject({ status: 'degraded' })
    expect(await marketplace.readiness()).toEqual({ ready: true, problems: [] })
  })

  it('is not ready from the beginning of close(), while handlers still run', async () => {
    const { marketplace } = await createScene()
    const closing = marketplace.close()
    expect(await marketplace.readiness()).toMatchObject({ ready: false, problems: [{ code: 'closed' }] })
    await closing
  })
})
