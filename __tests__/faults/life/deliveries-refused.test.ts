import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { DAY, HOUR, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import type { MarketplaceOptions } from '../../../lib/index.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { storeOption } from '../../support/engines/store-option.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { quietWarnings } from '../../support/output.js'
import { createScene, openMarketplace, serve, startPlatform } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

const DELIVERY = JSON.stringify(sampleDelivery('application/installed'))
const JSON_TYPE = { 'content-type': 'application/json' }

interface Refusal {
  options?: Partial<MarketplaceOptions>
  /** Stands in front of the router. */
  before?: express.RequestHandler
  request?: RequestInit
  status: number
  message: string
}

const eatsBody: express.RequestHandler = (req, _res, next) => void req.on('end', next).resume()
const REFUSALS: Record<string, Refusal> = {
  bodies_already_read: { before: eatsBody, status: 500, message: '500 body_already_read' },
  bodies_too_large: {
    options: { bodyLimitBytes: 1_024 },
    request: { body: JSON.stringify('x'.repeat(2_000)) },
    status: 413,
    message: '413 body_too_large',
  },
  content_types_unsupported: {
    request: { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    before: express.urlencoded({ extended: true }),
    status: 415,
    message: '415 content_type_unsupported',
  },
  bodies_not_json: { request: { body: 'entity=application' }, status: 400, message: '400 body_not_json' },
  methods_not_allowed: { request: { method: 'PUT' }, status: 405, message: '405 method_not_allowed' },
  deliveries_refused: {
    options: { verifyDelivery: () => false },
    status: 403,
    message: '403 delivery_refused',
  },
  verification_failing: {
    options: { verifyDelivery: () => Promise.reject(new Error('no keys')) },
    status: 503,
    message: '503 delivery_not_accepted',
  },
}

describe('K63 deliveries that are all refused', () => {
  it.each(Object.entries(REFUSALS))('degrade the health: %s', async (code, refusal) => {
    const { options, before = (_req, _res, next) => next(), request, status, message } = refusal
    quietWarnings()
    const marketplace = openMarketplace(await startPlatform(), { worker: false, ...options })
    const url = await serve(express().use('/hooks', before, marketplace.router))
    const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
    const post = () => fetch(target, { method: 'POST', headers: JSON_TYPE, body: DELIVERY, ...request })
    for (let i = 0; i < 5; i++) expect((await post()).status).toBe(status)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: [
        { code, message: `5 of the last 5 deliveries got ${message}`, next: expect.stringContaining(' ') },
      ],
    })
    // Another instance refuses them too.
    expect(await marketplace.readiness()).toEqual({ ready: true, problems: [] })
  })

  it('count for an hour only if they were not POST: somebody has opened the address in a browser', async () => {
    const { marketplace, deliver, target, jump } = await createScene({ worker: false })
    for (let i = 0; i < 5; i++) await deliver(DELIVERY)
    jump(2 * HOUR)
    for (let i = 0; i < 4; i++) expect((await fetch(target)).status).toBe(405)
    expect((await marketplace.health()).problems).toMatchObject([{ code: 'methods_not_allowed' }])
    jump(HOUR)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
  })

  it('are no problem any more once most of the last five are accepted, and a few among others never are', async () => {
    let accepts = false
    const { deliver, jump, codes } = await createScene({ worker: false, verifyDelivery: () => accepts })
    await deliver(DELIVERY)
    expect(await codes()).toEqual([])
    // One delivery a day.
    jump(DAY)
    await deliver(DELIVERY)
    expect(await codes()).toEqual(['deliveries_refused'])
    for (let i = 0; i < 10; i++) await deliver(DELIVERY)
    accepts = true
    for (let i = 0; i < 2; i++) await deliver(DELIVERY)
    expect(await codes()).toEqual(['deliveries_refused'])
    jump(2 * MINUTE)
    await deliver(DELIVERY)
    expect(await codes()).toEqual([])
    for (let i = 0; i < 30; i++) {
      accepts = i % 3 !== 0
      await deliver(DELIVERY)
      expect([i, await codes()]).toEqual([i, []])
    }
  })
})

describe('K72 deliveries of which every other one is refused', () => {
  it.each([1, 3, 10])(
    'one each %i s: change the health once, and once more when they are accepted again',
    async (seconds) => {
      let accepts = true
      const options = { worker: false, verifyDelivery: () => accepts }
      const { marketplace, deliver, jump } = await createScene(options)
      const edges: string[] = []
      marketplace.onHealthChange(({ status, problems }) =>
        edges.push([status, ...problems.map(({ code }) => code)].join(' ')),
      )
      const accepted = async (is: boolean) => {
        accepts = is
        await deliver(DELIVERY)
        jump(seconds * SECOND)
        await marketplace.health()
      }
      for (let i = 0; i < 60; i++) await accepted(i % 2 === 1)
      expect(edges).toEqual(['degraded deliveries_refused'])
      for (let i = 0; i < 3; i++) await accepted(true)
      expect(edges).toEqual(['degraded deliveries_refused', 'ok'])
      jump(8 * DAY)
      await accepted(false)
      expect(edges).toHaveLength(2)
    },
  )
})

describe('K61 deliveries that are not stored in time', () => {
  it('make the health fail and the instance not ready, until they are accepted again', async () => {
    const { clock, jump } = jumpingClock()
    let slow = true
    const plain = createSqliteEngine({ path: ':memory:', clock })
    const durable = async (since?: number) => {
      if (slow) await setTimeout(250)
      await plain.durable(since)
    }
    const store = createSqlStore({ ...plain, durable }, clock)
    const { marketplace, deliver } = await createScene({
      store: storeOption(store),
      clock,
      worker: false,
      ...internals({ acceptTimeoutMs: 100 }),
    })
    for (let i = 0; i < 3; i++) expect((await deliver(DELIVERY)).status).toBe(503)
    const failing = {
      code: 'deliveries_failing',
      message: '3 of the last 3 deliveries got 503 delivery_not_accepted',
    }
    expect(await marketplace.health()).toMatchObject({ status: 'failing', problems: [failing] })
    expect(await marketplace.readiness()).toMatchObject({ ready: false, problems: [failing] })

    // Out of rotation it gets no deliveries, so after a while it may try again.
    jump(3 * MINUTE)
    await until('the last write has ended', async () => (await store.problem()) === null)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: [{ code: 'deliveries_not_accepted' }],
    })
    expect(await marketplace.readiness()).toMatchObject({ ready: true })
    jump(HOUR)
    // A write that was under way during the jump looks slow until it ends.
    await until('the refusals count no more', async () => (await marketplace.health()).status === 'ok')
    slow = false
    await until('deliveries are accepted', async () => (await deliver(DELIVERY)).status === 200)
    for (let i = 0; i < 3; i++) await deliver(DELIVERY)
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
  })

  it('keep the instance not ready until a write was quick: that a slow one ends proves nothing', async () => {
    const { clock, jump } = jumpingClock()
    const first = gate()
    let isSlow = false
    const plain = createSqliteEngine({ path: ':memory:', clock })
    const durable = async (since?: number) => {
      if (isSlow) {
        jump(4 * SECOND)
        await first.opened
      }
      await plain.durable(since)
    }
    const store = createSqlStore({ ...plain, durable }, clock)
    const { marketplace, deliver } = await createScene({ store: storeOption(store), clock, worker: false })
    await marketplace.start()
    isSlow = true
    const failing = { status: 'failing', problems: [{ code: 'store_write_failed' }] }
    const delivered = deliver(DELIVERY)
    await until('it waits for too long', async () => {
      jump(SECOND)
      return (await marketplace.health()).status === 'failing'
    })
    first.open()
    await delivered
    await until('a probe was slow', async () => {
      const health = await marketplace.health()
      expect(health).toMatchObject(failing)
      expect((await marketplace.readiness()).ready).toBe(false)
      jump(SECOND)
      return /a write took [4-9] s/.test(health.problems[0]?.message ?? '')
    })
    isSlow = false
    await until('a probe was quick', async () => {
      jump(SECOND)
      return (await marketplace.health()).status === 'ok'
    })
    expect((await marketplace.readiness()).ready).toBe(true)
  })

  it('K95 no longer make the instance not ready when its store has recovered, because it gets no delivery before', async () => {
    const inner = storeFor('sqlite::memory:', systemClock)
    let fault: string | null = 'Cannot use the store: the database restarts'
    const { marketplace, deliver } = await createScene({
      store: storeOption({
        ...inner,
        accept: (events) => (fault ? Promise.reject(new Error(fault)) : inner.accept(events)),
        problem: async () => fault,
      }),
      worker: false,
    })
    for (let i = 0; i < 5; i++) await deliver(DELIVERY)
    expect((await marketplace.readiness()).ready).toBe(false)
    expect((await marketplace.health()).problems).toMatchObject([
      { code: 'store_write_failed' },
      { code: 'deliveries_failing' },
    ])

    fault = null
    expect(await marketplace.readiness()).toEqual({ ready: true, problems: [] })
    const { status, problems } = await marketplace.health()
    expect([status, problems]).toMatchObject(['degraded', [{ code: 'deliveries_not_accepted' }]])
    for (let i = 0; i < 2; i++) expect((await deliver(DELIVERY)).status).toBe(200)
    expect((await marketplace.health()).status).toBe('ok')
  })

  it('include those for which the queue is full', async () => {
    const inner = storeFor('sqlite::memory:', systemClock)
    const full = new MarketplaceError('store_unavailable', 'Cannot use the store: too many deliveries wait')
    const { marketplace, deliver } = await createScene({
      store: storeOption({ ...inner, accept: () => Promise.reject(full) }),
      worker: false,
    })
    await Promise.all(Array.from({ length: 20 }, () => deliver(DELIVERY)))
    expect(await marketplace.health()).toMatchObject({
      status: 'failing',
      problems: [{ code: 'deliveries_failing' }],
    })
    expect((await marketplace.readiness()).ready).toBe(false)
  })
})

describe('K64 deliveries with a wrong secret', () => {
  it('degrade the health if no delivery has a right one, from the first purchase on', async () => {
    const { marketplace, target } = await createScene({ worker: false })
    await send(target, 'an-old-secret-of-this-app', 1)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
    await send(target, 'an-old-secret-of-this-app', 1)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: [{ code: 'secrets_wrong', next: expect.stringContaining('deliverySecrets') }],
    })
  })

  it('degrade the health without a pause if one comes every 36 hours, until a week after the last', async () => {
    const { target, jump, codes } = await createScene({ worker: false })
    await send(target, 'an-old-secret-of-this-app', 1)
    for (let i = 0; i < 3; i++) {
      jump(36 * HOUR)
      await send(target, 'an-old-secret-of-this-app', 1)
      expect(await codes()).toEqual(['secrets_wrong'])
    }
    jump(36 * HOUR)
    expect(await codes()).toEqual(['secrets_wrong'])
    jump(6 * DAY)
    expect(await codes()).toEqual([])
    await send(target, 'an-old-secret-of-this-app', 1)
    expect(await codes()).toEqual([])
  })

  it('degrade the health an hour after the last right one, and no longer once a right one arrives', async () => {
    const { target, deliver, jump, codes } = await createScene({ worker: false })
    await deliver(DELIVERY)
    await send(target, 'an-old-secret-of-this-app', 3)
    expect(await codes()).toEqual([])
    jump(HOUR)
    expect(await codes()).toEqual(['secrets_wrong'])
    await deliver(DELIVERY)
    expect(await codes()).toEqual([])
  })

  it.each([
    'text/plain',
    'text/plain;charset=UTF-8',
    'Application/JSON',
    'application/cloudevents+json; charset=utf-8',
    'application/octet-stream',
    null,
  ])('degrade the health whatever content type their sender uses: %s', async (type) => {
    const { target, codes } = await createScene({ worker: false })
    const bytes = Buffer.from(DELIVERY)
    await send(target, 'an-old-secret-of-this-app', 2, {
      headers: type === null ? {} : { 'content-type': type },
      body: bytes,
    })
    expect(await codes()).toEqual(['secrets_wrong'])
  })

  it('are noise beside deliveries with a right one, and if they do not look like deliveries', async () => {
    const { marketplace, target, deliver } = await createScene({ worker: false })
    for (const [method, type] of [
      ['GET', undefined],
      ['POST', 'application/x-www-form-urlencoded'],
      ['POST', 'Multipart/Form-Data; boundary=x'],
      ['POST', 'text/xml'],
      ['POST', 'application/soap+xml; charset=utf-8'],
    ] as const)
      await send(target, 'an-address-for-uploads', 20, {
        method,
        headers: type ? { 'content-type': type } : {},
      })
    // No secret is as short as the paths that strangers try.
    for (const path of ['admin', 'hook', 'wp-login.php']) await send(target, path, 20)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
    await deliver(DELIVERY)
    for (let i = 0; i < 20; i++) await send(target, `guess-of-a-secret-${i}`, 5)
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
    expect(await marketplace.readiness()).toEqual({ ready: true, problems: [] })
  })
})

async function send(target: string, secret: string, times: number, request: RequestInit = {}) {
  const address = target.replace(/[^/]+$/, secret)
  const body = request.method === 'GET' ? {} : { body: '{}' }
  for (let i = 0; i < times; i++)
    expect((await fetch(address, { method: 'POST', headers: JSON_TYPE, ...body, ...request })).status).toBe(
      404,
    )
}
