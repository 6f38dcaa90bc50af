// First, because it replaces functions of `node:fs` that the package takes when it loads.

import { join } from 'node:path'
import express from 'express'
import Database from 'libsql'
import { temporaryFolder } from '../../../__tests__/support/clean-up.js'
import { recordDisk } from '../../../__tests__/support/machine/synced-disk.js'
import { deliver, openMarketplace, serve, startPlatform } from '../../../__tests__/support/scene.js'
import { createRandom, type Random } from '../../../__tests__/support/world/random.js'
import type { Simulator } from '../../../lib/testing/index.js'

const ROUNDS = 12
const BUSINESSES = ['b1', 'b2', 'b3']

export interface PowerCuts {
  /** Moments at which the power failed, and the disks that it may have left: with more or less of what was not synced. */
  cuts: number
  disks: number
  acknowledged: number
  lost: number
  damaged: number
  broken: string[]
}

/**
 * An app at work on a disk that keeps only what was synced: the platform delivers, reads are made and handlers called. The
 * power fails at some of the replies, and between them.
 */
export async function powerCuts(seed: number): Promise<PowerCuts> {
  const random = createRandom(seed)
  const recorded = recordDisk(temporaryFolder())
  const platform = await startPlatform({ seed, deliveryConcurrency: 6, retries: 3, retryDelayMs: 50 })
  const marketplace = openMarketplace(platform, { store: `sqlite:${join(recorded.folder, 'm.db')}` })
  const found = { cuts: 0, disks: 0, damaged: 0, broken: [] as string[] }
  const lost = new Set<string>()
  const acknowledged: string[] = []
  let handled = 0
  marketplace.onAny(() => void handled++)
  marketplace.onPurchaseChange(() => void handled++)
  await marketplace.start()

  function cut() {
    found.cuts++
    for (const { folder, of } of recorded.cut()) {
      found.disks++
      const { ids, error } = contentOf(join(folder, 'm.db'))
      if (error !== undefined) {
        found.damaged++
        found.broken.push(`with ${of} the database is damaged: ${error}`)
        continue
      }
      const missing = acknowledged.filter((id) => !ids.has(id))
      for (const id of missing) lost.add(id)
      if (missing.length > 0)
        found.broken.push(`with ${of} ${missing.length} acknowledged deliveries are lost`)
    }
  }

  const app = express().use((_req, res, next) => {
    const { end } = res
    res.end = ((...given: Parameters<typeof end>) => {
      if (res.statusCode === 200) {
        acknowledged.push(JSON.parse(String(given[0])).id)
        // Before the reply leaves: what it promises must be on disk.
        if (random.chance(0.15)) cut()
      }
      return end.apply(res, given)
    }) as typeof end
    next()
  })
  app.use('/hooks', marketplace.router)
  const target = marketplace.webhooks.targetUrl(`${await serve(app)}/hooks`)
  await platform.registerAll(target)
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = random.between(1, 5); i > 0; i--) act(platform, random)
    await new Promise((resolve) => setTimeout(resolve, random.between(0, 60)))
    cut()
  }
  await platform.settled()
  cut()
  if (handled === 0) found.broken.push('no handler was called, so the app was not at work')
  await goesOn(String(recorded.cut().at(random.between(0, 5))?.folder))
  return { acknowledged: acknowledged.length, lost: lost.size, ...found }

  /** The app opens what the power cut left, and takes the next delivery. */
  async function goesOn(folder: string) {
    const again = openMarketplace(platform, { store: `sqlite:${join(folder, 'm.db')}`, worker: false })
    const url = await serve(express().use('/hooks', again.router))
    const { status } = await deliver(again.webhooks.targetUrl(`${url}/hooks`), {
      ...{ entity_name: 'purchasable_subscription', event_type: 'update' },
      data: { subscription_uid: 's', business_uid: 'b1' },
    })
    if (status !== 200) found.broken.push(`after a power cut a delivery got ${status}`)
  }
}

/** A business buys, pays, misses a payment or cancels. */
function act(platform: Simulator, random: Random) {
  const business_uid = random.pick(BUSINESSES)
  const last = platform.subscriptions().findLast((each) => each.business_uid === business_uid)
  if (!last || last.purchase_state === 'canceled')
    return platform.purchase({ business_uid, payment: random.chance(0.7) ? 'succeeded' : 'failed' })
  const what = random.choose({ touch: 3, paymentIssue: 3, confirmPayment: 3, cancel: 1 })
  return platform[what](last.uid)
}

/** The entries of a database that nobody uses, or why it is damaged. */
function contentOf(path: string): { ids: Set<string>; error?: string } {
  try {
    const database = new Database(path, { fileMustExist: true })
    try {
      const [{ integrity_check: found }] = database.prepare('pragma integrity_check').all() as [
        { integrity_check: string },
      ]
      const rows = database.prepare('select id from journal').all() as { id: string }[]
      return { ids: new Set(rows.map(({ id }) => id)), ...(found === 'ok' ? {} : { error: found }) }
    } finally {
      database.close()
    }
  } catch (error) {
    return { ids: new Set(), error: String(error) }
  }
}
