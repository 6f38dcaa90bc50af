import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { postgresStore } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { engine, terminateAll } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { startProxy } from '../support/engines/tcp-proxy.js'
import { notice } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { until } from '../support/until.js'

/** ReadyForQuery, and BackendKeyData up to the process number. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

const KEY = Buffer.from([0x4b, 0, 0, 0, 12])

describe('deliveries while the database fails', () => {
  it.each<[what: string, strike: (address: string) => Promise<unknown>]>([
    ['every connection is ended by an administrator', (address) => terminateAll(address)],
    ['the database is restarted', () => engine.server().restart('fast')],
    ['the database crashes', () => engine.server().restart('immediate')],
  ])(
    '%s: nothing acknowledged is lost, and work resumes without a restart',
    async (_what, strike) => {
      const store = await engine.freshAddress()
      // Work that was under way when the database failed stays leased to a lost claimer until its lease expires.
      const scene = await createScene({ store, ...internals({ pollMs: 50, leaseMs: 1_000 }) })
      const { platform, marketplace } = scene
      const handled = new Set<unknown>()
      marketplace.onPurchaseChange((change) => void handled.add(change.business_uid))
      const { uid } = await buy(platform, marketplace, 'b0')

      const acknowledged: string[] = []
      let isOver = false
      const senders = Array.from({ length: 4 }, async (_, sender) => {
        for (let i = 0; !isOver; i++) {
          const business_uid = `b${sender}-${i}`
          const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
          const { status, id } = await scene.deliver(notice(business_uid, uid))
          expect([200, 503]).toContain(status)
          if (status === 200) acknowledged.push(id)
        }
      })
      for (const enough of [15, 30]) {
        await until('some deliveries are acknowledged', () => acknowledged.length >= enough)
        await strike(store)
      }
      await until('more deliveries are acknowledged', () => acknowledged.length >= 45)
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
      await until('every change is handled', () => [...kept.values()].every((each) => handled.has(each)))
      platform.paymentIssue(uid)
      await until('the new subscription is read', async () => !(await marketplace.isEntitled('b0')))
    },
    60_000,
  )
})

describe('a network that drops every packet to the database', () => {
  it('costs deliveries a 503 in time, changes no known answer, and needs no restart afterwards', async () => {
    const { scene, proxy } = await wired({ ...internals({ acceptTimeoutMs: 800 }) })
    const { platform, marketplace, deliver } = scene
    const { uid } = await buy(platform, marketplace, 'b1')

    proxy.blackHole()
    const begun = Date.now()
    const refused = await Promise.all(Array.from({ length: 5 }, (_, i) => deliver(notice('b1', `s${i}`))))
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
    expect(Date.now() - begun).toBeLessThan(2_500)
    // By now the cached answer has to be loaded again, but that is not possible.
    const askedAt = Date.now()
    const answers = await Promise.all(['b1', 'nobody'].map((each) => marketplace.isEntitled(each)))
    expect(answers).toEqual([true, false])
    expect(Date.now() - askedAt).toBeLessThan(10_000)
    expect(await marketplace.explain('b1')).toMatchObject({ entitled: true, known: true })

    await proxy.heal()
    await until('a delivery is accepted', async () => (await deliver(notice('b1', uid))).status === 200)
    platform.paymentIssue(uid)
    await until(
      'the subscription is read and the change is handled',
      async () => !(await marketplace.isEntitled('b1')),
    )
  }, 60_000)

  it('does not prevent closing', async () => {
    const { scene, proxy } = await wired()
    await buy(scene.platform, scene.marketplace, 'b1')
    proxy.blackHole()
    const late = scene.deliver(notice('b1', 's1'))
    const begun = Date.now()
    await scene.marketplace.close()
    // Closing may wait for two queries of up to 6 s each.
    expect(Date.now() - begun).toBeLessThan(16_000)
    expect((await late).status).toBe(503)
  })
})

describe('a connection that the server ends in its first packet', () => {
  it.each(['our own pool', 'the app\u2019s'])('ends neither the process nor the call: %s', async (whose) => {
    const address = await startTyingProxy(await engine.freshAddress())
    const pool = new pg.Pool({ connectionString: address, max: 3 })
    onCleanUp(() => pool.end())
    const store = await openedStore(whose === 'our own pool' ? address : postgresStore(pool))
    expect(await store.counts()).toMatchObject({ pending: 0 })
  })
})

describe('a network that silently drops all connections', () => {
  it('costs one call, not one for each connection', async () => {
    const proxy = await startProxy({ to: engine.server().port })
    const connectionString = proxy.through(await engine.freshAddress())
    const store = await openedStore(postgresStore({ connectionString, maxConnections: 4 }))
    const all = () => Promise.allSettled([store.counts(), store.counts(), store.counts()])
    expect((await all()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(proxy.connections()).toBeGreaterThanOrEqual(3)
    // A read does not wait for its commit.
    await proxy.quiet(200)
    proxy.halfOpen()
    await expect(store.counts()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await all()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
  })
})

async function wired(options: Parameters<typeof createScene>[0] = {}) {
  const address = await engine.freshAddress()
  const proxy = await startProxy({ to: engine.server().port })
  return { proxy, scene: await createScene({ ...options, store: proxy.through(address) }) }
}

/** The server ends the first connection through this proxy as soon as it is open. The client learns of both at once. */
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

async function terminate(pid: number) {
  await engine.server().sql('select pg_terminate_backend($1)', [pid])
}
