import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { systemClock } from '../../lib/base/clock.js'
import { findSqlite } from '../../lib/sqlite/drivers.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { noticeOf } from '../support/events.js'
import { countingClock } from '../support/machine/counting-clock.js'
import { quietWarnings } from '../support/output.js'
import { deliver, openMarketplace, serve, startPlatform } from '../support/scene.js'
import { createFileScene } from '../support/scenes/file-scene.js'
import { track } from '../support/scenes/purchases.js'
import { B1, OUR_ITEM } from '../support/settings.js'
import { until } from '../support/until.js'

describe('two marketplaces in one app', () => {
  it('share no deliveries, answers, handlers or end', async () => {
    const platform = await startPlatform()
    const secrets = ['Jq2vWn8xTz5rLc3mKp7d', 'Hs6bYf4kGt9wDx1uRe0n'] as const
    const [ours, theirs] = secrets.map((deliverySecrets, i) =>
      openMarketplace(platform, { deliverySecrets, app: { purchasableUid: i ? 'item-other' : OUR_ITEM } }),
    ) as [ReturnType<typeof openMarketplace>, ReturnType<typeof openMarketplace>]
    const received: string[] = []
    ours.onPurchaseChange(() => void received.push('ours'))
    theirs.onPurchaseChange(() => void received.push('theirs'))
    const url = await serve(express().use('/ours', ours.router).use('/theirs', theirs.router))
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const statusAt = async (mount: string, secret: string) =>
      (await fetch(`${url}/${mount}/${secret}`, { method: 'POST', body: JSON.stringify(noticeOf(uid)) }))
        .status

    expect(await statusAt('ours', secrets[1])).toBe(404)
    expect(await statusAt('ours', secrets[0])).toBe(200)
    expect([await ours.isEntitled(B1), await theirs.isEntitled(B1)]).toEqual([true, false])
    await until("the first app's change is handled", () => received.length > 0)
    await ours.close()
    expect(await statusAt('theirs', secrets[1])).toBe(200)
    expect((await theirs.health()).status).not.toBe('failing')
    expect(received).toEqual(['ours'])
  })
})

describe('before the store is open', () => {
  it('a question waits until it is open', async () => {
    const { platform, store, marketplace } = await createFileScene()
    await track(platform, marketplace)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await marketplace.close()

    const release = await lockFile(store)
    const next = openMarketplace(platform, { store })
    const answer = next.isEntitled(B1)
    const early = await Promise.race([
      answer,
      next.journal.list(),
      new Promise((r) => setTimeout(r, 200, 'waits')),
    ])
    expect(early).toBe('waits')
    release()
    expect(await answer).toBe(true)
  })

  it('closing ends the tries to open it', async () => {
    quietWarnings()
    const { clock, timers } = countingClock(systemClock)
    const marketplace = openMarketplace(await startPlatform(), { store: 'sqlite:/not/there/m.db', clock })
    await until('the next try is due', () => timers.armed > 0)
    await marketplace.close()
    expect(timers.armed).toBe(0)
  })

  it('a database that starts later is found without a restart; until then every business is denied and nothing is acknowledged', async () => {
    quietWarnings()
    const platform = await startPlatform()
    const folder = join(temporaryFolder(), 'comes-later')
    const marketplace = openMarketplace(platform, { store: `sqlite:${join(folder, 'm.db')}` })
    const url = await serve(express().use('/hooks', marketplace.router))
    const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })

    expect((await deliver(target, noticeOf(uid))).status).toBe(503)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'store_unavailable' })
    expect((await marketplace.health()).status).toBe('failing')
    await expect(marketplace.start()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await marketplace.health()).problems).toMatchObject([
      { code: 'store_not_open', message: expect.stringContaining(folder) },
    ])

    mkdirSync(folder)
    await until('a delivery is accepted', async () => (await deliver(target, noticeOf(uid))).status === 200)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await deliver(target, noticeOf(uid))).status).toBe(200)
    expect((await marketplace.health()).status).toBe('ok')
  })
})

/** Locks the database file as another process does. Returns the function that releases the lock. */
async function lockFile(store: string): Promise<() => void> {
  const connection = (await findSqlite()).open(store.slice('sqlite:'.length))
  connection.exec('pragma locking_mode = exclusive')
  connection.exec('begin exclusive')
  let isOpen = true
  // The connection is closed, because it keeps its lock until then if its first use of the WAL was exclusive.
  function release() {
    if (isOpen) connection.close()
    isOpen = false
  }
  onCleanUp(release)
  return release
}
