import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from '@jest/globals'
import { TRANSITIONS } from '../lib/entitlement/purchase-state.js'
import { createClassifier } from '../lib/events/classify.js'
import { EVENTS, type EventName } from '../lib/events/registry.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../lib/record.js'
import {
  createSimulator,
  FAULT_KINDS,
  type Fault,
  type FullSubscription,
  type Simulator,
  type SimulatorOptions,
  sampleDelivery,
} from '../lib/testing/index.js'

const NAMES = Object.keys(EVENTS) as EventName[]
const cleanUps: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

describe('the transition table, row by row', () => {
  it.each(TRANSITIONS.map((row) => ({ ...row, from: row.current.join(' or ') })))(
    'from $from, "$trigger" ($condition) leads to $next and emits $emits',
    async (row) => {
      for (const from of row.current) {
        const { platform, target } = await start()
        await platform.registerAll(target.url)
        const sub = take(platform, row.trigger, from, row.condition)
        await platform.settled()
        const emitted = platform.deliveries
          .filter(({ index }) => index >= sub.before)
          .map(({ event }) => event)
        expect(emitted).toEqual(row.emits ? [row.emits, 'purchasable_subscription/updated'] : [])
        const { status, records } = await read(platform, sub.uid)
        expect(status).toBe(200)
        expect(records).toHaveLength(1)
        expect(records[0]).toMatchObject({ uid: sub.uid, purchase_state: row.next })
        expect(Object.keys(records[0] ?? {}).sort()).toEqual(Object.keys(RECORD_FIELDS).sort())
      }
    },
  )

  it('has no transition out of canceled', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.cancel(uid)
    for (const move of [platform.confirmPayment, platform.paymentIssue, platform.cancel]) {
      expect(() => move(uid)).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
      expect(() => move('unknown')).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
    }
  })

  it('cancels by uninstalling the app, before it delivers the uninstall', async () => {
    const { platform, target } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    await platform.registerAll(target.url)
    platform.uninstall('b1')
    await platform.settled()
    expect(platform.deliveries.map(({ event }) => event)).toEqual([
      'purchasable_subscription/update',
      'purchasable_subscription/updated',
      'application/uninstalled',
      'app_subscription/uninstalled',
    ])
    expect(platform.subscription(uid)?.purchase_state).toBe('canceled')
  })

  it('cancels by cancelling the entire platform subscription', async () => {
    const { platform, target } = await start()
    const app = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const main = platform.mainSubscription({ business_uid: 'b1' })
    const other = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.registerAll(target.url)
    platform.cancelPlatform('b1')
    await platform.settled()
    expect(platform.subscriptions().map(({ purchase_state }) => purchase_state)).toEqual([
      'canceled',
      'canceled',
      'purchased',
    ])
    expect(platform.deliveries.map(({ event, subscription_uid }) => [event, subscription_uid])).toEqual([
      ['purchasable_subscription/update', app.uid],
      ['purchasable_subscription/updated', app.uid],
      ['purchasable_subscription/updated', main.uid],
    ])
    expect(platform.subscription(other.uid)?.is_active).toBe(true)
  })
})

describe('deliveries', () => {
  it('carry each of the seven events as documented', async () => {
    const { platform, target } = await start()
    await platform.registerAll(target.url)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    platform.install('b1')
    platform.confirmPayment(uid)
    platform.uninstall('b1')
    await platform.settled()
    expect(new Set(platform.deliveries.map(({ event }) => event))).toEqual(new Set(NAMES))
    expect(target.bodies).toEqual(platform.deliveries.map(({ body }) => body))
    for (const { event, envelope, status } of platform.deliveries) {
      expect(status).toBe(200)
      expect(envelope).toMatchObject({
        entity_name: EVENTS[event].entity_name,
        event_type: EVENTS[event].event_type,
      })
      expect(Object.keys(envelope.data)).toEqual(Object.keys(sampleDelivery(event).data))
      expect(namesOf(envelope)).toEqual([event])
    }
    const installed = platform.deliveries.find(({ event }) => event === 'application/installed')
    expect(installed?.envelope.data.event_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/)
    expect(target.headers[0]).toMatchObject({ 'content-type': 'application/json' })
  })

  it('go to the registered targets, by the kind of their token', async () => {
    const { platform, target } = await start()
    const other = await startTarget()
    await platform.register('purchasable_subscription/create', target.url)
    const token = platform.businessToken('b2')
    expect(await registerOverHttp(platform, 'app_subscription/installed', other.url, token)).toBe(201)
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.install('b1')
    platform.install('b2')
    await platform.settled()
    expect(target.bodies.map(parse)).toMatchObject([{ event_type: 'created' }])
    expect(other.bodies.map(parse)).toMatchObject([{ event_type: 'installed', data: { business_id: 'b2' } }])
  })

  it('announce a main subscription and a touch by updated alone', async () => {
    const { platform, target } = await start()
    const sub = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.registerAll(target.url)
    const main = platform.mainSubscription({ business_uid: 'b1' })
    platform.touch(sub.uid)
    platform.paymentIssue(main.uid)
    await platform.settled()
    expect(new Set(platform.deliveries.map(({ event }) => event))).toEqual(
      new Set(['purchasable_subscription/updated']),
    )
    expect(platform.deliveries).toHaveLength(3)
    expect(Object.keys(platform.deliveries[0]?.envelope.data ?? {}).sort()).toEqual(
      [...Object.keys(RECORD_FIELDS), ...Object.keys(UPDATED_EVENT_FIELDS)].sort(),
    )
  })

  it('accept the styles that are common in practice', async () => {
    const { platform, target } = await start({
      deliveryStyle: {
        fullRecordCreate: true,
        fullRecordUpdate: true,
        arrays: true,
        numericIds: true,
        contentType: null,
        chunked: true,
        expectContinue: true,
      },
    })
    await platform.register('purchasable_subscription/create', target.url)
    await platform.register('purchasable_subscription/update', target.url)
    const { uid } = platform.purchase({ business_uid: '72', payment: 'succeeded' })
    platform.paymentIssue(uid)
    await platform.settled()
    expect(target.bodies.map(parse)).toMatchObject([
      [{ event_type: 'created', data: { uid: Number(uid), business_uid: 72, purchase_state: 'purchased' } }],
      [{ event_type: 'update', data: { uid: Number(uid), business_uid: 72, purchase_state: 'suspended' } }],
    ])
    expect(target.headers[0]).toMatchObject({ expect: '100-continue', 'transfer-encoding': 'chunked' })
    expect(target.headers[0]).not.toHaveProperty('content-type')
  })

  it('are not sent again when refused, unless requested', async () => {
    const once = await start()
    once.target.status = 503
    await once.platform.register('application/installed', once.target.url)
    once.platform.install('b1')
    await once.platform.settled()
    expect(once.platform.deliveries).toMatchObject([{ status: 503, attempt: 1 }])

    const again = await start({ retries: 2, retryDelayMs: 1 })
    again.target.status = 503
    await again.platform.register('application/installed', again.target.url)
    again.platform.install('b1')
    await again.platform.settled()
    expect(again.platform.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  })

  it('give the reason of a missing answer, and never the address', async () => {
    const { platform, target } = await start({ deliveryTimeoutMs: 50 })
    await platform.register('application/installed', target.url)
    target.status = 0
    platform.install('b1')
    await platform.settled()
    await target.close()
    platform.install('b2')
    await platform.settled()
    expect(platform.deliveries.map(({ error }) => error)).toEqual(['timeout', 'ECONNREFUSED'])
  })

  it('can be sent once more, and reach listeners until they unsubscribe', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    const received: number[] = []
    const stop = platform.on('delivery', ({ index }) => received.push(index))
    platform.install('b1')
    await platform.settled()
    platform.redeliver(0)
    await platform.settled()
    stop()
    platform.redeliver(1)
    await platform.settled()
    expect(received).toEqual([0, 1])
    expect(new Set(target.bodies).size).toBe(1)
    expect(target.bodies).toHaveLength(3)
    expect(() => platform.redeliver(9)).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
  })
})

describe('the token endpoint', () => {
  it('refuses wrong credentials as invalid_client', async () => {
    const { platform } = await start()
    platform.addBusiness('b1')
    for (const wrong of [{ client_id: 'x' }, { client_secret: 'x' }]) {
      const reply = await tokenReply(platform, 'b1', wrong)
      expect(reply).toMatchObject({ status: 401, json: { error: 'invalid_client' } })
    }
  })

  it('refuses other grants, and credentials outside the query', async () => {
    const { platform } = await start()
    platform.addBusiness('b1')
    expect(await tokenReply(platform, 'b1', { grant_type: 'client_credentials' })).toMatchObject({
      status: 400,
    })
    expect(await tokenReply(platform, 'b1', { type: 'x' })).toMatchObject({ status: 400 })
    expect(await tokenReply(platform, '')).toMatchObject({ status: 400 })
    const body = new URLSearchParams(tokenQuery('b1'))
    const inBody = await fetch(`${platform.authUrl}/oauth/token`, { method: 'POST', body })
    expect(inBody.status).toBe(401)
  })

  it('refuses unknown businesses, and those that uninstalled until they install again', async () => {
    const { platform } = await start()
    expect((await tokenReply(platform, 'b1')).status).toBe(403)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    platform.uninstall('b1')
    expect((await tokenReply(platform, 'b1')).status).toBe(403)
    expect((await read(platform, uid, token)).status).toBe(403)
    expect(platform.servesTokens('b1')).toBe(false)
    platform.install('b1')
    expect((await read(platform, uid, token)).records).toMatchObject([{ purchase_state: 'canceled' }])
  })

  it('still serves a business while another of its apps is installed', async () => {
    const { platform } = await start({ apps: [{ codeName: 'one' }, { codeName: 'two' }] })
    platform.install('b1', 'one')
    platform.install('b1', 'two')
    platform.uninstall('b1', 'one')
    expect(platform.servesTokens('b1')).toBe(true)
    platform.uninstall('b1', 'two')
    expect(platform.servesTokens('b1')).toBe(false)
  })

  it('announces the end of tokens in expires_in, and they end then', async () => {
    const clock = { ...realClock(), ahead: 0 }
    const { platform } = await start({ tokenLifetimeMs: 60_000, clock })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const reply = await tokenReply(platform, 'b1')
    expect(reply.json).toMatchObject({ expires_in: 60, token_type: 'Bearer' })
    clock.ahead = 60_000
    expect((await read(platform, uid, String(reply.json.access_token))).status).toBe(401)

    const token = await accessToken(platform, 'b1')
    platform.faults.expireTokens()
    expect((await read(platform, uid, token)).status).toBe(401)
    platform.faults.expiresIn = 'soon'
    expect((await tokenReply(platform, 'b1')).json).toMatchObject({ expires_in: 'soon' })
  })
})

describe('the read call', () => {
  it('needs an app token of the business that it knows', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    expect((await read(platform, uid, '')).status).toBe(401)
    expect((await read(platform, uid, 'made-up')).status).toBe(401)
    expect((await read(platform, uid, platform.businessToken('b1'))).status).toBe(403)
    expect((await read(platform, uid, platform.directoryToken())).status).toBe(403)
    expect(await read(platform, uid, platform.appToken('b2'))).toMatchObject({ status: 200, records: [] })
    expect(await read(platform, uid, platform.appToken('b1'))).toMatchObject({ records: [{ uid }] })
  })

  it('gives an empty array for an unknown or removed uid, and 400 without one', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    expect(await read(platform, 'unknown', token)).toMatchObject({ status: 200, records: [] })
    platform.remove(uid)
    expect(await read(platform, uid, token)).toMatchObject({ status: 200, records: [] })
    expect((await read(platform, '', token)).status).toBe(400)
  })

  it('shows states and fields beyond the document once they are set', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.set(uid, { purchase_state: 'expired', loyalty: { level: 3 } })
    expect((await read(platform, uid)).records).toMatchObject([
      { purchase_state: 'expired', loyalty: { level: 3 } },
    ])
  })
})

describe('the register call', () => {
  it.each(NAMES)('accepts %s with the documented kinds of token only, once', async (event) => {
    const { platform, target } = await start()
    const tokens = {
      app: platform.appToken('b1'),
      business: platform.businessToken('b1'),
      directory: platform.directoryToken(),
    }
    for (const [kind, token] of Object.entries(tokens)) {
      const accepted = (EVENTS[event].tokens as readonly string[]).includes(kind)
      expect(await registerOverHttp(platform, event, target.url, token)).toBe(accepted ? 201 : 403)
      if (accepted) expect(await registerOverHttp(platform, event, target.url, token)).toBe(422)
    }
  })

  it('refuses an invalid registration', async () => {
    const { platform, target } = await start()
    const token = platform.appToken('b1')
    expect(await registerOverHttp(platform, 'nothing', target.url, token)).toBe(422)
    expect(await registerOverHttp(platform, 'application/installed', 'nowhere', token)).toBe(422)
    expect(await registerOverHttp(platform, 'application/installed', target.url, '')).toBe(401)
    await expect(platform.register('application/installed', 'ftp://x')).rejects.toMatchObject({
      code: 'argument_invalid',
    })
    const url = `${platform.baseUrl}/platform/v1/webhook/subscribe`
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    expect((await fetch(url, { method: 'POST', headers, body: '{' })).status).toBe(400)
    expect((await fetch(url, { method: 'POST', headers, body: `"${'x'.repeat(70_000)}"` })).status).toBe(413)
    expect(
      (await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'text/plain' } })).status,
    ).toBe(415)
    expect((await fetch(url)).status).toBe(405)
    expect((await fetch(`${platform.baseUrl}/oauth/token`, { method: 'POST' })).status).toBe(404)
  })
})

describe('faults of calls', () => {
  const cases: [string, Fault, (platform: Simulator, uid: string, token: string) => Promise<unknown>][] = [
    [
      'status answers as configured, with Retry-After',
      { on: 'read', kind: 'status', status: 429, retryAfter: 7 },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, '7'])
        expect(await reply.json()).toMatchObject({ success: false, errors: [{ code: 'fault' }] })
      },
    ],
    [
      'status takes a body and headers of your own',
      { on: 'token', kind: 'status', status: 200, body: { access_token: 7 }, headers: { 'x-a': 'b' } },
      async (platform) => {
        expect((await tokenReply(platform, 'b1')).json).toEqual({ access_token: 7 })
      },
    ],
    [
      'html answers with a page',
      { on: 'platform', kind: 'html' },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect(reply.status).toBe(200)
        expect(await reply.text()).toMatch('<!doctype html>')
      },
    ],
    [
      'hang never answers',
      { on: 'read', kind: 'hang' },
      async (platform, uid, token) => {
        const seen = new Promise((resolve) => platform.on('request', resolve))
        const leave = new AbortController()
        const reply = readReply(platform, uid, token, leave.signal)
        await seen
        leave.abort()
        await expect(reply).rejects.toMatchObject({ name: 'AbortError' })
      },
    ],
    [
      'truncate cuts the reply in half',
      { on: 'read', kind: 'truncate' },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect(reply.status).toBe(200)
        await expect(reply.text()).rejects.toThrow('terminated')
      },
    ],
    [
      'reset breaks the connection',
      { on: 'read', kind: 'reset' },
      (platform, uid, token) => expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed'),
    ],
    [
      'down refuses everything',
      { on: 'platform', kind: 'down' },
      async (platform, uid, token) => {
        await expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed')
        await expect(tokenReply(platform, 'b1')).rejects.toThrow('fetch failed')
      },
    ],
    [
      'slow answers later',
      { on: 'read', kind: 'slow', ms: 30 },
      async (platform, uid, token) => {
        const before = performance.now()
        expect((await read(platform, uid, token)).status).toBe(200)
        expect(performance.now() - before).toBeGreaterThanOrEqual(29)
      },
    ],
    [
      'wrongRecord answers with another subscription',
      { on: 'read', kind: 'wrongRecord' },
      async (platform, uid, token) => {
        const { records } = await read(platform, uid, token)
        expect(records).toHaveLength(1)
        expect(records[0]?.uid).not.toBe(uid)
      },
    ],
    [
      'extraRecords puts others in front',
      { on: 'read', kind: 'extraRecords' },
      async (platform, uid, token) => {
        const { records } = await read(platform, uid, token)
        expect(records.length).toBeGreaterThan(1)
        expect(records[0]?.uid).not.toBe(uid)
        expect(records.at(-1)?.uid).toBe(uid)
      },
    ],
  ]

  it.each(cases)('%s, until it is removed', async (_title, fault, check) => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = platform.appToken('b1')
    const handle = platform.faults.add(fault)
    await check(platform, uid, token)
    handle.remove()
    expect(await read(platform, uid, token)).toMatchObject({ status: 200, records: [{ uid }] })
    expect((await tokenReply(platform, 'b1')).json.access_token).toMatch(/^app-/)
    // A connection that a down platform never accepts does not count as a strike.
    if (fault.kind !== 'down') {
      expect(handle.strikes).toBeGreaterThan(0)
      expect(platform.requests[0]).toMatchObject({ faults: [fault.kind], business_uid: 'b1', inFlight: 1 })
    }
  })

  it('cuts open connections when the platform goes down', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.faults.add({ on: 'read', kind: 'hang' })
    const seen = new Promise((resolve) => platform.on('request', resolve))
    const reply = readReply(platform, uid, platform.appToken('b1'))
    const broken = expect(reply).rejects.toThrow('fetch failed')
    await seen
    platform.faults.add({ on: 'platform', kind: 'down' })
    await broken
  })

  it('strikes a number of times, and only at its target', async () => {
    const { platform } = await start()
    const one = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const two = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    platform.faults.add({ on: 'read', kind: 'status', status: 500, times: 2, subscription_uid: one.uid })
    platform.faults.add({ on: 'token', kind: 'status', status: 403, business_uid: 'b2' })
    const tokens = [platform.appToken('b1'), platform.appToken('b2')]
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) {
      statuses.push((await read(platform, one.uid, tokens[0])).status)
      statuses.push((await read(platform, two.uid, tokens[1])).status)
    }
    expect(statuses).toEqual([500, 200, 500, 200, 200, 200])
    expect((await tokenReply(platform, 'b1')).status).toBe(200)
    expect((await tokenReply(platform, 'b2')).status).toBe(403)
    platform.faults.clear()
    expect((await tokenReply(platform, 'b2')).status).toBe(200)
  })

  it('lags behind by a number of reads, by time, or until removed', async () => {
    const clock = { ...realClock(), ahead: 0 }
    const { platform } = await start({ clock })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    const token = platform.appToken('b1')
    const state = async () => (await read(platform, uid, token)).records[0]?.purchase_state

    const byReads = platform.faults.add({ on: 'read', kind: 'lag', reads: 2 })
    expect([await state(), await state(), await state()]).toEqual([undefined, undefined, 'suspended'])
    platform.confirmPayment(uid)
    expect([await state(), await state(), await state()]).toEqual(['suspended', 'suspended', 'purchased'])
    byReads.remove()

    const byTime = platform.faults.add({ on: 'read', kind: 'lag', ms: 5_000 })
    clock.ahead += 5_000
    platform.paymentIssue(uid)
    expect(await state()).toBe('purchased')
    clock.ahead += 5_000
    expect(await state()).toBe('suspended')
    byTime.remove()

    const bare = platform.faults.add({ on: 'read', kind: 'lag' })
    expect(await state()).toBe('purchased')
    bare.remove()
    expect(await state()).toBe('suspended')
  })

  it('refuses invalid faults at once', async () => {
    const { platform } = await start()
    const wrong = [
      { on: 'delivery', kind: 'hang' },
      { on: 'read', kind: 'nothing' },
      { on: 'token', kind: 'lag' },
      { on: 'read', kind: 'status' },
      { on: 'read', kind: 'status', status: 99 },
      { on: 'delivery', kind: 'drop', probability: 2 },
      { on: 'delivery', kind: 'delay', ms: [0, Number.NaN] },
      { on: 'delivery', kind: 'reorder' },
    ]
    for (const fault of wrong) {
      expect(() => platform.faults.add(fault as Fault)).toThrow(
        expect.objectContaining({ code: 'argument_invalid' }),
      )
    }
  })
})

describe('the documentation', () => {
  it('lists every kind of fault in its table, in the words of the code', () => {
    const page = readFileSync('docs/simulator.md', 'utf8')
    const rows = page.matchAll(/^\| `(\w+)` \| (?:calls|read|deliveries) \| (.+?) \|/gm)
    expect([...rows].map(([, kind, does]) => [kind, does])).toEqual(
      Object.entries(FAULT_KINDS).map(([kind, { does }]) => [kind, does]),
    )
  })
})

describe('faults of deliveries', () => {
  it('duplicate, drop, and hang up', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 2, business_uid: 'b1' })
    platform.faults.add({ on: 'delivery', kind: 'drop', business_uid: 'b2' })
    platform.faults.add({
      on: 'delivery',
      kind: 'hangUp',
      business_uid: 'b3',
      event: 'application/installed',
    })
    for (const business of ['b1', 'b2', 'b3']) platform.install(business)
    await platform.settled()
    expect(platform.deliveries.map(({ business_uid, error }) => [business_uid, error])).toEqual(
      expect.arrayContaining([
        ['b1', undefined],
        ['b1', undefined],
        ['b1', undefined],
        ['b2', 'dropped'],
        ['b3', 'hung up'],
      ]),
    )
    expect(platform.deliveries).toHaveLength(5)
    // The sender of b3 was gone before the target had read it, but all of it had been sent.
    await until(() => target.bodies.length === 4)
    expect(target.bodies.map(parse)).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ business_id: 'b3' }) }),
    )
  })

  it('reach a target several at a time on request', async () => {
    const { platform, target } = await start({ deliveryConcurrency: 3 })
    await platform.register('application/installed', target.url)
    target.status = 0
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 4 })
    platform.install('b1')
    await until(() => target.bodies.length === 3)
    await platform.close()
    expect(platform.deliveries.map(({ error }) => error)).toEqual(['closed', 'closed', 'closed'])
  })

  it('delay one so that others overtake it', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    platform.faults.add({ on: 'delivery', kind: 'delay', ms: [20, 40], times: 1 })
    platform.install('b1')
    platform.install('b2')
    await platform.settled()
    expect(platform.deliveries.map(({ business_uid }) => business_uid)).toEqual(['b2', 'b1'])
  })

  it('reorder by holding back and releasing shuffled: when full, when ended, and for settled()', async () => {
    const { platform, target } = await start({ seed: 3 })
    await platform.register('application/installed', target.url)
    const businesses = Array.from({ length: 8 }, (_, i) => `b${i}`)
    const handle = platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 8 })
    for (const business of businesses) platform.install(business)
    await platform.settled()
    const order = platform.deliveries.map(({ business_uid }) => business_uid)
    expect(order).not.toEqual(businesses)
    expect([...order].sort()).toEqual(businesses)

    platform.install('c1')
    await platform.settled()
    expect(platform.deliveries).toHaveLength(9)

    platform.install('c2')
    const arrived = new Promise((resolve) => platform.on('delivery', resolve))
    handle.remove()
    await arrived
    expect(platform.deliveries).toHaveLength(10)

    platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 8, times: 2 })
    const both = new Promise<void>((resolve) => {
      platform.on('delivery', ({ index }) => index === 11 && resolve())
    })
    platform.install('c3')
    platform.install('c4')
    await both
  })
})

describe('one seed', () => {
  async function run(seed: number | string, noise: boolean) {
    const { platform, target } = await start({ seed })
    await platform.registerAll(target.url)
    platform.faults.add({ on: 'delivery', kind: 'drop', probability: 0.4 })
    platform.faults.add({ on: 'read', kind: 'status', status: 503, probability: 0.5 })
    const token = platform.appToken('b0')
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      const { uid } = platform.purchase({ business_uid: 'b0', payment: 'succeeded' })
      // Requests in between must not change the result of the others.
      if (noise) await read(platform, 'unknown', platform.appToken('b9'))
      for (let j = 0; j < 3; j++) statuses.push((await read(platform, uid, token)).status)
    }
    await platform.settled()
    const fates = platform.deliveries.map(
      ({ event, subscription_uid: uid, error }) => `${event} ${uid} ${error}`,
    )
    return { ids: platform.subscriptions().map(({ uid }) => uid), statuses, fates: fates.sort() }
  }

  it('gives the same identifiers and the same faults again, with any calls in between', async () => {
    const first = await run(7, false)
    expect(await run(7, true)).toEqual(first)
    expect(new Set(first.statuses)).toEqual(new Set([200, 503]))
    expect((await run(8, false)).ids).not.toEqual(first.ids)
  })

  it('is reported when it was drawn at random', () => {
    const one = createSimulator({ clientId: 'client', clientSecret: 'secret' })
    const two = createSimulator({ clientId: 'client', clientSecret: 'secret', seed: one.seed })
    expect(two.apps).toEqual(one.apps)
  })
})

describe('life and limits', () => {
  it('refuses invalid options, all at once', () => {
    const options = {
      clientId: '',
      clientSecret: 's',
      port: -1,
      apps: [],
      deliveryStyle: { contentType: 'a\nb' },
    }
    expect(() => createSimulator(options)).toThrow(
      /^Cannot create the simulator: clientId .*; apps .*; deliveryStyle.contentType .*; port /,
    )
  })

  it('keeps secrets and tokens out of its log of requests', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    await read(platform, uid, token)
    const log = JSON.stringify(platform.requests)
    expect(platform.requests.map(({ endpoint }) => endpoint)).toEqual(['token', 'read'])
    expect(log).not.toContain(token)
    expect(log).not.toContain('the-client-secret')
  })

  it('closes at once, also twice, and refuses use afterwards', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const address = platform.baseUrl
    const token = platform.appToken('b1')
    platform.faults.add({ on: 'read', kind: 'hang' })
    const seen = new Promise((resolve) => platform.on('request', resolve))
    const hanging = expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed')
    await seen
    target.status = 0
    platform.install('b1')
    const settled = platform.settled()
    await Promise.all([platform.close(), platform.close()])
    await Promise.all([hanging, settled])
    await expect(fetch(address)).rejects.toThrow('fetch failed')
    expect(() => platform.install('b2')).toThrow(expect.objectContaining({ code: 'closed' }))
    await expect(platform.start()).rejects.toMatchObject({ code: 'closed' })
  })

  it('leaves nothing that keeps a process alive', async () => {
    const script = `
      import { createSimulator } from './lib/testing/index.ts'
      const platform = createSimulator({ clientId: 'c', clientSecret: 's', retries: 3, retryDelayMs: 60_000 })
      const { baseUrl } = await platform.start()
      await platform.registerAll('http://127.0.0.1:9/')
      platform.faults.add({ on: 'read', kind: 'slow', ms: 60_000 })
      platform.faults.add({ on: 'delivery', kind: 'delay', ms: 60_000, probability: 0.5 })
      platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 9, probability: 0.5 })
      platform.purchase({ business_uid: 'b', payment: 'succeeded' })
      const headers = { authorization: 'Bearer ' + platform.appToken('b') }
      // A fetch of Node 20 on a connection that was idle does not keep the process alive.
      const alive = setInterval(() => {}, 1_000)
      const reply = fetch(baseUrl + '/business/subscriptionsmng/v1/subscriptions?filter[uid]=x', { headers })
      await new Promise((resolve) => setTimeout(resolve, 50))
      await platform.close()
      await reply.catch(() => console.log('done'))
      clearInterval(alive)
    `
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 40_000 })
    expect(stdout.trim()).toBe('done')
  }, 50_000)
})

describe('sampleDelivery', () => {
  it.each(NAMES)('gives %s as classify recognises it', (name) => {
    expect(namesOf(sampleDelivery(name))).toEqual([name])
  })

  it('accepts other values for the fields of data', () => {
    const { data } = sampleDelivery('purchasable_subscription/create', {
      business_id: 72,
      subscription_uid: undefined,
    })
    expect(JSON.parse(JSON.stringify(data))).toEqual({ business_id: 72, purchasable_uid: 'purchasable-1' })
    expect(sampleDelivery('purchasable_subscription/create').data.business_id).toBe('business-1')
  })
})

// Set-up

interface Target {
  url: string
  bodies: string[]
  headers: IncomingHttpHeaders[]
  /** The answers; 0 never answers. */
  status: number
  close(): Promise<void>
}

async function startTarget(): Promise<Target> {
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    target.bodies.push(Buffer.concat(chunks).toString())
    target.headers.push(request.headers)
    if (target.status > 0) response.writeHead(target.status).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const target: Target = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    bodies: [],
    headers: [],
    status: 200,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  cleanUps.push(target.close)
  return target
}

async function start(
  options: Partial<SimulatorOptions> = {},
): Promise<{ platform: Simulator; target: Target }> {
  const platform = createSimulator({ clientId: 'the-client', clientSecret: 'the-client-secret', ...options })
  cleanUps.push(() => platform.close())
  await platform.start()
  return { platform, target: await startTarget() }
}

function take(platform: Simulator, trigger: string, from: string, condition: string | null) {
  const buy = (payment: 'succeeded' | 'failed') => platform.purchase({ business_uid: 'b1', payment })
  if (trigger === 'User purchases an app') {
    const { uid } = buy(condition === 'Payment succeeded' ? 'succeeded' : 'failed')
    return { uid, before: 0 }
  }
  const { uid } = buy(from === 'purchased' ? 'succeeded' : 'failed')
  // The purchase itself causes two deliveries.
  if (trigger === 'Payment confirmation received') platform.confirmPayment(uid)
  else if (trigger === 'Payment issue received') platform.paymentIssue(uid)
  else platform.cancel(uid)
  return { uid, before: 2 }
}

function tokenQuery(business_uid: string, over: Record<string, string> = {}) {
  const client = { client_id: 'the-client', client_secret: 'the-client-secret' }
  return { ...client, grant_type: 'assertion', type: 'token', business_uid, ...over }
}

async function tokenReply(platform: Simulator, business_uid: string, over: Record<string, string> = {}) {
  const query = new URLSearchParams(tokenQuery(business_uid, over))
  const reply = await fetch(`${platform.authUrl}/oauth/token?${query}`, { method: 'POST' })
  return { status: reply.status, json: (await reply.json()) as Record<string, unknown> }
}

async function accessToken(platform: Simulator, business_uid: string): Promise<string> {
  return String((await tokenReply(platform, business_uid)).json.access_token)
}

function readReply(platform: Simulator, uid: string, token: string, signal: AbortSignal | null = null) {
  const query = new URLSearchParams({ 'filter[uid]': uid })
  return fetch(`${platform.baseUrl}/business/subscriptionsmng/v1/subscriptions?${query}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    signal,
  })
}

async function read(platform: Simulator, uid: string, token = platform.appToken('b1')) {
  const reply = await readReply(platform, uid, token)
  const json = (await reply.json()) as { data?: { subscriptions: FullSubscription[] } }
  return { status: reply.status, records: json.data?.subscriptions ?? [] }
}

async function registerOverHttp(platform: Simulator, event: string, target_url: string, token: string) {
  const reply = await fetch(`${platform.baseUrl}/platform/v1/webhook/subscribe`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event, target_url }),
  })
  return reply.status
}

function realClock() {
  return {
    ahead: 0,
    now() {
      return Date.now() + this.ahead
    },
    monotonic: () => performance.now(),
    setTimeout: (callback: () => void, delayMs: number) => setTimeout(callback, delayMs).unref(),
    clearTimeout: (handle: unknown) => clearTimeout(handle as NodeJS.Timeout),
  }
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 5_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('It did not come to pass within 5 s')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** The event, as the package's own receiver would name it. */
function namesOf(envelope: unknown): string[] {
  const found = createClassifier(EVENTS)(envelope)
  return found.recognised ? [found.name] : found.issues
}

function parse(body: string): unknown {
  return JSON.parse(body)
}
