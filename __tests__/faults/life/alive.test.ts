import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { findSqlite } from '../../../lib/sqlite/drivers.js'
import { type Simulator, sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { page } from '../../support/docs/pages.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { runScript } from '../../support/processes/script.js'
import { startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

// Longer than the interval of any timer of an idle worker.
const A_WHILE_MS = 2_500

describe.each(ENGINE_NAMES)('K25 a process on %s', (name) => {
  const engine = useEngine(name)

  it('with only a worker stays until it is closed, and then ends with code 0', async () => {
    const script = runScript(
      { store: await engine.freshAddress() },
      `const marketplace = createMarketplace(settings)
       process.once('SIGUSR2', async () => { await marketplace.close(); print('closed') })
       await marketplace.start()
       print('started')`,
    )
    await script.prints('started')
    await sleep(A_WHILE_MS)
    expect(script.isAlive()).toBe(true)
    script.signal('SIGUSR2')
    expect(await script.ended).toBe(0)
    expect(script.output()).toContain('closed')
  }, 60_000)

  it('without a worker waits for the call under way, and ends after it', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.faults.add({ on: 'token', kind: 'slow', ms: 1_000 })
    const script = runScript(
      { store: await engine.freshAddress(), platform },
      `const marketplace = createMarketplace({ ...settings, worker: false, freshness: { waitMs: 1500 } })
       await marketplace.subscriptions.track({ subscriptionUid: '${uid}', businessUid: 'b1' })
       print('tracked')
       print('entitled', await marketplace.isEntitled('b1'))
       print('reason', (await marketplace.explain('b1')).reason)
       await marketplace.close()
       print('closed')`,
    )
    expect(await script.ended).toBe(0)
    // No worker reads here, so each question waits for the maximum time.
    expect(script.output()).toContain('entitled false')
    expect(script.output()).toMatch(/reason \w+/)
    expect(script.output()).toContain('closed')
  }, 60_000)
})

describe('K25 a script without a worker', () => {
  it.each(['postgres://a:b@127.0.0.1:1/x', 'sqlite:/no/such/folder/m.db'])(
    'waits for each call of this package, also while %s does not open',
    async (store) => {
      const script = runScript(
        { store },
        `const of = { subscriptionUid: 's1', businessUid: 'b1' }
         const callsOf = (marketplace, { journal, subscriptions, webhooks } = marketplace) => ({
           isEntitled: () => marketplace.isEntitled('b1'),
           explain: () => marketplace.explain('b1'),
           guard: () => new Promise((onDenied) =>
             marketplace.requireEntitlement({ businessUid: () => 'b1', onDenied })({}, {}, onDenied)),
           track: () => marketplace.subscriptions.track(of),
           import: () => marketplace.subscriptions.import([of]),
           refresh: () => marketplace.businesses.refresh('b1'),
           fetchAppToken: () => marketplace.fetchAppToken('b1'),
           list: () => journal.list({}),
           get: () => journal.get('e1'),
           replay: () => journal.replay('e1'),
           replayAll: () => journal.replayAll({ status: 'dead' }),
           recordAction: () => journal.recordAction({ name: 'look', actor: 'me', businessUid: 'b1' }),
           subscriptions: () => subscriptions.list({}),
           subscription: () => subscriptions.get('s1'),
           history: () => marketplace.businesses.history('b1'),
           export: () => marketplace.businesses.export('b1'),
           erase: () => marketplace.businesses.erase('b1', { actor: 'me' }),
           check: () => webhooks.check(),
           backup: () => marketplace.backup('/no/such/folder/backup.db'),
           readiness: () => marketplace.readiness(),
           settled: () => marketplace.settled({ timeoutMs: 100 }),
           health: () => marketplace.health(),
           start: () => marketplace.start(),
           close: () => marketplace.close(),
         })
         const fresh = () => callsOf(createMarketplace({ ...settings, worker: false }))
         for (const name of Object.keys(fresh())) {
           // Each is the first call of a marketplace, during its first opening.
           await fresh()[name]().catch(() => {})
           print('settled', name)
         }
         print('all of them')`,
      )
      expect(await script.ended).toBe(0)
      expect(script.output()).toContain('all of them')
    },
    120_000,
  )
})

describe('K25 a process on SQLite', () => {
  it('that asks while another process holds the file waits for the answer, and gets store_in_use', async () => {
    const path = `${temporaryFolder()}/m.db`
    const connection = (await findSqlite()).open(`${path}-lock`)
    onCleanUp(() => connection.close())
    connection.exec('pragma locking_mode = exclusive')
    connection.exec('begin exclusive')
    const starts = runScript(
      { store: `sqlite:${path}` },
      `const marketplace = createMarketplace({ ...settings, worker: false })
       await marketplace.start()`,
    )
    const asks = runScript(
      { store: `sqlite:${path}` },
      `const marketplace = createMarketplace({ ...settings, worker: false })
       print('entitled', await marketplace.isEntitled('b1'))
       print('reason', (await marketplace.explain('b1')).reason)`,
    )
    await starts.prints('threw store_in_use')
    await asks.prints('reason store_unavailable')
    expect(asks.output()).toContain('entitled false')
    expect(await Promise.all([starts.ended, asks.ended])).toEqual([0, 0])
  }, 60_000)
})

describe('K25 a process on PostgreSQL', () => {
  const engine = useEngine('PostgreSQL')

  it('with only a worker stays while the server is stopped, and works again when the server is back', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const store = await engine.freshAddress()
    const script = runScript(
      { store, platform },
      `const marketplace = createMarketplace(settings)
       process.once('SIGUSR2', () => marketplace.close())
       await marketplace.start()
       print('started')
       for (;;) {
         await new Promise((resolve) => setTimeout(resolve, 100).unref())
         if (await marketplace.subscriptions.track({ subscriptionUid: '${uid}', businessUid: 'b1' }).then(() => true, () => false)) {
           if (await marketplace.isEntitled('b1')) break
         }
       }
       print('entitled')
       marketplace.onHandlerError(() => {})`,
    )
    await script.prints('entitled')
    await engine.server().stop('immediate')
    await sleep(A_WHILE_MS)
    expect(script.isAlive()).toBe(true)
    await engine.server().start()
    await until('the process is connected again', async () => {
      const rows = await engine
        .server()
        .sql(`select 1 from pg_stat_activity where application_name = 'marketplace-webhooks'`)
      return rows.length > 0
    })
    script.signal('SIGUSR2')
    expect(await script.ended).toBe(0)
  }, 60_000)

  it('stays if its start is pending or fails while the server is down, and starts when the server is up', async () => {
    const store = await engine.freshAddress()
    await engine.server().stop('fast')
    const script = runScript(
      { store },
      `const marketplace = createMarketplace(settings)
       process.once('SIGUSR2', () => marketplace.close())
       await marketplace.start().catch((error) => print('failed', error.code))
       for (;;) {
         await new Promise((resolve) => setTimeout(resolve, 100).unref())
         if ((await marketplace.health()).status === 'ok') break
       }
       print('well')`,
    )
    await script.prints('failed store_unavailable')
    await sleep(A_WHILE_MS)
    expect(script.isAlive()).toBe(true)
    await engine.server().start()
    await script.prints('well')
    script.signal('SIGUSR2')
    expect(await script.ended).toBe(0)
  }, 60_000)
})

describe('K27 the shutdown of the quickstart', () => {
  it('ends within its grace while clients keep connections open: unused, idle, and busy', async () => {
    const script = runScript(
      { store: 'sqlite::memory:' },
      `const marketplace = createMarketplace(settings)
       const app = require('express')()
       app.use('/hooks', marketplace.router)
       app.get('/', (_req, res) => void res.json('here'))
       const server = app.listen(0, '127.0.0.1', () => print('port=' + server.address().port + '.'))
       ${shutdownOfQuickstart()}`,
    )
    await script.prints('port=')
    const port = await until('the port is printed', () => /port=(\d+)\./.exec(script.output())?.[1])
    const unused = connect(Number(port), '127.0.0.1')
    unused.on('error', () => {})
    const [idle, busy] = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 })) as [Agent, Agent]
    onCleanUp(() => {
      unused.destroy()
      idle.destroy()
      busy.destroy()
    })
    expect(await statusOf(Number(port), idle)).toBe(200)
    let answered = 0
    const asking = (async () => {
      while (script.isAlive()) if ((await statusOf(Number(port), busy)) === 200) answered++
    })()
    await until('the busy connection is served', () => answered > 10)
    const begun = Date.now()
    script.signal('SIGTERM')
    expect(await script.ended).toBe(0)
    expect(Date.now() - begun).toBeLessThan(10_000)
    await asking
  }, 60_000)

  it('ends within its grace while a handler ignores its signal', async () => {
    const script = runScript(
      { store: 'sqlite::memory:' },
      `const marketplace = createMarketplace(settings)
       marketplace.on('application/installed', () => {
         print('handling')
         return new Promise((resolve) => setTimeout(resolve, 60_000))
       })
       const app = require('express')().use('/hooks', marketplace.router)
       const server = app.listen(0, '127.0.0.1', () => {
         const body = JSON.stringify({ entity_name: 'application', event_type: 'installed', data: INSTALL })
         const headers = { 'content-type': 'application/json' }
         fetch(marketplace.webhooks.targetUrl('http://127.0.0.1:' + server.address().port + '/hooks'), { method: 'POST', headers, body })
       })
       ${shutdownOfQuickstart()}`.replace(
        'INSTALL',
        JSON.stringify(sampleDelivery('application/installed').data),
      ),
    )
    await script.prints('handling')
    const begun = Date.now()
    script.signal('SIGTERM')
    expect(await script.ended).toBe(0)
    expect(Date.now() - begun).toBeLessThan(10_000)
  }, 60_000)

  it('K90 lets a request that is under way ask the gate, and answers the payer yes', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const { script, port } = await serveSlowGate(platform, uid, 500)
    const reply = bodyOf(fetch(`http://127.0.0.1:${port}/slow`))
    await script.prints('a request is under way')
    script.signal('SIGTERM')
    expect(await reply).toEqual({ entitled: true })
    expect(await script.ended).toBe(0)
  }, 60_000)

  it('K90 cuts off a request that takes longer than its limit, and ends', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const { script, port } = await serveSlowGate(platform, uid, 60_000)
    const reply = bodyOf(fetch(`http://127.0.0.1:${port}/slow`))
    await script.prints('a request is under way')
    const begun = Date.now()
    script.signal('SIGTERM')
    expect(await script.ended).toBe(0)
    expect(Date.now() - begun).toBeLessThan(10_000)
    expect(await reply).toBe('no reply')
  }, 60_000)

  /** Serves `/slow`, which asks the gate for the first time `afterMs` after SIGTERM. */
  async function serveSlowGate(platform: Simulator, uid: string, afterMs: number) {
    const script = runScript(
      { store: 'sqlite::memory:', platform: await platform.start() },
      `const marketplace = createMarketplace(settings)
       await marketplace.subscriptions.track({ subscriptionUid: '${uid}', businessUid: 'b1' })
       await marketplace.settled()
       const app = require('express')()
       app.get('/slow', (_req, res) => {
         print('a request is under way')
         process.once('SIGTERM', () => setTimeout(async () => {
           res.json({ entitled: await marketplace.isEntitled('b1') })
         }, ${afterMs}))
       })
       const server = app.listen(0, '127.0.0.1', () => print('port=' + server.address().port + '.'))
       ${shutdownOfQuickstart()}`,
    )
    await script.prints('port=')
    const port = await until('the port is printed', () => /port=(\d+)\./.exec(script.output())?.[1])
    return { script, port }
  }

  function bodyOf(reply: Promise<Response>): Promise<unknown> {
    return reply.then(
      (response) => response.json(),
      () => 'no reply',
    )
  }

  function shutdownOfQuickstart(): string {
    const [, shutdown = ''] =
      /^export (function endOnSigterm\([\s\S]*?^\})$/m.exec(page('docs/quickstart.md')) ?? []
    expect(shutdown).toContain('10_000')
    return `${shutdown.replace('server: Server', 'server').replace('10_000', '2_000')}
       endOnSigterm(server)`
  }

  /** The status of the reply; 0 without a reply. */
  function statusOf(port: number, agent: Agent): Promise<number> {
    return new Promise((resolve) => {
      const request = get({ host: '127.0.0.1', port, agent }, (response) => {
        response.resume()
        response.once('close', () => resolve(response.statusCode ?? 0))
      })
      request.once('error', () => setImmediate(resolve, 0))
    })
  }
})
