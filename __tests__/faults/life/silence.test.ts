import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, MINUTE } from '../../../lib/base/clock.js'
import type { PurchaseChange } from '../../../lib/index.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { claimed, eventOf, named, shows } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { internals } from '../../support/internals.js'
import { createReceiverLives } from '../../support/receiving/receiver-lives.js'
import { DELIVERY_SECRET, OUR_ITEM } from '../../support/settings.js'

// Days of virtual time with real files: minutes on a machine under load.
jest.setTimeout(300_000)

const SILENT = expect.arrayContaining([
  'degraded',
  expect.objectContaining({
    code: 'events_missing',
    // Nobody can list the registrations.
    next: expect.stringMatching(/^Register the four events .*again.*harmless/),
    message: expect.stringMatching(
      /^\d+ of the last \d+ changes of known subscriptions came without an event this week$/,
    ),
  }),
])

describe('D70 each change has a cause', () => {
  it('D70 event: also of a retry of its read, and of a verification after it', async () => {
    const world = await businesses(1)
    expect(world.causes()).toEqual(['event'])
    world.platform.lag(20_000)
    await world.change(1)
    await world.advance(HOUR)
    world.platform.heal()
    world.platform.fail('failing', 3)
    await world.change(1)
    await world.advance(HOUR)
    expect(world.causes()).toEqual(['event', 'event', 'event'])
  })

  it('D70 reconcile: also after a failed read, until an event comes', async () => {
    const world = await businesses(1)
    await world.change(1, { isLost: true })
    await world.advance(DAY + 6 * HOUR)
    await world.change(1, { isLost: true })
    world.platform.fail('failing', 3)
    await world.advance(DAY + 6 * HOUR)
    await world.change(1)
    await world.advance(MINUTE)
    expect(world.causes()).toEqual(['event', 'reconcile', 'reconcile', 'event'])
  })

  it('D70 request and import; an event counts more than either', async () => {
    const world = await businesses(1)
    await world.change(1, { isLost: true })
    void world.marketplace().businesses.refresh('b1')
    await world.advance(HOUR)
    world.platform.step('s2', 'b2', 'User purchases an app', 'Payment succeeded')
    await world.marketplace().subscriptions.track({ subscriptionUid: 's2', businessUid: 'b2' })
    await world.advance(HOUR)
    world.platform.step('s3', 'b3', 'User purchases an app', 'Payment succeeded')
    const imported = world
      .marketplace()
      .subscriptions.import([{ subscriptionUid: 's3', businessUid: 'b3' }], {
        announce: true,
      })
    await world.advance(HOUR)
    await imported
    await world.change(1)
    void world.marketplace().businesses.refresh('b1')
    await world.advance(HOUR)
    expect(world.causes()).toEqual(['event', 'request', 'request', 'import', 'event'])
    const changes = await world.marketplace().journal.list({ kind: 'change' })
    expect(changes.map(({ cause }) => cause).reverse()).toEqual(world.causes())
    const history = await world.marketplace().businesses.history('b1')
    expect(history.flatMap((item) => (item.kind === 'change' ? item.cause : []))).toEqual([
      'event',
      'request',
      'event',
    ])
    expect((await world.marketplace().journal.list({ kind: 'event' }))[0]?.cause).toBeNull()
  })
})

describe('D71 when changes come without events', () => {
  it.each(['the registration was removed', 'the secret moved on one side'])(
    'D71 because %s, health is degraded, also after a restart, and ok again after a few events',
    async (how) => {
      const world = await businesses(6)
      expect(await world.health()).toEqual(['ok'])
      const lost = how.startsWith('the secret') ? { secret: 'wrong' } : { isLost: true }
      for (const i of [1, 2, 3, 4, 5, 6]) await world.change(i, lost)
      await world.advance(DAY + 6 * HOUR)
      expect(world.causes().slice(6)).toEqual(Array(6).fill('reconcile'))
      expect(await world.health()).toEqual(SILENT)
      await world.restart()
      expect(await world.health()).toEqual(SILENT)

      for (const i of [1, 2, 3, 4, 5]) await world.change(i)
      await world.advance(MINUTE)
      expect(await world.health()).toEqual(['ok'])
    },
  )

  it('D71 health is degraded for an app with few changes too, for a week at most', async () => {
    const world = await businesses(3)
    for (const lost of [[1, 2], [3]]) {
      expect(await world.health()).toEqual(['ok'])
      for (const i of lost) await world.change(i, { isLost: true })
      await world.advance(DAY + 6 * HOUR)
    }
    expect(await world.health()).toEqual(SILENT)
    await world.advance(7 * DAY)
    expect(await world.health()).toEqual(['ok'])
  })

  it('D71 because only the registration of updates was removed, health is degraded, however many purchases come', async () => {
    const world = await businesses(5)
    for (const i of [1, 2, 3, 4, 5]) await world.change(i, { isLost: true })
    for (let i = 6; i <= 15; i++) await world.buy(i)
    await world.advance(DAY + 6 * HOUR)
    expect(world.causes().slice(15)).toEqual(Array(5).fill('reconcile'))
    expect(await world.health()).toEqual(SILENT)
    for (let i = 16; i <= 30; i++) await world.buy(i)
    await world.advance(2 * HOUR)
    expect(await world.health()).toEqual(SILENT)

    for (const i of [1, 2, 3, 4, 5]) await world.change(i)
    await world.advance(MINUTE)
    expect(await world.health()).toEqual(['ok'])
  })

  it('D71 a few lost events, and events that come after the reconcile, are ordinary life', async () => {
    const world = await businesses(4)
    await world.change(1, { isLost: true })
    await world.change(2, { isLost: true })
    await world.advance(DAY + 6 * HOUR)
    expect(await world.health()).toEqual(['ok'])

    for (const i of [1, 2, 3, 4]) {
      world.platform.step(`s${i}`, `b${i}`, 'User cancels the app subscription')
      // The reconcile comes first: the event is on its way for half an hour.
      for (let hours = 0; world.causes().length < 6 + i && hours < 60; hours++) await world.advance(HOUR / 2)
      await world.announce(i)
    }
    expect(world.causes().slice(6)).toEqual(Array(4).fill('reconcile'))
    expect(await world.health()).toEqual(['ok'])
  })

  it('D71 health is degraded also if the app calls refresh at each login, so that the reconcile finds nothing', async () => {
    const world = await businesses(6)
    for (const i of [1, 2, 3, 4]) {
      await world.change(i, { isLost: true })
      void world.marketplace().businesses.refresh(`b${i}`)
    }
    await world.advance(HOUR / 2)
    expect(world.causes().slice(6)).toEqual(Array(4).fill('request'))
    expect(await world.health()).toEqual(['ok'])
    for (const i of [5, 6]) {
      await world.change(i, { isLost: true })
      void world.marketplace().businesses.refresh(`b${i}`)
    }
    await world.advance(2 * HOUR)
    expect(await world.health()).toEqual(SILENT)

    for (const i of [1, 2, 3, 4, 5]) await world.change(i)
    await world.advance(MINUTE)
    expect(await world.health()).toEqual(['ok'])
  })

  it('D71 pages that call refresh before the event arrives are no silence', async () => {
    const world = await businesses(4)
    for (const i of [1, 2, 3, 4]) {
      await world.change(i, { isLost: true })
      void world.marketplace().businesses.refresh(`b${i}`)
    }
    await world.advance(MINUTE)
    expect(world.causes().slice(4)).toEqual(Array(4).fill('request'))
    for (const i of [1, 2, 3, 4]) await world.announce(i)
    for (let hours = 0; hours < 6; hours++) {
      expect(await world.health()).toEqual(['ok'])
      await world.advance(HOUR / 2)
    }
  })

  it('D71 an import, a read of all, and customers whom the app adds by track, are no silence', async () => {
    const world = await businesses(0)
    const uids = [1, 2, 3, 4, 5]
    for (const i of uids) world.platform.step(`s${i}`, `b${i}`, 'User purchases an app', 'Payment succeeded')
    const imported = world
      .marketplace()
      .subscriptions.import(uids.map((i) => ({ subscriptionUid: `s${i}`, businessUid: `b${i}` })))
    await world.advance(HOUR)
    await imported
    for (const i of [6, 7, 8, 9]) {
      world.platform.step(`s${i}`, `b${i}`, 'User purchases an app', 'Payment succeeded')
      await world.marketplace().subscriptions.track({ subscriptionUid: `s${i}`, businessUid: `b${i}` })
    }
    await world.advance(3 * HOUR)
    expect(new Set(world.causes())).toEqual(new Set(['import', 'request']))
    expect(await world.health()).toEqual(['ok'])
    for (const i of [6, 7, 8, 9]) await world.change(i, { isLost: true })
    await world.marketplace().subscriptions.refreshAll()
    await world.advance(3 * HOUR)
    expect(world.causes().slice(-4)).toEqual(Array(4).fill('import'))
    expect(await world.health()).toEqual(['ok'])
  })
})

describe.each(ENGINE_NAMES)('D71 on %s', (name) => {
  const engine = useEngine(name)

  it('counts the changes that requests found an hour later, unless an event came or the subscription is new', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const table = (each: string) => (name === 'SQLite' ? each : `marketplace_webhooks.${each}`)
    for (let i = 0; i < 5; i++) {
      await store.requestRefresh(named(`s${i}`, `b${i}`))
      const claim = await claimed(store)
      const change = {
        id: `c${i}`,
        key: `s${i}`,
        businessUid: `b${i}`,
        cause: 'request',
        payload: '{}',
      } as const
      await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] }))
    }
    expect(await store.counts()).toMatchObject({ recentChanges: 0, unannouncedChanges: 0 })
    await store.accept([eventOf('s0', { businessUid: 'b0' })])
    const ago = (hours: number) => `${hours * HOUR}`
    await sql(`update ${table('journal')} set received_at = received_at - ${ago(2)}`)
    expect(await store.counts()).toMatchObject({ recentChanges: 0, unannouncedChanges: 0 })
    await sql(
      `update ${table('subscriptions')} set created_at = created_at - ${ago(4)} where subscription_uid <> 's4'`,
    )
    expect(await store.counts()).toMatchObject({ recentChanges: 4, unannouncedChanges: 3 })
  })
})

/** Businesses `b1`, `b2` … that have bought `s1`, `s2` … with an event each, in virtual time. */
async function businesses(count: number) {
  const changes: PurchaseChange[] = []
  const lives = await createReceiverLives({
    path: join(temporaryFolder(), 'silence.db'),
    dozeMs: 5 * MINUTE,
    onPurchaseChange: (change) => void changes.push(change),
    marketplace: {
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM },
      deliverySecrets: DELIVERY_SECRET,
      freshness: { waitMs: 0 },
      ...internals({ pollMs: MINUTE }),
      closeTimeoutMs: 1_000,
    },
  })
  onCleanUp(() => lives.end())
  const { clock, marketplace, platform } = lives
  let receive: RequestListener = () => {}
  const server = createServer((req, res) => receive(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanUp(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
  const open = () => {
    receive = marketplace().listener({ path: '/hooks' })
  }
  open()

  /** Delivers the event of the last change. Reactions are measured in seconds. */
  async function announce(i: number, secret = DELIVERY_SECRET, event: 'create' | 'update' = 'update') {
    const data = { subscription_uid: `s${i}`, business_id: `b${i}`, purchasable_uid: OUR_ITEM }
    clock.lookClosely(MINUTE)
    const { status } = await fetch(`${url}/${secret}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(sampleDelivery(`purchasable_subscription/${event}`, data)),
    })
    expect(status).toBe(secret === DELIVERY_SECRET ? 200 : 404)
  }

  async function buy(i: number) {
    platform.step(`s${i}`, `b${i}`, 'User purchases an app', 'Payment succeeded')
    await announce(i, DELIVERY_SECRET, 'create')
  }

  for (let i = 1; i <= count; i++) await buy(i)
  await clock.advance(2 * HOUR)
  expect(changes.map(({ cause }) => cause)).toEqual(Array(count).fill('event'))

  return {
    platform,
    marketplace,
    announce,
    buy,
    advance: clock.advance,
    causes: () => changes.map(({ cause }) => cause),
    /** Alternates between a missed and a confirmed payment. */
    async change(i: number, { isLost = false, secret = DELIVERY_SECRET } = {}) {
      clock.lookClosely(MINUTE)
      const isPaid = platform.state(`s${i}`) === 'purchased'
      platform.step(`s${i}`, `b${i}`, isPaid ? 'Payment issue received' : 'Payment confirmation received')
      if (!isLost) await announce(i, secret)
    },
    async restart() {
      await lives.restart('close')
      open()
      await clock.advance(MINUTE)
    },
    async health() {
      const { status, problems } = await marketplace().health()
      return [status, ...problems]
    },
  }
}
