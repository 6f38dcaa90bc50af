/**
 * A receiver as a process of its own, which tests kill, freeze and end. It loads everything, reports that it is ready,
 * and waits for its settings, so the next process can load while the previous one is still alive. At SIGTERM it closes
 * and then ends by itself.
 */
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import express from 'express'
import { systemClock } from '../../../lib/base/clock.js'
import { createMarketplace, type Marketplace } from '../../../lib/index.js'
import { createPostgresEngine } from '../../../lib/postgres/engine.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Store } from '../../../lib/store/port/store.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import { run } from '../../../lib/store/sql/writes.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { storeFor } from '../../../lib/store-option.js'
import { storeOption } from '../engines/store-option.js'
import { internals } from '../internals.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'

export interface ChildSettings {
  store: string
  baseUrl: string
  authUrl: string
  /** If false, it only receives. */
  works: boolean
  /** What its handler of changes does. */
  handler: 'returns' | 'never returns' | 'obeys its signal' | 'kills its process'
  closeTimeoutMs: number
  /** The process kills itself in the handler of these changes: of a business, or of a business to a state. */
  deadlyChanges?: readonly string[]
  /** The process kills itself when its rule is asked about a record of one of these businesses. */
  deadlyRule?: readonly string[]
  /** The process kills itself when it reads one of these subscriptions. */
  deadlyReads?: readonly string[]
  /** The timeout of its platform calls; 5 s by default. */
  timeoutMs?: number
  leaseMs?: number
  /**
   * The process kills itself at this point, in the commit after so many others. `works` must be false, so that every
   * commit is of deliveries.
   */
  dies?: { at: DeathPoint; after: number }
  /** Reports to the parent each finish of leased work, and whether the lease was still held. */
  reportsFinishes?: boolean
}

export type DeathPoint =
  | 'before the write'
  | 'before the commit'
  | 'before the sync'
  | 'during the sync'
  | 'after the sync'

process.once('message', (settings: ChildSettings) => begin(settings))
process.send?.({ is: 'loaded', pid: process.pid })

function begin(settings: ChildSettings) {
  const { baseUrl, authUrl, works, handler, closeTimeoutMs, timeoutMs = 5_000, leaseMs } = settings
  const delays = monitorEventLoopDelay({ resolution: 5 })
  const marketplace = createMarketplace({
    app: { ...CLIENT, purchasableUid: OUR_ITEM },
    platform: {
      baseUrl,
      authUrl,
      fetch(address, init) {
        if (settings.deadlyReads?.some((uid) => String(address).includes(uid)))
          process.kill(process.pid, 'SIGKILL')
        return fetch(address as string, init as RequestInit)
      },
    },
    ...internals({ callTimeoutMs: timeoutMs, pollMs: 50, ...(leaseMs && { leaseMs }) }),
    deliverySecrets: DELIVERY_SECRET,
    store: storeOf(settings),
    closeTimeoutMs,
    worker: works,
    entitledWhen({ business_uid, purchase_state }) {
      if (settings.deadlyRule?.some((each) => each === business_uid)) process.kill(process.pid, 'SIGKILL')
      return purchase_state === 'purchased'
    },
  })
  marketplace.onPurchaseChange(({ business_uid, to }, { signal }) => {
    if (settings.deadlyChanges?.some((each) => each === business_uid || each === `${business_uid} ${to}`))
      process.kill(process.pid, 'SIGKILL')
    if (handler === 'kills its process') process.kill(process.pid, 'SIGKILL')
    if (handler === 'returns') return undefined
    return new Promise((_resolve, reject) => {
      if (handler === 'obeys its signal') signal.addEventListener('abort', () => reject(signal.reason))
    })
  })

  const app = express()
    .use('/hooks', marketplace.router)
    .get('/journal', async (_req, res) => void res.json(await entriesOf(marketplace)))
    .get('/decisions', async (req, res) => {
      const businesses = String(req.query.of).split(',')
      res.json(await Promise.all(businesses.map((each) => marketplace.explain(each))))
    })
    .get('/health', async (_req, res) => void res.json(await marketplace.health()))
    // The longest time for which the event loop has been blocked since the last request, in milliseconds.
    .get('/longest-standstill', (_req, res) => {
      res.json(delays.max / 1e6)
      delays.reset()
      delays.enable()
    })
    // It freezes itself: between two turns of the event loop no SQLite transaction is open, so the file is not locked.
    .get('/freeze', (_req, res) => {
      process.kill(process.pid, 'SIGSTOP')
      res.json('thawed')
    })
  const server = app.listen(0, '127.0.0.1', () => {
    process.send?.({ is: 'listening', port: (server.address() as AddressInfo).port })
  })

  process.once('SIGTERM', async () => {
    server.close()
    await marketplace.close()
    server.closeAllConnections()
    process.disconnect?.()
  })
}

function storeOf({ store: address, dies, reportsFinishes }: ChildSettings) {
  if (dies) return storeOption(createSqlStore(mortal(engineOf(address), dies)))
  return reportsFinishes ? storeOption(reporting(storeFor(address, systemClock))) : address
}

function engineOf(address: string): Engine {
  const clock = systemClock
  if (address.startsWith('sqlite:'))
    return createSqliteEngine({ path: address.slice('sqlite:'.length), clock })
  return createPostgresEngine({
    connection: address,
    schema: 'marketplace_webhooks',
    maxConnections: 5,
    clock,
  })
}

/** The engine, with a way to end its process during a commit. */
function mortal(engine: Engine, { at, after }: { at: DeathPoint; after: number }): Engine {
  let isOpen = false
  let commits = 0
  const reach = (point: DeathPoint) => {
    if (isOpen && point === at && commits >= after) process.kill(process.pid, 'SIGKILL')
  }
  return {
    ...engine,
    // `watch` is the last call of opening: every later write is of deliveries.
    watch() {
      isOpen = true
    },
    write(work) {
      reach('before the write')
      return engine.write(async (trx) => {
        const result = await work(trx)
        reach('before the commit')
        return result
      })
    },
    async writeAll(writes) {
      reach('before the write')
      if (at !== 'before the commit') return engine.writeAll(writes)
      await engine.write(async (trx) => {
        await run(engine, trx, ...writes)
        reach('before the commit')
      })
    },
    async durable() {
      reach('before the sync')
      const synced = engine.durable()
      reach('during the sync')
      await synced
      reach('after the sync')
      if (isOpen) commits++
    },
  }
}

function reporting(store: Store): Store {
  return {
    ...store,
    async finishRead(claim, finish) {
      const isHeld = await store.finishRead(claim, finish)
      process.send?.({ is: 'finished', what: 'read', id: claim.id, isHeld })
      return isHeld
    },
    async finishLanes(finishes) {
      const held = await store.finishLanes(finishes)
      for (const { id: key, results } of finishes) {
        process.send?.({ is: 'finished', what: 'lane', id: key, isHeld: held.includes(key) })
        for (const { id } of results)
          process.send?.({ is: 'finished', what: 'entry', id, isHeld: held.includes(key) })
      }
      return held
    },
  }
}

/** Every entry of the journal, page by page. */
async function entriesOf({ journal }: Marketplace) {
  const entries = await journal.list({ limit: 1_000 })
  for (let last = entries.at(-1); last; ) {
    const page = await journal.list({ limit: 1_000, before: last.id })
    entries.push(...page)
    last = page.at(-1)
  }
  return entries.map(({ id, kind, status, business_uid, attempts, error }) => {
    return { id, kind, status, business_uid, attempts, error }
  })
}
