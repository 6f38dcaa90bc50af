import { readdirSync, readlinkSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { createPostgresEngine } from '../../../lib/postgres/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { noticeOf } from '../../support/events.js'
import { countingClock } from '../../support/machine/counting-clock.js'
import { loadReceiver } from '../../support/receiving/receiver-process.js'
import { deliver, openMarketplace, startPlatform } from '../../support/scene.js'
import { track } from '../../support/scenes/purchases.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('a marketplace on %s', (name) => {
  const engine = useEngine(name)

  it('K2 may be started and closed in any order, 50 times on one database', async () => {
    const platform = await startPlatform()
    const store = await engine.freshAddress()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const first = openMarketplace(platform, { store })
    await first.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
    await until('the subscription is read', () => first.isEntitled(B1))
    await first.close()

    for (let round = 0; round < 50; round++) {
      const marketplace = openMarketplace(platform, { store })
      // Each of the 16 orders of four calls, three times or more. Every third call comes a turn later.
      const calls = [0, 1, 2, 3].map((bit) => ((round >> bit) & 1 ? ('start' as const) : ('close' as const)))
      const results = await Promise.allSettled([
        ...calls.map(async (call, i) => {
          if ((round + i) % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
          return marketplace[call]()
        }),
        marketplace.close(),
      ])
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'closed' })
      }
      await expect(marketplace.start()).rejects.toMatchObject({ code: 'closed' })
      const closed = { status: 'failing', problems: [{ code: 'closed' }], counts: null }
      expect(await marketplace.health()).toMatchObject(closed)
    }
    expect(await openMarketplace(platform, { store }).isEntitled(B1)).toBe(true)
  })

  it('K28 counts no try for a handler that closing interrupts, however often', async () => {
    const platform = await startPlatform()
    const store = await engine.freshAddress()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const attempts: number[] = []
    // There are more deployments than tries, and then a handler that returns.
    for (let deployment = 0; deployment < 5; deployment++) {
      const marketplace = openMarketplace(platform, {
        store,
        handlers: { retryDelaysMs: [1, 1] },
        closeTimeoutMs: 500,
      })
      const called = gate()
      marketplace.onPurchaseChange((_change, { attempt, signal }) => {
        attempts.push(attempt)
        called.open()
        if (deployment === 4) return
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        )
      })
      if (deployment === 0) await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
      await called.opened
      await marketplace.close()
    }
    expect(attempts).toEqual([1, 1, 1, 1, 1])
  })

  it('K1, K4 ends with code 0 at SIGTERM with all kinds of work under way, and nothing keeps it alive', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    platform.faults.add({ on: 'token', kind: 'hang', business_uid: 'hangs' })
    platform.addBusiness('hangs')
    const { baseUrl, authUrl } = platform
    const store = await engine.freshAddress()
    const timeoutMs = 15_000
    const settings = {
      timeoutMs,
      store,
      baseUrl,
      authUrl,
      works: true,
      handler: 'never returns',
      closeTimeoutMs: 300,
    } as const
    const receiver = loadReceiver(settings)
    await receiver.begin()
    await deliver(receiver.target(), noticeOf(uid))
    await deliver(receiver.target(), noticeOf('s-hangs', 'hangs'))
    await until('it reads, and gets notifications', async () => {
      const [decision] = await receiver.get<{ entitled: boolean }[]>(`/decisions?of=${B1}`)
      return decision?.entitled && platform.requests.some(({ business_uid }) => business_uid === 'hangs')
    })
    const late = Array.from({ length: 20 }, (_, i) =>
      deliver(receiver.target(), noticeOf(`s${i}`)).catch(() => undefined),
    )
    receiver.signal('SIGTERM')
    const begun = Date.now()
    expect(await receiver.ended).toEqual({ code: 0, signal: null, stderr: '' })
    // This is less than the time of the token call that hangs.
    expect(Date.now() - begun).toBeLessThan(timeoutMs)

    // The next process finds the deliveries that this one acknowledged while it closed.
    const next = openMarketplace(platform, { store, worker: false })
    const kept = new Set((await next.journal.list({ limit: 1_000 })).map(({ id }) => id))
    for (const reply of await Promise.all(late)) if (reply?.status === 200) expect(kept).toContain(reply.id)
  })

  it('K4 leaves no timer and no file open after close', async () => {
    const platform = await startPlatform()
    const { clock, timers } = countingClock(systemClock)
    const store = await engine.freshAddress()
    const marketplace = openMarketplace(platform, { store, clock })
    const called = gate()
    marketplace.onHealthChange(() => {})
    marketplace.onPurchaseChange(() => {
      called.open()
      throw new Error('not yet')
    })
    await track(platform, marketplace)
    await called.opened
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(timers.armed).toBeGreaterThan(0)
    const path = store.replace(/^sqlite:/, '')
    if (name === 'SQLite') expect(openFilesAt(path)).not.toEqual([])
    await marketplace.close()
    expect(timers.armed).toBe(0)
    // libsql closes the database file itself only when its connection is garbage-collected.
    expect(openFilesAt(path).filter((file) => file !== path)).toEqual([])
  })

  if (name === 'PostgreSQL') {
    it('K4 leaves no timer if it is closed while it tests its notifications', async () => {
      const proxy = await startProxy({ to: engine.server().port })
      const echoing = gate()
      proxy.onData('to server', (bytes) => {
        if (bytes.includes(' echo"')) echoing.open()
      })
      const { clock, timers } = countingClock(systemClock)
      const connection = proxy.through(await engine.freshAddress())
      const store = createSqlStore(
        createPostgresEngine({ connection, schema: 'marketplace_webhooks', maxConnections: 3, clock }),
      )
      await store.open()
      await echoing.opened
      await store.close()
      expect(timers.armed).toBe(0)
    })
  }
})

/** The open files of this process whose paths begin with `path`; none on systems that do not list them. */
function openFilesAt(path: string): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${fd}`)
      return file.startsWith(path) ? [file] : []
    } catch {
      return [] // This is the descriptor of the listing itself.
    }
  })
}
