import { createHash, createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import { EVENTS } from '../../../lib/events/registry.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { CLIENT, createScene, DELIVERY_SECRET, deliver, OTHER_ITEM, OUR_ITEM } from '../../support/scene.js'
import { customEvents } from '../../support/scenes/own-events.js'

const NEW_SECRET = 'Tn4vXk29qLs7Wp3zRb8yHd6c'
const NEVER = { count: 0, firstAt: null, lastAt: null }
const update = (purchasable_uid: string, subscription_uid = 's1') =>
  sampleDelivery('purchasable_subscription/update', { business_id: 'b1', purchasable_uid, subscription_uid })

describe.each(ENGINE_NAMES)('webhooks.check() on %s', (name) => {
  const engine = useEngine(name)

  it('lists every event, including those that never came, by secret, and requests with a wrong secret', async () => {
    const before = Date.now()
    const {
      marketplace,
      target,
      url,
      deliver: send,
    } = await createScene({
      store: await engine.freshAddress(),
      deliverySecrets: [NEW_SECRET, DELIVERY_SECRET],
    })
    await send(update(OUR_ITEM))
    await send(update(OTHER_ITEM, 's2'))
    await deliver(target.replace(NEW_SECRET, DELIVERY_SECRET), update(OUR_ITEM))
    await send({ something: 'else' })
    for (const wrong of ['x', `${DELIVERY_SECRET}x`]) await fetch(`${url}/hooks/${wrong}`, { method: 'POST' })

    const report = await marketplace.webhooks.check()
    expect(report.events.map(({ event }) => event)).toEqual(Object.keys(EVENTS))
    const events = new Map(report.events.map((each) => [each.event, each]))
    expect(events.get('application/installed')).toEqual({
      event: 'application/installed',
      ...NEVER,
      secrets: [],
    })
    const updates = events.get('purchasable_subscription/update')
    expect(updates).toMatchObject({
      count: 3,
      secrets: [
        { secret: 'first', configured: true, count: 2 },
        { secret: 'second', configured: true, count: 1 },
      ],
    })
    expect(Date.parse(String(updates?.firstAt))).toBeGreaterThanOrEqual(before - 2_000)
    expect(Date.parse(String(updates?.lastAt))).toBeLessThanOrEqual(Date.now() + 2_000)
    expect(report).toMatchObject({
      secrets: [
        { secret: 'first', count: 3 },
        { secret: 'second', count: 1 },
      ],
      unrecognised: { count: 1 },
      secretWrong: { count: 2 },
    })
  })

  it('survives a restart, and shows the rotated secret as removed', async () => {
    const store = await engine.freshAddress()
    const first = await createScene({ store })
    await first.deliver(sampleDelivery('application/installed'))
    await first.marketplace.close()
    const next = await createScene({ store, deliverySecrets: NEW_SECRET, adoptStore: true })
    await next.deliver(sampleDelivery('application/installed'))
    const { events, secrets } = await next.marketplace.webhooks.check()
    const installed = events.find(({ event }) => event === 'application/installed')
    expect(Date.parse(String(installed?.lastAt))).toBeGreaterThan(Date.parse(String(installed?.firstAt)))
    expect(installed).toMatchObject({
      count: 2,
      secrets: [
        { secret: 'first', configured: true, count: 1 },
        { secret: 'removed', configured: false, count: 1 },
      ],
    })
    expect(secrets.map(({ secret }) => secret)).toEqual(['first', 'removed'])
  })

  it('knows the secret of a delivery that verifyDelivery let in', async () => {
    const { marketplace, target } = await createScene({
      ...{ store: await engine.freshAddress(), deliverySecrets: [NEW_SECRET, DELIVERY_SECRET] },
      verifyDelivery: () => true,
    })
    await deliver(target.replace(NEW_SECRET, DELIVERY_SECRET), update(OUR_ITEM))
    expect((await marketplace.webhooks.check()).secrets).toMatchObject([{ count: 0 }, { count: 1 }])
  })

  it('lists the events that the app defines, too', async () => {
    const { marketplace } = await createScene({ store: await engine.freshAddress(), events: customEvents })
    const { events } = await marketplace.webhooks.check()
    expect(events.find(({ event }) => event === 'invoice/paid')).toMatchObject(NEVER)
  })

  it('reaches back to the end of the retention', async () => {
    const { marketplace } = await createScene({
      store: await engine.freshAddress(),
      retention: { eventsMs: DAY },
    })
    const { since } = await marketplace.webhooks.check()
    expect(Math.abs(Date.now() - Date.parse(since) - DAY)).toBeLessThan(10_000)
  })

  it('reaches back to the oldest of the newest 100,000 entries', async () => {
    const address = await engine.freshAddress()
    const { sql, store } = await openStoreWithSql(address)
    const now = Date.now()
    await sql(`with recursive n(i) as (select 1 union all select i + 1 from n where i < 100001)
      insert into journal (id, kind, name, topic, key, payload, status, attempts, received_at, settled_at)
      select 'e' || (1000000 - i), 'event', 'application/installed', 'event:application/installed', 'x', '{}', 'done', 0,
        ${now} - i, ${now} from n`)
    await store.close()
    const { marketplace } = await createScene({ store: address, worker: false })
    const { since, events, secrets } = await marketplace.webhooks.check()
    expect(Math.abs(now - Date.parse(since) - 100_000)).toBeLessThan(10_000)
    expect(events.find(({ event }) => event === 'application/installed')).toMatchObject({ count: 100_000 })
    expect(secrets).toMatchObject([{ secret: 'first', count: 0 }])
  }, 60_000)
})

describe('webhooks.check()', () => {
  it('stores nothing that could confirm a guessed secret', async () => {
    const folder = temporaryFolder()
    const { marketplace, deliver: send } = await createScene({ store: `sqlite:${folder}/m.db` })
    await send(sampleDelivery('application/installed'))
    await marketplace.webhooks.check()
    await marketplace.close()
    const files = readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`, 'latin1'))
    const guesses = [
      DELIVERY_SECRET,
      createHash('sha256').update(DELIVERY_SECRET).digest('hex'),
      createHash('sha256').update(`delivery secret ${DELIVERY_SECRET}`).digest('hex'),
      createHmac('sha256', '').update(`delivery secret ${DELIVERY_SECRET}`).digest('hex'),
      createHmac('sha256', CLIENT.clientId).update(`delivery secret ${DELIVERY_SECRET}`).digest('hex'),
    ].map((guess) => guess.slice(0, 8))
    expect(files.join('')).toContain('application/installed')
    expect(guesses.filter((guess) => files.some((file) => file.includes(guess)))).toEqual([])
  })
})
