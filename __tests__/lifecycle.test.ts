import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it, jest } from '@jest/globals'
import express from 'express'
import { appToken, ConfigError, createMarketplace, type MarketplaceOptions } from '../lib/index.js'
import { findSqlite } from '../lib/sqlite/drivers.js'
import { type Simulator, sampleDelivery } from '../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from './support/clean-up.js'
import type { ChildSettings } from './support/receiver-child.js'
import { loadReceiver } from './support/receiver-process.js'
import { createScene, deliver, openMarketplace, serve, startPlatform } from './support/scene.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from './support/settings.js'
import { gate, until } from './support/until.js'

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
      expect(await marketplace.health()).toEqual({ status: 'failing', problems: ['closed'], counts: null })
      await expect(marketplace.start()).rejects.toMatchObject({ code: 'closed' })
    }
  })

  it('K2 works on the same file life after life', async () => {
    const platform = await startPlatform()
    const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    for (let life = 0; life < 10; life++) {
      const marketplace = openMarketplace(platform, { store })
      if (life === 0) await marketplace.track({ subscription_uid: uid, business_uid: B1 })
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

describe('close', () => {
  it('lets a handler and a read finish, and stores their results', async () => {
    const { platform, store, marketplace } = await createFileScene({ closeGraceMs: 5_000 })
    const [called, finish] = [gate(), gate()]
    marketplace.onPurchaseChange(() => {
      called.open()
      return finish.opened
    })
    const first = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: first.uid, business_uid: B1 })
    await called.opened
    platform.faults.add({ on: 'read', kind: 'slow', ms: 200 })
    const second = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await marketplace.track({ subscription_uid: second.uid, business_uid: 'b2' })
    await until('the slow read has begun', () => tokensFor(platform, 'b2') > 0)
    const closed = marketplace.close()
    finish.open()
    await closed

    platform.faults.add({ on: 'platform', kind: 'down' })
    const next = openMarketplace(platform, { store })
    expect((await next.explain('b2')).subscriptions).toMatchObject([
      { purchase_state: 'purchased', pending: false },
    ])
    const changes = await next.journal.list({ kind: 'change' })
    expect(changes.find(({ business_uid }) => business_uid === B1)).toMatchObject({ status: 'done' })
  })

  it.each([
    ['a handler that never returns', 'handler'],
    ['a read that hangs', 'read'],
    ['a token that never comes', 'token'],
  ] as const)('does not wait longer than its grace for %s', async (_what, hung) => {
    const { platform, store, marketplace } = await createFileScene({
      closeGraceMs: 200,
      platform: { timeoutMs: 60_000 },
      worker: { pollMs: 50, handlerTimeoutMs: 60_000 },
    })
    const called = gate()
    marketplace.onPurchaseChange(() => {
      called.open()
      return hung === 'handler' ? new Promise(() => {}) : undefined
    })
    if (hung !== 'handler') platform.faults.add({ on: hung, kind: 'hang' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: uid, business_uid: B1 })
    await until('it hangs', () =>
      hung === 'handler' ? called.opened.then(() => true) : platform.requests.length > 0,
    )
    const begun = Date.now()
    await marketplace.close()
    expect(Date.now() - begun).toBeLessThan(8_000)

    // The next process goes on at once, not when a lease expires.
    platform.faults.clear()
    const next = openMarketplace(platform, { store })
    const again = gate()
    next.onPurchaseChange(() => again.open())
    await until('access', () => next.isEntitled(B1))
    await until('the change is handled', () => again.opened.then(() => true))
  })

  it('makes every later call fail with closed', async () => {
    const { platform, marketplace } = await createFileScene()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const token = platform.appToken(B1)
    await marketplace.close()
    const asked = [
      () => marketplace.start(),
      () => marketplace.track({ subscription_uid: uid, business_uid: B1 }),
      () => marketplace.refresh(B1),
      () => marketplace.fetchAppToken(B1),
      () =>
        marketplace.registerWebhook({
          event: 'application/installed',
          targetUrl: 'https://app.test/hooks',
          token: appToken(token),
        }),
      () => marketplace.journal.list(),
      () => marketplace.journal.replay('e1'),
    ]
    for (const ask of asked) await expect(ask()).rejects.toMatchObject({ code: 'closed', retryable: false })
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })

  it('waits for nothing without grace', async () => {
    const { platform, marketplace } = await createFileScene({ closeGraceMs: 0 })
    const called = gate()
    marketplace.onPurchaseChange(() => {
      called.open()
      return new Promise(() => {})
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: uid, business_uid: B1 })
    await called.opened
    const begun = Date.now()
    await marketplace.close()
    expect(Date.now() - begun).toBeLessThan(8_000)
  })

  it('loses no delivery that arrives meanwhile: each is acknowledged and stored, or refused', async () => {
    const { platform, store, marketplace } = await createFileScene()
    const url = await serve(express().use('/hooks', marketplace.router))
    const target = marketplace.targetUrl(`${url}/hooks`)
    const replies = Array.from({ length: 40 }, (_, i) => deliver(target, notice(`s${i}`)))
    await replies[0]
    const closing = marketplace.close()
    replies.push(...Array.from({ length: 10 }, (_, i) => deliver(target, notice(`late${i}`))))
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    await closing
    replies.push(deliver(target, notice('after')))
    expect((await replies.at(-1))?.status).toBe(503)
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true)

    const next = openMarketplace(platform, { store })
    const kept = new Set((await next.journal.list({ limit: 1_000 })).map(({ id }) => id))
    for (const { status, id } of await Promise.all(replies)) {
      if (status === 200) expect(kept).toContain(id)
    }
  })

  it('answers questions that are waiting for a read', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 60_000 }, closeGraceMs: 50 })
    platform.faults.add({ on: 'read', kind: 'hang' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const waiting = [
      marketplace.isEntitled(B1),
      marketplace.explain(B1),
      marketplace.refresh(B1).catch(() => null),
    ]
    await marketplace.close()
    const [entitled, decision] = await Promise.all(waiting)
    expect(entitled).toBe(false)
    expect(decision).toMatchObject({ entitled: false, known: false })
  }, 10_000)
})

describe('a process', () => {
  it('K4 ends by itself with code 0 after close', async () => {
    const platform = await startPlatform()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const receiver = loadReceiver(settingsFor(platform))
    await receiver.begin()
    await deliver(receiver.target(), notice(uid))
    await until('its read', async () => {
      const [decision] = await receiver.get<{ entitled: boolean }[]>(`/decisions?of=${B1}`)
      return decision?.entitled
    })
    receiver.signal('SIGTERM')
    expect(await endOf(receiver.ended, 10_000)).toEqual({ code: 0, signal: null, stderr: '' })
  })

  it('K1 ends by itself with code 0 at SIGTERM with everything in flight', async () => {
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
      closeGraceMs: 300,
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
    await until('ours is handled', () => received.length > 0)
    await ours.close()
    expect(await statusAt('theirs', secrets[1])).toBe(200)
    expect((await theirs.health()).status).not.toBe('failing')
    expect(received).toEqual(['ours'])
  })
})

describe('before the store is open', () => {
  it('a question waits for it', async () => {
    const { platform, store, marketplace } = await createFileScene()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: uid, business_uid: B1 })
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

  it('a database that starts later is found without a restart; until then every business is denied and nothing acknowledged', async () => {
    const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onCleanUp(() => emitWarning.mockRestore())
    const platform = await startPlatform()
    const folder = join(temporaryFolder(), 'comes-later')
    const marketplace = openMarketplace(platform, { store: `sqlite:${join(folder, 'm.db')}` })
    const url = await serve(express().use('/hooks', marketplace.router))
    const target = marketplace.targetUrl(`${url}/hooks`)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })

    expect((await deliver(target, notice(uid))).status).toBe(503)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'store_unavailable' })
    expect((await marketplace.health()).status).toBe('failing')
    await expect(marketplace.start()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await marketplace.health()).problems).toEqual([expect.stringContaining(folder)])

    mkdirSync(folder)
    await until('it is taken', async () => (await deliver(target, notice(uid))).status === 200)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await marketplace.health()).status).toBe('ok')
  })
})

describe('options', () => {
  const SECRET = 'canary-5Qz8'

  it('L2 that are wrong are listed all at once, without a secret', () => {
    const wrong = {
      app: { clientId: '', clientSecret: 7, purchasableUid: [''], clientSecrets: SECRET },
      platform: {
        baseUrl: `https://me:${SECRET}@platform.test`,
        authUrl: 'nowhere',
        timeoutMs: 0,
        fetch: 'fetch',
      },
      deliverySecrets: [SECRET, 'change-me-change-me'],
      store: 7,
      entitledWhen: true,
      freshness: { waitMs: -1, maxStaleMs: '72h' },
      worker: { concurrency: 0 },
      closeGraceMs: Number.NaN,
      unheardOf: SECRET,
    }
    const error = thrownBy(() => createMarketplace(wrong as unknown as MarketplaceOptions))
    expect(error).toBeInstanceOf(ConfigError)
    const { code, message, faults } = error as ConfigError
    expect(code).toBe('config_invalid')
    for (const named of [
      'app.clientId',
      'app.clientSecret',
      'app.purchasableUid',
      'clientSecrets',
      'platform.baseUrl',
      'platform.authUrl',
      'platform.timeoutMs',
      'platform.fetch',
      'deliverySecrets.0',
      'deliverySecrets.1',
      'store',
      'entitledWhen',
      'freshness.waitMs',
      'freshness.maxStaleMs',
      'worker.concurrency',
      'closeGraceMs',
      'unheardOf',
    ]) {
      expect(faults.filter((fault) => fault.includes(named))).not.toEqual([])
      expect(message).toContain(named)
    }
    expect(inspect(error, { depth: null })).not.toContain(SECRET)
  })

  it.each([
    [undefined],
    [null],
    ['https://platform.test'],
    [[]],
    [{}],
    [{ app: null, platform: null, deliverySecrets: null }],
  ])('that are %p throw a ConfigError', (given) => {
    const error = thrownBy(() => createMarketplace(given as unknown as MarketplaceOptions))
    expect(error).toBeInstanceOf(ConfigError)
  })

  it.each([
    [{ app: { purchasableUid: [] } }, 'app.purchasableUid: expected at least one'],
    [{ app: { purchasableUid: 7 } }, 'app.purchasableUid: expected a text, or several in an array'],
    [{ worker: true }, 'worker: expected an object of settings, or nothing for the defaults'],
    [{ app: { clientId: undefined } }, 'app.clientId: expected string, and it is missing'],
    [{ retries: 3 }, 'options: unknown option: "retries"'],
    [{ worker: { concurrency: 0 } }, 'worker.concurrency: expected 1 or more'],
    [{ platform: { concurrency: 0.5 } }, 'platform.concurrency: expected a whole number'],
    [{ receiver: { bodyLimitBytes: 1 } }, 'receiver.bodyLimitBytes: expected 1024 bytes or more'],
    [{ freshness: { waitMs: -1 } }, 'freshness.waitMs: expected 0 ms or more'],
    [
      { deliverySecrets: 'q8Zr3mW5' },
      'deliverySecrets.0: a delivery secret must have at least 16 characters: make one with `openssl rand -hex 24`',
    ],
  ])('such as %j explain in their own words what was expected', (wrong: object, fault) => {
    const { app, platform, ...rest } = wrong as { app?: object; platform?: object }
    const given = {
      app: { ...CLIENT, ...app },
      platform: { baseUrl: 'https://platform.test', authUrl: 'https://auth.test', ...platform },
      deliverySecrets: DELIVERY_SECRET,
      ...rest,
    }
    const error = thrownBy(() => createMarketplace(given as unknown as MarketplaceOptions))
    expect((error as ConfigError).faults).toEqual([fault])
  })

  it('that are undefined keep their defaults', async () => {
    const marketplace = createMarketplace({
      app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: undefined },
      platform: {
        baseUrl: 'http://127.0.0.1:1',
        authUrl: 'http://127.0.0.1:1',
        fetch: undefined,
        timeoutMs: undefined,
      },
      deliverySecrets: 'Jq2vWn8xTz5rLc3mKp7d',
      store: 'sqlite::memory:',
      entitledWhen: undefined,
      freshness: undefined,
      worker: undefined,
      closeGraceMs: undefined,
      clock: undefined,
    })
    expect(await marketplace.isEntitled(B1)).toBe(false)
    await marketplace.close()
  })
})

/** A platform without deliveries, and a marketplace on a file of its own. */
async function createFileScene(options: Parameters<typeof openMarketplace>[1] = {}) {
  const platform = await startPlatform()
  const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
  return { platform, store, marketplace: openMarketplace(platform, { ...options, store }) }
}

function settingsFor({ baseUrl, authUrl }: Simulator): ChildSettings {
  const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
  return { store, baseUrl, authUrl, works: true, handler: 'returns', closeGraceMs: 2_000 }
}

function notice(subscription_uid: string, business_id = B1) {
  return sampleDelivery('purchasable_subscription/create', {
    business_id,
    subscription_uid,
    purchasable_uid: OUR_ITEM,
  })
}

function tokensFor(platform: Simulator, business: string): number {
  return platform.requests.filter((each) => each.endpoint === 'token' && each.business_uid === business)
    .length
}

/** Locks the database file as another process would. Returns the function that releases it. */
async function lockFile(store: string): Promise<() => void> {
  const connection = (await findSqlite()).open(store.slice('sqlite:'.length))
  connection.exec('pragma locking_mode = exclusive')
  connection.exec('begin exclusive')
  let isOpen = true
  // Closed, because a connection whose first use of a WAL is exclusive keeps its lock until then.
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

function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
