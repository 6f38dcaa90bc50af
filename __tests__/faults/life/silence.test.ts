import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, MINUTE } from '../../../lib/base/clock.js'
import { claimed, eventOf, named, shows } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { createBusinesses } from '../../support/scenes/many-businesses.js'
import { DELIVERY_SECRET } from '../../support/settings.js'

// Days of virtual time: minutes on a machine under load.
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
    world.lag(20_000)
    await world.change(1)
    await world.advance(HOUR)
    world.lag(0)
    world.fail('failing', 3)
    await world.change(1)
    await world.advance(HOUR)
    expect(world.causes()).toEqual(['event', 'event', 'event'])
  })

  it('D70 reconcile: also after a failed read, until an event comes', async () => {
    const world = await businesses(1)
    await world.change(1, { isLost: true })
    await world.advance(DAY + 6 * HOUR)
    await world.change(1, { isLost: true })
    world.fail('failing', 3)
    await world.advance(DAY + 6 * HOUR)
    await world.change(1)
    await world.advance(MINUTE)
    expect(world.causes()).toEqual(['event', 'reconcile', 'reconcile', 'event'])
  })

  it('D70 request and import; an event counts more than either', async () => {
    const world = await businesses(1)
    await world.change(1, { isLost: true })
    world.askForRead(1)
    await world.advance(HOUR)
    await world.track(2)
    await world.advance(HOUR)
    const imported = world
      .marketplace()
      .subscriptions.import([{ subscriptionUid: 's3', businessUid: 'b3' }], {
        announce: true,
      })
    await world.advance(HOUR)
    await imported
    await world.change(1)
    world.askForRead(1)
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
      world.move(`b${i}`, 'canceled')
      // The reconcile comes first: the event is on its way for half an hour.
      for (let hours = 0; world.causes().length < 6 + i && hours < 60; hours++) await world.advance(HOUR / 2)
      await world.update(i)
    }
    expect(world.causes().slice(6)).toEqual(Array(4).fill('reconcile'))
    expect(await world.health()).toEqual(['ok'])
  })

  it('D71 health is degraded also if the app calls refresh at each login, so that the reconcile finds nothing', async () => {
    const world = await businesses(6)
    for (const i of [1, 2, 3, 4]) {
      await world.change(i, { isLost: true })
      world.askForRead(i)
    }
    await world.advance(HOUR / 2)
    expect(world.causes().slice(6)).toEqual(Array(4).fill('request'))
    expect(await world.health()).toEqual(['ok'])
    for (const i of [5, 6]) {
      await world.change(i, { isLost: true })
      world.askForRead(i)
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
      world.askForRead(i)
    }
    await world.advance(MINUTE)
    expect(world.causes().slice(4)).toEqual(Array(4).fill('request'))
    for (const i of [1, 2, 3, 4]) await world.update(i)
    for (let hours = 0; hours < 6; hours++) {
      expect(await world.health()).toEqual(['ok'])
      await world.advance(HOUR / 2)
    }
  })

  it('D71 an import, a read of all, and customers whom the app adds by track, are no silence', async () => {
    const world = await businesses(0)
    const uids = [1, 2, 3, 4, 5]
    const imported = world
      .marketplace()
      .subscriptions.import(uids.map((i) => ({ subscriptionUid: `s${i}`, businessUid: `b${i}` })))
    await world.advance(HOUR)
    await imported
    for (const i of [6, 7, 8, 9]) await world.track(i)
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

describe.each(ENGINE_NAMES)('D71 after searches, on %s', (name) => {
  const engine = useEngine(name)

  it('counts the first records that searches found an hour later, unless an event came', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const journal = name === 'SQLite' ? 'journal' : 'marketplace_webhooks.journal'
    const payload = JSON.stringify({ subscription_uid: 's', from: null, to: 'purchased', record: {} })
    for (let i = 0; i < 4; i++) {
      await store.requestRefresh(named(`s${i}`, `b${i}`))
      const claim = await claimed(store)
      const change = { id: `c${i}`, key: `s${i}`, businessUid: `b${i}`, cause: 'reconcile', payload } as const
      await store.finishRead(claim, shows(claim, 'purchased', { changes: [change] }))
    }
    await store.accept([eventOf('s0', { businessUid: 'b0' })])
    expect(await store.counts()).toMatchObject({ recentFirstRecords: 0 })
    await sql(`update ${journal} set received_at = received_at - ${2 * HOUR}`)
    expect(await store.counts()).toMatchObject({ recentFirstRecords: 4, unannouncedFirstRecords: 3 })
  })
})

/** Businesses that have bought with an event each. */
async function businesses(count: number) {
  const world = await createBusinesses(0)
  const causes = () => world.changes.map(({ cause }) => cause)
  for (let i = 1; i <= count; i++) await world.buy(i)
  await world.advance(2 * HOUR)
  expect(causes()).toEqual(Array(count).fill('event'))
  return {
    ...world,
    causes,
    /** Alternates between a missed and a confirmed payment. */
    async change(i: number, { isLost = false, secret = DELIVERY_SECRET } = {}) {
      world.move(`b${i}`, world.state(i) === 'purchased' ? 'suspended' : 'purchased')
      if (!isLost) await world.update(i, `s${i}`, secret)
    },
    /** Nobody waits for the read. */
    askForRead: (i: number) => void world.marketplace().businesses.refresh(`b${i}`),
    async health() {
      const { status, problems } = await world.ask(world.marketplace().health())
      return [status, ...problems]
    },
  }
}
