/**
 * One of several instances: an Express app with a marketplace, which the test kills and freezes. It records the
 * beginning and the end of each call of its handlers, each in one write, so that the record survives the process. It
 * loads everything, reports that it is ready, and waits for its settings.
 */
import { openSync, writeSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createMarketplace } from '../../../lib/index.js'
import { internals } from '../internals.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { createRandom } from '../world/random.js'
import { now } from './clock.js'

export interface InstanceSettings {
  store: string
  baseUrl: string
  authUrl: string
  leaseMs: number
  maxStaleMs: number
  reconcileEveryMs: number
  /** The file that records the calls of handlers. */
  callsFile: string
  seed: number
}

/** A line of the calls file. `stops`: the handler stopped when its signal was aborted. */
export interface CallLine {
  is: 'begins' | 'ends' | 'fails' | 'stops'
  at: number
  /** The number of the call in this process. */
  call: number
  id: string
  attempt: number
}

process.once('message', (settings: InstanceSettings) => begin(settings))
process.once('disconnect', () => process.exit())
process.send?.({ is: 'loaded' })

function begin(settings: InstanceSettings) {
  const { store, baseUrl, authUrl, leaseMs, maxStaleMs, reconcileEveryMs, callsFile, seed } = settings
  const random = createRandom(seed).of('handlers').next
  const file = openSync(callsFile, 'a')
  let calls = 0

  const marketplace = createMarketplace({
    app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: 'ours' },
    platform: { baseUrl, authUrl },
    ...internals({ leaseMs, callTimeoutMs: 2_000 }),
    deliverySecrets: DELIVERY_SECRET,
    store,
    freshness: { maxStaleMs, reconcileEveryMs },
    // More tries than a run needs, so an entry becomes dead only because of a mistake.
    handlers: { retryDelaysMs: Array<number>(100).fill(300) },
  })

  async function handle({ id }: { id: string }, context: { signal: AbortSignal; attempt: number }) {
    const { signal, attempt } = context
    const call = ++calls
    const note = (is: CallLine['is']) =>
      writeSync(file, `${JSON.stringify({ is, at: now(), call, id, attempt } satisfies CallLine)}\n`)
    note('begins')
    const { forMs, fails } = workOf(random(), leaseMs)
    if (!(await worked(forMs, signal))) {
      note('stops')
      throw new Error('stopped by its signal')
    }
    note(fails && attempt === 1 ? 'fails' : 'ends')
    if (fails && attempt === 1) throw new Error('fails at first')
  }
  marketplace.onAny(handle)
  marketplace.onPurchaseChange(handle)

  const asked = (of: unknown) => String(of).split(',')
  const app = express()
    .use('/hooks', marketplace.router)
    .get('/entitled', async (req, res) => {
      res.json(await Promise.all(asked(req.query.of).map((business) => marketplace.isEntitled(business))))
    })
    .get('/explain', async (req, res) => {
      res.json(await Promise.all(asked(req.query.of).map((business) => marketplace.explain(business))))
    })
    .get('/health', async (_req, res) => void res.json(await marketplace.health()))
  const server = app.listen(0, '127.0.0.1', () => {
    process.send?.({ is: 'listening', port: (server.address() as AddressInfo).port })
  })
}

/** Most calls end at once, some take a while, a few take longer than a lease, and a few fail. */
function workOf(chance: number, leaseMs: number): { forMs: number; fails: boolean } {
  if (chance < 0.01) return { forMs: leaseMs * 1.5, fails: false }
  if (chance < 0.05) return { forMs: 400 + chance * 10_000, fails: false }
  return { forMs: chance < 0.5 ? 0 : chance * 20, fails: chance > 0.98 }
}

/** Waits; false if the signal was aborted first. */
function worked(ms: number, signal: AbortSignal): Promise<boolean> {
  if (ms === 0) return Promise.resolve(true)
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve(false)
    })
  })
}
