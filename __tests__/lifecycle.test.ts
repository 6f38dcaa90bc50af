import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import express from 'express'
import { findSqlite } from '../lib/sqlite/drivers.js'
import type { Simulator } from '../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from './support/clean-up.js'
import { createFileScene, notice, tokensFor } from './support/file-scene.js'
import type { ChildSettings } from './support/receiver-child.js'
import { loadReceiver } from './support/receiver-process.js'
import { createScene, deliver, openMarketplace, serve, startPlatform } from './support/scene.js'
import { OUR_ITEM } from './support/settings.js'
import { until } from './support/until.js'

const B1 = 'business-one'

describe('start and close', () => {
  it('K2 may be called in any order and any number of times', async () => {
    const platform = await startPlatform()
    for (let round = 0; round < 50; round++) {
      const marketplace = openMarketplace(platform)
      const calls = Array.from({ length: 6 }, () =>
        Math.random() < 0.5 ? ('start' as const) : ('close' as const),
      )
      const results = await Promise.allSettled([
        ...calls.map(async (call) => {
          if (Math.random() < 0.5) await new Promise((resolve) => setImmediate(resolve))
          return marketplace[call]()
        }),
        marketplace.close(),
      ])
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'closed' })
      }
      expect(await marketplace.isEntitled(B1)).toBe(false)
      expect(await marketplace.health()).toMatchObject({
        status: 'failing',
        problems: [{ code: 'closed' }],
        counts: null,
      })
      await expect(marketplace.start()).rejects.toMatchObject({ code: 'closed' })
    }
  })

  it('K2 can be repeated on the same file', async () => {
    const platform = await startPlatform()
    const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    for (let life = 0; life < 10; life++) {
      const marketplace = openMarketplace(platform, { store })
      if (life === 0) await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
      if (life % 2) await marketplace.start()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      await marketplace.close()
    }
  })

  it('run the worker automatically', async () => {
    const { platform, marketplace } = await createScene()
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await marketplace.health()).status).toBe('ok')
  })
})

describe('a process', () => {
  it('K4 ends by itself with code 0 after close', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const receiver = loadReceiver(settingsFor(platform))
    await receiver.begin()
    await deliver(receiver.target(), notice(uid))
    await until('the subscription is read', async () => {
      const [decision] = await receiver.get<{ entitled: boolean }[]>(`/decisions?of=${B1}`)
      return decision?.entitled
    })
    receiver.signal('SIGTERM')
    expect(await endOf(receiver.ended, 10_000)).toEqual({ code: 0, signal: null, stderr: '' })
  })

  it('K1 ends by itself with code 0 at SIGTERM while reads and handlers are under way', async () => {
    const platform = await startPlatform()
    const uids = ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'].map(
      (business_uid) => platform.purchase({ business_uid, payment: 'succeeded' }).uid,
    )
    const [hangsInHandler, ...hangInRead] = uids as [string, ...string[]]
    for (const subscription_uid of hangInRead)
      platform.faults.add({ on: 'read', kind: 'hang', subscription_uid })
    const receiver = loadReceiver({
      ...settingsFor(platform),
      handler: 'never returns',
      closeTimeoutMs: 300,
      timeoutMs: 60_000,
    })
    await receiver.begin()
    await deliver(receiver.target(), notice(hangsInHandler, 'b1'))
    for (const [i, uid] of hangInRead.entries()) await deliver(receiver.target(), notice(uid, `b${i + 2}`))
    await until('reads hang', () => tokensFor(platform, 'b2') > 0)
    const late = Array.from({ length: 20 }, (_, i) =>
      deliver(receiver.target(), notice(`s${i}`)).catch(() => null),
    )
    receiver.signal('SIGTERM')
    expect(await endOf(receiver.ended, 10_000)).toEqual({ code: 0, signal: null, stderr: '' })
    await Promise.all(late)
  })
})

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
      (await fetch(`${url}/${mount}/${secret}`, { method: 'POST', body: JSON.stringify(notice(uid)) })).status

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
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
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

  it('a database that starts later is found without a restart; until then every business is denied and nothing is acknowledged', async () => {
    const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onCleanUp(() => emitWarning.mockRestore())
    const platform = await startPlatform()
    const folder = join(temporaryFolder(), 'comes-later')
    const marketplace = openMarketplace(platform, { store: `sqlite:${join(folder, 'm.db')}` })
    const url = await serve(express().use('/hooks', marketplace.router))
    const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })

    expect((await deliver(target, notice(uid))).status).toBe(503)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'store_unavailable' })
    expect((await marketplace.health()).status).toBe('failing')
    await expect(marketplace.start()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await marketplace.health()).problems).toMatchObject([
      { code: 'store_not_open', message: expect.stringContaining(folder) },
    ])

    mkdirSync(folder)
    await until('a delivery is accepted', async () => (await deliver(target, notice(uid))).status === 200)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await deliver(target, notice(uid))).status).toBe(200)
    expect((await marketplace.health()).status).toBe('ok')
  })
})

function settingsFor({ baseUrl, authUrl }: Simulator): ChildSettings {
  const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
  return { store, baseUrl, authUrl, works: true, handler: 'returns', closeTimeoutMs: 2_000 }
}

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

async function endOf<T>(ended: Promise<T>, withinMs: number): Promise<T | string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, withinMs, `still running after ${withinMs} ms`)
  })
  return Promise.race([ended, late]).finally(() => clearTimeout(timer))
}
