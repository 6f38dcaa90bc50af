import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { metrics } from '@opentelemetry/api'
import createDebug from 'debug'
import { type Clock, guardedClock, systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { createTelemetry } from '../../../lib/telemetry/telemetry.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { useEngine } from '../../support/engines/engines.js'
import { eventOf } from '../../support/events.js'
import { runScript } from '../../support/processes/script.js'
import { createScene } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

const postgres = useEngine('PostgreSQL')

describe('K21 an opening that fails', () => {
  it.each(['migrate', 'durable', 'open'] as const)(
    'at %s leaves nothing behind and is tried again, and no error of the driver escapes',
    async (step) => {
      const path = join(temporaryFolder(), 'm.db')
      const plain = createSqliteEngine({ path, clock: systemClock })
      let failures = 0
      const engine: Engine = {
        ...plain,
        async [step](...given: unknown[]) {
          // As with a full disk or a single EIO, the earlier steps have happened.
          if (step !== 'durable') await (plain[step] as (...all: unknown[]) => Promise<void>)(...given)
          if (++failures < 3) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
          await plain.durable()
        },
      }
      const store = createSqlStore(engine)
      onCleanUp(() => store.close())
      const error = await store.open().catch((reason) => reason)
      expect(error).toBeInstanceOf(MarketplaceError)
      expect(error).toMatchObject({
        code: 'store_unavailable',
        message: 'Cannot open the store: disk I/O error',
      })
      await expect(store.counts()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: 'Cannot open the store: disk I/O error',
      })

      // The file is not locked, so another process may use it.
      const other = createSqlStore(createSqliteEngine({ path, clock: systemClock }))
      await other.open()
      await other.close()
      await expect(store.open()).rejects.toMatchObject({ code: 'store_unavailable' })
      await store.open()
      await store.accept([eventOf('s1')])
      expect(await store.counts()).toMatchObject({ subscriptions: 1 })
    },
  )

  it('is tried again on PostgreSQL on the same store, which has returned its connections', async () => {
    const address = await postgres.freshAddress()
    await postgres.server().stop('fast')
    const { marketplace, deliver } = await createScene({ store: address })
    await expect(marketplace.start()).rejects.toMatchObject({ code: 'store_unavailable' })
    await postgres.server().start()
    await until('the store is open', async () => (await marketplace.health()).status === 'ok')
    expect((await deliver({ any: 'thing' })).status).toBe(200)
  })
})

describe('K29 an opening that takes long', () => {
  it('makes the calls wait until the store is open', async () => {
    const { opened: mayOpen, open: release } = gate()
    const engine = createSqliteEngine({ path: ':memory:', clock: systemClock })
    const store = createSqlStore({ ...engine, open: () => mayOpen.then(() => engine.open()) })
    const opened = store.open()
    const asked = store.subscriptionsOf('b1')
    release()
    expect(await asked).toEqual([])
    await opened
    await store.close()
  })
})

describe('K22 a notification from another sender', () => {
  it('ends neither an instance nor its listener', async () => {
    const store = await postgres.freshAddress()
    const database = new URL(store).pathname.slice(1)
    const script = runScript(
      { store },
      `const marketplace = createMarketplace(settings)
       process.once('SIGUSR2', async () => {
         print('status', (await marketplace.health()).status)
         await marketplace.close()
       })
       await marketplace.start()
       print('started')`,
    )
    await script.prints('started')
    const listening = (state: string) =>
      until(state, async () => {
        const rows = await postgres.server().sql<{ query: string }>(
          `select query from pg_stat_activity where datname = $1 and application_name = 'marketplace-webhooks'
            and (query ilike 'listen%' or query like '%pg_listening_channels%')`,
          [database],
        )
        return rows.length > 0
      })
    await listening('it listens')
    const payloads = [
      'x decided %',
      'x requested %E0%A4%A',
      '',
      ' ',
      'decided',
      'x echo',
      'x'.repeat(7_900),
      '🙂 journal \u0001',
    ]
    for (const payload of payloads)
      await postgres.server().sql('select pg_notify($1, $2)', ['marketplace_webhooks', payload], database)
    await postgres.server().sql('notify marketplace_webhooks', [], database)
    script.signal('SIGUSR2')
    await script.prints('status ok')
    expect(await script.ended).toBe(0)
    expect(script.output()).not.toContain('URIError')
  })
})

describe('K24 a plug-in of the app', () => {
  it('may throw as a clock: timers continue, and nothing escapes', async () => {
    const errors: unknown[] = []
    const broken: Clock = {
      now: () => fail('now'),
      monotonic: () => fail('monotonic'),
      setTimeout: () => fail('setTimeout'),
      clearTimeout: () => fail('clearTimeout'),
    }
    const clock = guardedClock(broken, (error) => errors.push(error))
    expect(clock.now()).toBeGreaterThan(1.7e12)
    expect(clock.monotonic()).toBeGreaterThan(0)
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, 1))
    clock.clearTimeout(undefined)
    expect(errors).toHaveLength(4)
  })

  it('may throw or reject in a timer: the error is reported', async () => {
    const errors: unknown[] = []
    const clock = guardedClock(systemClock, (error) => errors.push((error as Error).message))
    clock.setTimeout(() => fail('thrown'), 1)
    clock.setTimeout((async () => fail('rejected')) as () => void, 1)
    await until('both errors are reported', () => errors.length === 2)
    expect(errors.sort()).toEqual(['rejected', 'thrown'])
  })

  it('may set a timer further ahead than Node allows, as a clock', async () => {
    let isDue = false
    const timer = systemClock.setTimeout(() => {
      isDue = true
    }, 2 ** 31)
    await new Promise((resolve) => setTimeout(resolve, 20))
    systemClock.clearTimeout(timer)
    expect(isDue).toBe(false)
  })

  it('may throw as a logger or a meter', () => {
    const { log } = createDebug
    createDebug.enable('marketplace-webhooks:*')
    createDebug.log = () => fail('no log')
    const getMeter = jest.spyOn(metrics, 'getMeter').mockImplementation(() => fail('no meter'))
    const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => fail('no warning'))
    onCleanUp(() => {
      createDebug.log = log
      createDebug.disable()
      getMeter.mockRestore()
      emitWarning.mockRestore()
    })
    const telemetry = createTelemetry({ clock: systemClock })
    telemetry.log('area', 'class', () => ({ message: 'message' }))
    telemetry.log('area', 'class', () => fail('no line'))
    telemetry.count('reads', { outcome: 'found' })
    for (const odd of [
      new Error('x'),
      null,
      undefined,
      7,
      Object.create(null),
      {
        get message() {
          return fail('get')
        },
      },
    ])
      telemetry.failure('timers', odd)
    telemetry.warn('store_not_open', 'why')
  })

  it('may throw as all of these at once, and the process continues', async () => {
    const script = runScript(
      { store: 'sqlite::memory:' },
      `createDebug.enable('marketplace-webhooks:*')
       createDebug.log = () => { throw new Error('no log') }
       otel.metrics.setGlobalMeterProvider({ getMeter() { throw new Error('no meter') } })
       const clock = {
         now: () => { if (Math.random() < 0.2) throw new Error('no time'); return Date.now() },
         monotonic: () => clock.now(),
         setTimeout: (callback, ms) => { if (Math.random() < 0.1) throw new Error('no timer'); return setTimeout(callback, ms) },
         clearTimeout: (timer) => clearTimeout(timer),
       }
       const marketplace = createMarketplace({ ...settings, clock, handlers: { retryDelaysMs: [] }, [Symbol.for('marketplace-webhooks internals')]: { pollMs: 10 } })
       process.once('SIGUSR2', () => marketplace.close())
       marketplace.onPurchaseChange(() => { throw null })
       marketplace.onHandlerError(() => { throw new Error('no listener') })
       await marketplace.start()
       for (let i = 0; i < 30; i++) {
         await marketplace.subscriptions.track({ subscriptionUid: 's' + i, businessUid: 'b' + i }).catch((error) => print(error.code))
         await marketplace.isEntitled('b' + i % 3)
       }
       await new Promise((resolve) => setTimeout(resolve, 1000))
       print('done', (await marketplace.health()).status)`,
    )
    await script.prints('done')
    expect(script.isAlive()).toBe(true)
    script.signal('SIGUSR2')
    expect(await script.ended).toBe(0)
  })

  function fail(what: string): never {
    throw new Error(what)
  }
})
