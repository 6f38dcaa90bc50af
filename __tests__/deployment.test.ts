import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND, systemClock } from '../lib/clock.js'
import { createDeployment } from '../lib/operations/deployment.js'
import type { Store } from '../lib/store/store.js'
import { storeFor } from '../lib/store-option.js'
import { onCleanUp } from './support/clean-up.js'
import { ENGINE_NAMES, useEngine } from './support/engines.js'
import { childSettings, loadReceiver } from './support/receiver-process.js'
import { createScene, openMarketplace, startPlatform } from './support/scene.js'
import { runScript } from './support/script.js'
import { withStoreFaults } from './support/store-faults.js'
import { storeOption } from './support/store-option.js'
import { openStoreWithSql } from './support/store-with-sql.js'
import { until } from './support/until.js'
import { createVirtualClock } from './support/virtual-clock.js'

const { version: VERSION } = JSON.parse(readFileSync(join(__dirname, '..', 'package.json'), 'utf8'))

describe.each(ENGINE_NAMES)('deployment() on %s', (name) => {
  const engine = useEngine(name)

  it('lists the schema version and this instance, even directly after construction', async () => {
    const before = Date.now()
    const { marketplace } = await createScene({ store: await engine.freshAddress() })
    const { schemaVersion, instances } = await marketplace.deployment()
    expect(schemaVersion).toBe(2)
    expect(instances).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        version: VERSION,
        hasWorker: true,
        startedAt: expect.stringMatching(/Z$/),
        seenAt: expect.stringMatching(/Z$/),
        isThis: true,
      },
    ])
    for (const time of [instances[0]?.startedAt, instances[0]?.seenAt]) {
      expect(Date.parse(String(time))).toBeGreaterThanOrEqual(before - 2_000)
      expect(Date.parse(String(time))).toBeLessThanOrEqual(Date.now() + 2_000)
    }
  })

  it('lists an instance that only receives from its start, and not the earlier one that was closed', async () => {
    const store = await engine.freshAddress()
    const platform = await startPlatform()
    const before = openMarketplace(platform, { store })
    const [first] = (await before.deployment()).instances
    await before.close()
    const next = openMarketplace(platform, { store, worker: false })
    await next.start()
    await next.close()
    const lab = await openStoreWithSql(store)
    expect(await lab.sql('select * from instances')).toEqual([])
    await lab.store.close()

    const last = openMarketplace(platform, { store, worker: false })
    await last.start()
    const { instances } = await last.deployment()
    expect(instances).toMatchObject([{ hasWorker: false, isThis: true }])
    expect(instances[0]?.id).not.toBe(first?.id)
  })

  it('rejects after close()', async () => {
    const { marketplace } = await createScene({ store: await engine.freshAddress() })
    await marketplace.close()
    await expect(marketplace.deployment()).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('instances on PostgreSQL', () => {
  const engine = useEngine('PostgreSQL')

  it('list each other until one is closed', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    await marketplace.deployment()
    const other = openMarketplace(platform, { store, worker: false })
    const fromOther = (await other.deployment()).instances
    const fromFirst = (await marketplace.deployment()).instances
    expect(fromFirst).toMatchObject([
      { hasWorker: true, isThis: true },
      { hasWorker: false, isThis: false },
    ])
    expect(fromOther.map(({ id, isThis }) => [id, !isThis])).toEqual(
      fromFirst.map(({ id, isThis }) => [id, isThis]),
    )
    await other.close()
    expect((await marketplace.deployment()).instances).toMatchObject([{ isThis: true }])
  })

  it('list a killed one for three more minutes', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    const child = loadReceiver(childSettings(platform, store, { works: false }))
    await child.begin()
    const killed = await until('the other instance is listed', async () =>
      (await marketplace.deployment()).instances.find(({ isThis }) => !isThis),
    )
    child.signal('SIGKILL')
    await child.ended
    expect((await marketplace.deployment()).instances).toHaveLength(2)
    // The database's clock decides, so the test makes the row older.
    const { sql } = await openStoreWithSql(store)
    const age = (ms: number) =>
      sql(`update instances set seen_at = seen_at - ${ms} where id = '${killed.id}'`)
    await age(2 * MINUTE)
    expect((await marketplace.deployment()).instances).toHaveLength(2)
    await age(MINUTE)
    expect((await marketplace.deployment()).instances).toMatchObject([{ isThis: true }])
  }, 30_000)

  it('report at once after they were frozen together, without waiting for each other', async () => {
    const address = await engine.freshAddress()
    const { store, sql } = await openStoreWithSql(address)
    const other = storeFor(address, systemClock)
    onCleanUp(() => other.close())
    await other.open()
    const report = (to: Store, id: string) =>
      to.reportInstance({ id, version: VERSION, hasWorker: true, startedAgoMs: 0, forgetMs: MINUTE })
    for (let round = 0; round < 20; round++) {
      await Promise.all([report(store, 'a'), report(other, 'b')])
      await sql(`update instances set seen_at = seen_at - ${2 * MINUTE}`)
      await Promise.all([report(store, 'a'), report(other, 'b')])
      const listed = await store.instances({ withinMs: MINUTE })
      expect(listed.map(({ id }) => id).sort()).toEqual(['a', 'b'])
    }
    expect(engine.server().log()).not.toMatch(/deadlock detected/)
  })
})

describe('the reports of an instance', () => {
  it('follow each other about once a minute, and delete an instance that was killed three minutes ago', async () => {
    const { time, store, instance } = await minutes()
    const [living, killed] = [instance(), instance()]
    await time.rest()
    await time.advance(2 * MINUTE)
    const seen = async () => (await living.deployment()).instances.map(({ seenAt }) => Date.parse(seenAt))
    for (const at of await seen()) expect(time.now() - at).toBeLessThanOrEqual(1.1 * MINUTE)
    killed.kill()
    await time.advance(1.8 * MINUTE)
    expect(await seen()).toHaveLength(2)
    await time.advance(1.3 * MINUTE)
    expect(await seen()).toHaveLength(1)
    await time.advance(1.1 * MINUTE)
    // The row is deleted, not only left out of the list.
    expect(await store.instances({ withinMs: 60 * MINUTE })).toHaveLength(1)
  })

  it('continue after the database was away; its failure has no other effect', async () => {
    const { time, store, instance } = await minutes()
    const fault = store.faults.add({ on: 'reportInstance', kind: 'unavailable' })
    const living = instance()
    await time.advance(5 * MINUTE)
    expect(living.errors.length).toBeGreaterThanOrEqual(4)
    expect(living.errors.length).toBeLessThanOrEqual(6)
    expect((await living.deployment()).instances).toEqual([])
    fault.remove()
    await time.advance(1.1 * MINUTE)
    const { instances } = await living.deployment()
    expect(instances).toMatchObject([{ isThis: true }])
    // This is the time of the instance's start, not of its first report.
    expect(time.now() - Date.parse(String(instances[0]?.startedAt))).toBeGreaterThan(6 * MINUTE)
  })

  it('restart in one loop only, however often the start is reported', async () => {
    const { time, store, instance } = await minutes()
    const fault = store.faults.add({ on: 'reportInstance', kind: 'unavailable' })
    const living = instance()
    for (let n = 0; n < 5; n++) {
      living.start()
      await living.deployment()
    }
    const before = fault.strikes
    await time.advance(5 * MINUTE)
    expect(fault.strikes - before).toBeLessThanOrEqual(6)
  })

  it('end with the instance: no report follows its end', async () => {
    const { time, store, instance } = await minutes()
    const ended = instance()
    await time.rest()
    await ended.close()
    ended.start()
    await time.advance(5 * MINUTE)
    expect(await store.instances({ withinMs: 60 * MINUTE })).toEqual([])
  })

  it('do not restore an instance that ends during a report', async () => {
    const { time, store, instance } = await minutes()
    const hang = store.faults.add({ on: 'reportInstance', kind: 'hang' })
    const ended = instance()
    const closed = ended.close()
    hang.remove()
    await closed
    await time.rest()
    expect(await store.instances({ withinMs: 60 * MINUTE })).toEqual([])
  })

  it.each(['reportInstance', 'forgetInstance'] as const)(
    'delay the end of the instance by a second at most if %s hangs',
    async (method) => {
      const { time, store, instance } = await minutes()
      store.faults.add({ on: method, kind: 'hang' })
      const ended = instance()
      await time.rest()
      const begun = time.now()
      let endedAt = 0
      const closing = ended.close().then(() => {
        endedAt = time.now()
      })
      await time.advance(MINUTE)
      await closing
      expect(endedAt - begun).toBe(SECOND)
      expect(ended.errors).toHaveLength(1)
    },
  )

  it('give deployment() an answer within five seconds, even if the database does not answer', async () => {
    const { time, store, instance } = await minutes()
    const living = instance()
    store.faults.add({ on: 'schemaVersion', kind: 'hang' })
    const answer = living.deployment().catch((error) => error)
    await time.advance(5 * SECOND)
    expect(await answer).toMatchObject({ code: 'store_unavailable', retryable: true })
  })

  it('neither keep a process without a worker alive, nor change its health when they fail', async () => {
    const script = runScript(
      { store: 'sqlite::memory:' },
      `const marketplace = createMarketplace({ ...settings, worker: false })
       await marketplace.start()
       print('listed', (await marketplace.deployment()).instances.length)`,
    )
    expect(await script.ended).toBe(0)
    expect(script.output()).toContain('listed 1')

    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const fault = store.faults.add({ on: 'reportInstance', kind: 'unavailable' })
    const { marketplace } = await createScene({ store: storeOption(store) })
    await marketplace.start()
    await until('a report has failed', () => fault.strikes > 0)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
    expect((await marketplace.deployment()).instances).toEqual([])
  }, 30_000)
})

/** A database in memory. Its time, and that of its instances, passes only by `advance`. */
async function minutes() {
  let calls = 0
  const time = createVirtualClock({ isBusy: () => calls > store.faults.held })
  const inner = storeFor('sqlite::memory:', time.forProcess())
  await inner.open()
  const store = withStoreFaults(inner)
  onCleanUp(() => store.close())

  async function followed<T>(call: Promise<T>): Promise<T> {
    calls++
    return call.finally(() => calls--)
  }

  return {
    time,
    store,
    /** Starts an instance. */
    instance() {
      const clock = time.forProcess()
      const errors: unknown[] = []
      const deployment = createDeployment({
        store: {
          schemaVersion: () => followed(store.schemaVersion()),
          reportInstance: (report) => followed(store.reportInstance(report)),
          forgetInstance: (id) => followed(store.forgetInstance(id)),
          instances: (options) => followed(store.instances(options)),
        },
        hasWorker: true,
        clock,
        onError: (error) => errors.push(error),
      })
      deployment.start()
      return { ...deployment, errors, kill: clock.kill }
    },
  }
}
