import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { postgresStore } from '../lib/index.js'
import { onCleanUp } from './support/clean-up.js'
import { useEngine } from './support/engines.js'
import { eventOf, notice } from './support/events.js'
import { POSTGRES_PASSWORD } from './support/postgres.js'
import { createScene, OUR_ITEM, type Scene } from './support/scene.js'
import { startProxy } from './support/tcp-proxy.js'
import { until } from './support/until.js'

const engine = useEngine('PostgreSQL')

describe('deliveries while the database fails', () => {
  it.each<[what: string, strike: (address: string) => Promise<unknown>]>([
    ['every connection is ended by an administrator', (address) => terminateAll(address)],
    ['the database is restarted', () => engine.server().restart('fast')],
    ['the database crashes', () => engine.server().restart('immediate')],
  ])(
    '%s: nothing acknowledged is lost, and work resumes without a restart',
    async (_what, strike) => {
      const store = await engine.freshAddress()
      // Work in hand when the database went away is leased to a lost claimer until its lease expires.
      const scene = await createScene({ store, worker: { pollMs: 50, leaseMs: 1_000 } })
      const { platform, marketplace } = scene
      const handled = new Set<unknown>()
      marketplace.onPurchaseChange((change) => void handled.add(change.business_uid))
      const { uid } = platform.purchase({
        business_uid: 'b0',
        purchasable_uid: OUR_ITEM,
        payment: 'succeeded',
      })
      await until('it works', () => marketplace.isEntitled('b0'))

      const acknowledged: string[] = []
      let isOver = false
      const senders = Array.from({ length: 4 }, async (_, sender) => {
        for (let i = 0; !isOver; i++) {
          const business_uid = `b${sender}-${i}`
          const { uid } = platform.purchase({ business_uid, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
          const { status, id } = await scene.deliver(notice(business_uid, uid))
          expect([200, 503]).toContain(status)
          if (status === 200) acknowledged.push(id)
        }
      })
      for (const enough of [15, 30]) {
        await until('some are acknowledged', () => acknowledged.length >= enough, 15_000)
        await strike(store)
      }
      await until('more are acknowledged', () => acknowledged.length >= 45, 15_000)
      isOver = true
      await Promise.all(senders)
      await platform.settled()

      const kept = new Map<string, string>()
      for (let page = await marketplace.journal.list({ kind: 'event', limit: 1_000 }); page.length > 0; ) {
        for (const { id, business_uid } of page) kept.set(id, String(business_uid))
        page = await marketplace.journal.list({
          kind: 'event',
          limit: 1_000,
          before: page.at(-1)?.id as string,
        })
      }
      expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
      await until(
        'every change is handled',
        () => [...kept.values()].every((each) => handled.has(each)),
        15_000,
      )
      platform.paymentIssue(uid)
      await until('the new subscription is read', async () => !(await marketplace.isEntitled('b0')), 10_000)
    },
    40_000,
  )
})

describe('a network that drops every packet to the database', () => {
  it('costs deliveries a 503 in time, changes no known answer, and needs no restart afterwards', async () => {
    const { scene, proxy } = await wired({ receiver: { acceptTimeoutMs: 800 } })
    const { platform, marketplace, deliver } = scene
    const { uid } = platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))

    proxy.blackHole()
    const begun = Date.now()
    const refused = await Promise.all(Array.from({ length: 5 }, (_, i) => deliver(notice('b1', `s${i}`))))
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
    expect(Date.now() - begun).toBeLessThan(2_500)
    // The cached answer has to be reloaded by now, and cannot be.
    const askedAt = Date.now()
    const answers = await Promise.all(['b1', 'nobody'].map((each) => marketplace.isEntitled(each)))
    expect(answers).toEqual([true, false])
    expect(Date.now() - askedAt).toBeLessThan(10_000)
    expect(await marketplace.explain('b1')).toMatchObject({ entitled: true, known: true })

    await proxy.heal()
    await until('a delivery is taken', async () => (await deliver(notice('b1', uid))).status === 200, 10_000)
    platform.paymentIssue(uid)
    await until('it is read and seen', async () => !(await marketplace.isEntitled('b1')), 15_000)
  }, 60_000)

  it('does not prevent closing', async () => {
    const { scene, proxy } = await wired()
    scene.platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => scene.marketplace.isEntitled('b1'))
    proxy.blackHole()
    const late = scene.deliver(notice('b1', 's1'))
    const begun = Date.now()
    await scene.marketplace.close()
    // Closing may wait for two queries, each with 6 s to be answered.
    expect(Date.now() - begun).toBeLessThan(16_000)
    expect((await late).status).toBe(503)
  }, 30_000)
})

describe('a connection that ends in the packet it begins with', () => {
  it.each(['our own pool', 'the app\u2019s'])('ends neither the process nor the call: %s', async (whose) => {
    const address = await startTyingProxy(await engine.freshAddress())
    const pool = new pg.Pool({ connectionString: address, max: 3 })
    onCleanUp(() => pool.end())
    const store = postgresStore(whose === 'our own pool' ? address : pool)
    onCleanUp(() => store.close())
    await store.open()
    expect(await store.counts()).toMatchObject({ pending: 0 })
  })
})

describe('a network that has silently forgotten all connections', () => {
  it('costs one call, not one for each connection', async () => {
    const proxy = await startProxy({ to: engine.server().port })
    const store = postgresStore(proxy.through(await engine.freshAddress()), { maxConnections: 4 })
    onCleanUp(() => store.close())
    await store.open()
    const all = () => Promise.allSettled([store.counts(), store.counts(), store.counts()])
    expect((await all()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(proxy.connections()).toBeGreaterThanOrEqual(3)
    proxy.halfOpen()
    await expect(store.counts()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await all()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
  })
})

describe('a database that stops answering', () => {
  it('has its connections given up, not reused, and never more than the maximum', async () => {
    const address = await engine.freshAddress()
    const store = postgresStore(address, { maxConnections: 3 })
    onCleanUp(() => store.close())
    await store.open()
    await store.accept([eventOf('s1')])
    const before = await backends(address)
    expect(before.length).toBeLessThanOrEqual(3)
    const inUse = await backends(address, `query !~ 'listen'`)
    expect(inUse.length).toBeGreaterThan(0)

    await engine.server().freeze()
    onCleanUp(() => engine.server().thaw())
    const asked = await Promise.all(
      Array.from({ length: 3 }, () =>
        store.counts().then(
          () => 'answered',
          (error) => error.code,
        ),
      ),
    )
    expect(asked).toEqual(['store_unavailable', 'store_unavailable', 'store_unavailable'])
    await engine.server().thaw()
    await until(
      'it answers',
      () =>
        store.counts().then(
          () => true,
          () => false,
        ),
      10_000,
    )
    await until('those that did not answer are gone', async () => {
      const now = await backends(address)
      return inUse.every((pid) => !now.includes(pid)) && now.length <= 3
    })
    expect(await store.listEntries({})).toHaveLength(1)
  }, 30_000)

  it('gets never more connections than the maximum, also when it is only busy', async () => {
    const address = await engine.freshAddress()
    const { platform, deliver } = await createScene({ store: postgresStore(address, { maxConnections: 4 }) })
    let most = 0
    let isOver = false
    const watching = (async () => {
      while (!isOver) most = Math.max(most, (await backends(address)).length)
    })()
    const replies = await Promise.all(
      Array.from({ length: 80 }, (_, i) => {
        const business_uid = `b${i}`
        const { uid } = platform.purchase({ business_uid, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
        return deliver(notice(business_uid, uid))
      }),
    )
    await platform.settled()
    isOver = true
    await watching
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(4)
  })
})

describe('two transactions in a deadlock', () => {
  it('cost neither a delivery nor a log line: the aborted one is tried again', async () => {
    const address = await engine.freshAddress()
    const scene: Scene = await createScene({ store: address, worker: false })
    await scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    const url = new URL(address)
    const other = new pg.Client({
      host: url.hostname,
      port: Number(url.port),
      user: 'postgres',
      password: POSTGRES_PASSWORD,
      database: url.pathname.slice(1),
    })
    await other.connect()
    onCleanUp(() => other.end())
    // So that the delivery is the one that is given up.
    await other.query(`set deadlock_timeout = '1min'`)
    const lock = (uid: string) =>
      other.query('select 1 from marketplace_webhooks.subscriptions where subscription_uid = $1 for update', [
        uid,
      ])
    await other.query('begin')
    await lock('s2')
    const delivered = scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    await until('the delivery waits for it', async () => {
      const rows = await engine
        .server()
        .sql(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = $1`, [
          url.pathname.slice(1),
        ])
      return rows.length > 0
    })
    const locked = lock('s1')
    await locked
    expect(engine.server().log()).toContain('deadlock detected')
    await other.query('commit')
    expect((await delivered).status).toBe(200)
    const entries = await scene.marketplace.journal.list()
    expect(entries).toHaveLength(4)
    const rows = await engine
      .server()
      .sql<{ generation: string }>(
        'select generation from marketplace_webhooks.subscriptions order by subscription_uid',
        [],
        url.pathname.slice(1),
      )
    expect(rows.map(({ generation }) => Number(generation))).toEqual([2, 2])
  })
})

async function wired(options: Parameters<typeof createScene>[0] = {}) {
  const address = await engine.freshAddress()
  const proxy = await startProxy({ to: engine.server().port })
  return { proxy, scene: await createScene({ ...options, store: proxy.through(address) }) }
}

/** The processes of the server that serve this package. */
async function backends(address: string, condition = 'true'): Promise<number[]> {
  const rows = await engine.server().sql<{ pid: number }>(
    `select pid from pg_stat_activity
      where datname = $1 and application_name = 'marketplace-webhooks' and ${condition}`,
    [new URL(address).pathname.slice(1)],
  )
  return rows.map(({ pid }) => pid)
}

function terminateAll(address: string) {
  return engine
    .server()
    .sql('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      new URL(address).pathname.slice(1),
    ])
}

/** The first connection through it is ended by the server as soon as it is made; word of both comes at once. */
async function startTyingProxy(address: string): Promise<string> {
  let isFirst = true
  const proxy = createServer((client) => {
    const server = connect(engine.server().port, '127.0.0.1')
    const isTied = isFirst
    isFirst = false
    let held = Buffer.alloc(0)
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => {
      const beginning = held
      held = Buffer.concat([held, bytes])
      if (!isTied || beginning.includes(READY)) client.write(held)
      else if (!held.includes(READY)) client.write(held)
      else return terminate(held.readInt32BE(held.indexOf(KEY) + KEY.length))
      held = Buffer.alloc(0)
    })
    for (const [one, other] of [[client, server] as const, [server, client] as const]) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onCleanUp(() => void proxy.close())
  const through = new URL(address)
  through.port = String((proxy.address() as AddressInfo).port)
  return through.href
}

/** ReadyForQuery, and BackendKeyData up to the number of the server's process. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const KEY = Buffer.from([0x4b, 0, 0, 0, 12])

async function terminate(pid: number) {
  await engine.server().sql('select pg_terminate_backend($1)', [pid])
}
