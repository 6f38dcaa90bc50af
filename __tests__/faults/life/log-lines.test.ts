import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import type { Request } from 'express'
import { z } from 'zod'
import { HOUR } from '../../../lib/base/clock.js'
import { WARNINGS } from '../../../lib/base/warnings.js'
import { defineEvent, type EntitlementChange, type Logger } from '../../../lib/index.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { internals } from '../../support/internals.js'
import { captureDebug, quietWarnings } from '../../support/output.js'
import { createScene, serve } from '../../support/scene.js'
import { consoleCaller, mountConsole } from '../../support/scenes/console.js'
import { until } from '../../support/until.js'

/** Each ends or changes a line, or turns the text after it around. */
const ODD =
  'one\r\ntwo\u0000\u001b[31mred\u0085\u009b2J\u202eesrever\u2066\u200b\u2028\ufeff\ud800.\u{e0041}\u{e0000}\ufe0f\u3164\u001b]8;;http://x\u0007'
const CANARY = 'canary of a buyer'
const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]{1,4200}$/u

describe('L47 a line of the log', () => {
  it('L47 is one printable line of bounded length, whatever is thrown or received', async () => {
    const { lines, all, logger } = collecting()
    let answer: () => boolean = () => true
    const { marketplace, platform, deliver, app, url } = await createScene({
      logger,
      handlers: { retryDelaysMs: [] },
      freshness: { waitMs: 0 },
      entitledWhen: () => answer(),
      verifyDelivery({ text }) {
        if (text?.includes('unverified')) throw new RangeError(`${ODD}, ${'y'.repeat(10_000)}`)
        return true
      },
    })
    app.use('/paid', marketplace.requireEntitlement({ businessUid: () => 'b\u202e\u2066' }))
    const thrown = [
      () => new Error(ODD + 'x'.repeat(10_000)),
      () => ODD,
      () => Object.assign(new Error('x'), { name: ODD }),
      () =>
        Object.assign(new Error('x'), {
          stack: `${ODD}\n    at ${ODD}\n    at ${'z'.repeat(9_000)} (f:1:1)`,
        }),
      () => new Error('outer', { cause: new Error(ODD) }),
      () => new (Object.defineProperty(class extends Error {}, 'name', { value: ODD }))('of an odd class'),
    ]
    for (const make of thrown) {
      const remove = marketplace.on('application/installed', () => {
        throw make()
      })
      await deliver(sampleDelivery('application/installed', { business_id: 'b\u202e\u2066' }))
      await marketplace.settled()
      remove()
    }
    marketplace.onHandlerError(({ error }) => {
      throw error
    })
    marketplace.onHealthChange(() => Promise.reject(new Error(ODD)))
    expect((await deliver({ unverified: true })).status).toBe(503)
    await serveOtherwise(marketplace, () => Promise.reject(new Error(`otherwise ${ODD}`)))
    answer = () => {
      throw new Error(`the rule ${ODD}`)
    }
    await deliver(
      sampleDelivery('purchasable_subscription/create', {
        business_id: 'b\u202e\u2066',
        subscription_uid: 's\u2028',
        purchasable_uid: 'item-\u202e\u200b',
      }),
    )
    await deliver({ entity_name: ODD, event_type: ODD, data: {} })
    await deliver(sampleDelivery('application/installed', { business_id: 'x'.repeat(500_000) }))
    await marketplace.journal.recordAction({ actor: ODD, action: ODD, reason: ODD, businessUid: 'b\u202e' })
    platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.settled()
    await until(
      'the rule fails',
      async () => (await marketplace.explain('b2')).reason === 'entitled_when_failed',
    )
    await marketplace.health()
    expect((await fetch(`${url}/paid`)).status).toBe(503)

    expect(lines.map(([level]) => level)).toEqual(expect.arrayContaining(['debug', 'warn', 'error']))
    for (const code of ['handler_failed', 'otherwise_failed', 'entitled_when_failed', 'action'])
      expect(lines.map(([, fields]) => fields.code)).toContain(code)
    // The controls: the texts themselves are there.
    for (const text of ['two', 'red', 'of an odd class', 'otherwise one two', 'the rule one two', 'yyy'])
      expect(all().join('\n')).toContain(text)
    expect(all().filter((text) => !PRINTABLE.test(text))).toEqual([])
  })

  it('L48 contains no text of what its code was given, however the error quotes it', async () => {
    const { lines, all, logger } = collecting()
    let [ruleFails, mayEnter] = [false, true]
    const { marketplace, platform, deliver, app, url } = await createScene({
      logger,
      handlers: { retryDelaysMs: [] },
      entitledWhen(record) {
        if (ruleFails) throw new Error(`cannot understand ${String(record.note)}`)
        return mayEnter
      },
      verifyDelivery({ text = '' }) {
        if (text.includes('unverified')) JSON.parse(`${text}${text}`)
        return true
      },
    })
    app.use('/paid', marketplace.requireEntitlement({ businessUid: () => 'b0' }))
    const note = `${CANARY}, "quoted"\nand long enough to be cut by a message`
    const quotes: ((data: Record<string, unknown>) => unknown)[] = [
      (data) => JSON.parse(String(data.note)),
      (data) => JSON.parse(`{"note":${String(data.note)}}`),
      (data) => z.strictObject({ plan: z.literal('a') }).parse(data),
      (data) => {
        throw new Error(`cannot use ${JSON.stringify(data)}`)
      },
      (data) => {
        throw new Error(String(data.note).toUpperCase())
      },
      (data) => {
        throw `thrown: ${String(data.note)}`
      },
      (data) => {
        throw new Error('it failed', { cause: new Error(String(data.note)) })
      },
      (data) => {
        throw Object.assign(new Error('it failed'), { name: String(data.note) })
      },
      (data) => {
        throw new Error(`first line\n    at ${String(data.note)} (/app/file.js:1:1)`)
      },
      (data) => {
        throw new (Object.defineProperty(class extends Error {}, 'name', { value: String(data.word) }))(
          'it failed',
        )
      },
      (data) => {
        const named = {
          [String(data.word)]: () => {
            throw new Error('it failed')
          },
        }
        return named[String(data.word)]?.()
      },
      (data) => {
        throw new Error(`no name: ${String(data.short)}`)
      },
    ]
    const ids: string[] = []
    for (const quote of quotes) {
      const remove = marketplace.on('application/installed', ({ data }) => void quote({ ...data }))
      const data = { note, word: 'canaryWord', short: 'Zoë', 'canary-key': 1 }
      ids.push((await deliver(sampleDelivery('application/installed', data))).id)
      await marketplace.settled()
      remove()
    }
    marketplace.onHandlerError(({ error }) => {
      throw error
    })
    marketplace.onUnrecognised(({ envelope }) => JSON.parse((envelope as { text: string }).text))
    ids.push((await deliver({ text: CANARY })).id)
    await deliver({ unverified: CANARY })
    mayEnter = false
    const denied = platform.purchase({ business_uid: 'b0', payment: 'succeeded' })
    platform.set(denied.uid, { purchase_state: `${CANARY}: odd` })
    await platform.settled()
    await until('it is read', async () => (await marketplace.explain('b0')).asOf)
    expect((await fetch(`${url}/paid`)).status).toBe(402)
    ruleFails = true
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.set(uid, { note: CANARY, purchase_state: `${CANARY}: suspended` })
    await platform.settled()
    await until(
      'the rule fails',
      async () => (await marketplace.explain('b1')).reason === 'entitled_when_failed',
    )
    await deliver({
      entity_name: 'purchasable_subscription',
      event_type: 'created',
      data: { business_id: 'b9', subscription_uid: 's9', purchasable_uid: CANARY },
    })
    await marketplace.health()
    await marketplace.settled().catch(() => {})

    const said = all().join('\n')
    expect(said).not.toMatch(/canary|buyer|Zoë/i)
    // The controls: every failure was logged, and the journal has the whole text.
    for (const words of [
      'SyntaxError',
      'ZodError',
      'it failed',
      'repeats what was received',
      'entitledWhen threw Error',
      'not_purchased: The platform shows',
    ])
      expect(said).toContain(words)
    expect(lines.filter(([, { code }]) => code === 'dead')).not.toEqual([])
    const errors = await Promise.all(ids.map(async (id) => (await marketplace.journal.get(id))?.error))
    expect(errors.filter((error) => /canary|Zoë/i.test(error ?? '')).length).toBeGreaterThan(8)
  })

  it('L48 contains nothing that its code was given beside the delivery: of a request, of other records, by a schema', async () => {
    const { lines, all, logger } = collecting()
    const { marketplace, platform, deliver, app, url, target, jump } = await createScene(
      {
        logger,
        app: { purchasableUid: ['item-canary', 'team'], codeName: ['ours', 'other'] },
        handlers: { retryDelaysMs: [] },
        events: { 'application/rated': RATED },
        entitledWhen: ({ note }) => ({ entitled: true, until: String(note) }),
        verifyDelivery({ req }) {
          const { 'x-quoted': quoted, 'x-signature': signature } = req.headers
          if (quoted !== undefined) throw new Error(`bad ${quoted === 'url' ? req.url : signature}`)
          return true
        },
      },
      {
        apps: [
          { purchasableUid: 'item-canary', codeName: 'ours' },
          { purchasableUid: 'team', codeName: 'other' },
        ],
      },
    )
    const purchaseUrls = [
      (req: Request) => JSON.parse(String(req.headers.cookie)),
      (req: Request) => Promise.reject(new Error(`no shop for ${req.headers.cookie}`)),
    ]
    for (const [i, purchaseUrl] of purchaseUrls.entries()) {
      const gate = marketplace.requireEntitlement({ businessUid: () => 'b0', purchaseUrl })
      app.use(`/paid${i}`, gate)
      const headers = { cookie: `session=${CANARY}` }
      expect((await fetch(`${url}/paid${i}`, { headers })).status).toBe(402)
    }
    for (const quoted of ['url', 'signature']) {
      const headers = { 'x-quoted': quoted, 'x-signature': CANARY, 'content-type': 'application/json' }
      const sent = { method: 'POST', body: '{}', headers }
      expect((await fetch(`${target}?note=canary`, sent)).status).toBe(503)
      jump(HOUR)
    }
    await serveOtherwise(
      marketplace,
      ({ headers }) => Promise.reject(new RangeError(`no shop for ${headers.cookie}`)),
      { cookie: `session=${CANARY}` },
    )
    marketplace.onAny(({ name, data }) => {
      if (String(name) === 'application/rated')
        throw new Error(`cannot rate ${(data as Record<string, unknown>).name}`)
    })
    const name = Buffer.from(CANARY).toString('base64')
    await deliver({ entity_name: 'application', event_type: 'rated', data: { business_id: 'b0', name } })
    const quotes: ((change: EntitlementChange) => unknown)[] = [
      ({ entitledItems }) => entitledItems[0],
      ({ previousItems }) => previousItems[0],
      ({ accessUntil }) => accessUntil,
    ]
    for (const quote of quotes)
      marketplace.onEntitlementChange((change) => {
        throw new (change.previousItems.length === 0 ? Error : RangeError)(`no seats for ${quote(change)}`)
      })
    for (const [i, item] of ['item-canary', 'team'].entries()) {
      const { uid } = platform.purchase({ business_uid: 'b1', purchasable_uid: item, payment: 'succeeded' })
      platform.set(uid, { note: '2077-10-17T00:00:00.000Z' })
      await until(
        'its change is dead',
        async () =>
          (await marketplace.journal.list({ kind: 'entitlement', status: 'dead' })).length === i + 1,
      )
      jump(HOUR)
    }

    expect(all().join('\n')).not.toMatch(/canary|buyer|2077/i)
    // The controls: every failure was logged, and the entries have the whole texts.
    expect(all().join('\n')).toContain('purchaseUrl threw SyntaxError, whose message')
    expect(all().join('\n')).toContain('A handler of entitlement failed: Error, whose message')
    const codesOfLines = lines.map(([, { code }]) => code)
    for (const code of ['purchase_url_failed', 'otherwise_failed', 'handler_failed', 'unexpected', 'dead'])
      expect(codesOfLines).toContain(code)
    expect(codesOfLines.filter((code) => code === 'handler_failed')).toHaveLength(7)
    const dead = await marketplace.journal.list({ kind: 'event', status: 'dead' })
    expect(dead.map(({ error }) => error)).toEqual([`Error: cannot rate ${CANARY}`])
  })

  it('L48 contains nothing of what a schema has made of a delivery, whatever holds it', async () => {
    const { lines, all, logger } = collecting()
    const made: Record<string, { schema: z.ZodType; value: string; quote(made: never): unknown }> = {
      set: {
        schema: z.string().transform((text) => new Set([decode(text)])),
        value: encode(CANARY),
        quote: (names: Set<string>) => [...names][0],
      },
      map: {
        schema: z.string().transform((text) => new Map([[{ deep: decode(text) }, new Date(0)]])),
        value: encode(CANARY),
        quote: (names: Map<{ deep: string }, Date>) => [...names.keys()][0]?.deep,
      },
      class: {
        schema: z.string().transform((text) => new Hidden(decode(text))),
        value: encode(CANARY),
        quote: (hidden: Hidden) => hidden.text,
      },
      function: {
        schema: z.string().transform((text) => () => decode(text)),
        value: encode(CANARY),
        quote: (read: () => string) => read(),
      },
      accessor: {
        schema: z
          .string()
          .transform((text) => Object.defineProperty({}, 'text', { get: () => decode(text) })),
        value: encode(CANARY),
        quote: (holder: { text: string }) => holder.text,
      },
      circle: {
        schema: z.string().transform((text) => {
          const circle: Record<string, unknown> = { text: decode(text) }
          return Object.assign(circle, { circle })
        }),
        value: encode(CANARY),
        quote: (circle: { text: string }) => circle.text,
      },
      date: { schema: z.coerce.date(), value: '26 Nov 2077', quote: String },
      local: { schema: z.coerce.date(), value: '2077-11-26', quote: (date: Date) => date.toLocaleString() },
      stored: { schema: z.string().transform(() => 1), value: CANARY, quote: () => CANARY },
      nothing: {
        schema: z.string().transform((text) => new Set([text])),
        value: 'x',
        quote: () => 'seat at all',
      },
    }
    const ofApp = Object.entries(made).map(([kind, { schema }]) => {
      const data = z.object({ business_id: z.string(), made: schema })
      const subject = ({ business_id }: { business_id: string }) => ({ business_uid: business_id })
      return [
        `application/${kind}`,
        defineEvent({ entity_name: 'application', event_type: kind, data, tokens: ['app'], subject }),
      ]
    })
    const events = Object.fromEntries(ofApp)
    const { marketplace, deliver, jump } = await createScene({
      logger,
      handlers: { retryDelaysMs: [] },
      events,
    })
    marketplace.onAny(({ name, data }) => {
      const kind = String(name).replace(/.*\//, '')
      const { quote } = made[kind] as (typeof made)[string]
      throw new (classNamed(`Of${kind}`))(`there is no ${quote((data as unknown as { made: never }).made)}`)
    })
    for (const [kind, { value }] of Object.entries(made)) {
      const data = { business_id: 'b0', made: value }
      await deliver({ entity_name: 'application', event_type: kind, data })
      await until(
        'its line',
        () => all().join().includes(`failed: Of${kind},`) || all().join().includes('seat'),
      )
      jump(HOUR)
    }
    expect(all().filter((text) => /canary|buyer|2077/i.test(text))).toEqual([])
    // The controls: every failure was logged, and the entries have the whole texts.
    expect(lines.filter(([, { code }]) => code === 'handler_failed')).toHaveLength(ofApp.length)
    expect(all().join('\n')).toContain('failed: there is no seat at all')
    const dead = await marketplace.journal.list({ kind: 'event', status: 'dead' })
    expect(dead.filter(({ error }) => /no .*(?:canary|2077)/.test(String(error)))).toHaveLength(9)
  })

  it('L48 is made without a look into what holds values for its own code alone, however large', async () => {
    const { all, logger } = collecting()
    let looks = 0
    const photo = Object.defineProperty(Buffer.alloc(10), 'size', { enumerable: true, get: () => ++looks })
    const data = z.object({ business_id: z.string(), photo: z.string().transform(() => photo) })
    const rated = defineEvent({ entity_name: 'application', event_type: 'rated', data, tokens: ['app'] })
    const { marketplace, deliver } = await createScene({ logger, events: { 'application/rated': rated } })
    marketplace.onAny(() => {
      throw new TypeError('no room')
    })
    await deliver({ entity_name: 'application', event_type: 'rated', data: { business_id: 'b0', photo: '' } })
    await until('its line', () => all().join().includes('failed: TypeError, whose message may repeat'))
    expect(looks).toBe(0)
  })

  it('L48 contains nothing of what code decodes in a request', async () => {
    const { all, logger } = collecting()
    const NAME = 'Anna Müller'
    const cookie = `theme=dark; user=${encodeURIComponent(JSON.stringify({ name: NAME, short: 'Zoë' }))}`
    const token = `e30.${Buffer.from(JSON.stringify({ sub: NAME, short: 'Zoë' })).toString('base64url')}.c2ln`
    const requests: { path?: string; headers?: Record<string, string>; quote: string }[] = [
      { path: '/?name=Anna+M%C3%BCller', quote: NAME },
      { path: '/?name=Zo%C3%AB', quote: 'Zoë' },
      { path: '/of/Anna%20M%C3%BCller', quote: NAME },
      { headers: { cookie }, quote: NAME },
      { headers: { cookie }, quote: 'Zoë' },
      { headers: { authorization: `Basic ${encode('zoe:anna müller')}` }, quote: 'zoe' },
      { headers: { authorization: `Basic ${encode('zoe:anna müller')}` }, quote: NAME },
      { headers: { authorization: `Bearer ${token}` }, quote: NAME },
      { headers: { authorization: `Bearer ${token}` }, quote: 'Zoë' },
      {
        headers: { cookie: `session=${encodeURIComponent(encode(JSON.stringify({ n: NAME })))}` },
        quote: NAME,
      },
      { path: '/to/Anna%20M%C3%BCller%', quote: NAME },
      { path: '/?n=1', headers: { cookie: 'theme=dark' }, quote: 'seat at all' },
    ]
    let quoted = ''
    let count = 0
    const fail = () => {
      throw new (classNamed(`E${count++}`))(`there is no ${quoted}`)
    }
    const scene = await createScene({ logger, verifyDelivery: fail })
    const { marketplace, target, app, jump } = scene
    const listener = marketplace.listener({ path: '/hooks', otherwise: fail })
    app.use('/of/:name', listener)
    const url = await serve(listener)
    for (const { path = '/', headers = {}, quote } of requests) {
      quoted = quote
      expect((await fetch((path.startsWith('/of') ? scene.url : url) + path, { headers })).status).toBe(500)
      const query = path.slice(path.indexOf('?') + 1)
      const sent = { method: 'POST', body: '{}', headers: { ...headers, 'content-type': 'application/json' } }
      if (path.startsWith('/?') || path === '/')
        expect((await fetch(`${target}?${query}`, sent)).status).toBe(503)
      jump(HOUR)
    }
    expect(all().filter((text) => /müller|zoë|zoe/i.test(text))).toEqual([])
    expect(all().filter((text) => text.includes('there is no seat at all')).length).toBeGreaterThan(3)
    expect(count).toBe(2 * requests.length - 2)
  })

  it.each(['Jo Li', "O'Hara", 'A/1', '李'])(
    'L48 contains no short value of a delivery: %s',
    async (buyer) => {
      const { all, logger } = collecting()
      const { marketplace, deliver } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
      marketplace.on('application/installed', ({ data }) => {
        throw new Error(`unknown customer ${(data as Record<string, unknown>).buyer}`)
      })
      const { id } = await deliver(sampleDelivery('application/installed', { buyer }))
      await marketplace.settled()
      expect(all()).toContain(`event ${id}: Error, whose message repeats what was received`)
      expect(all().filter((text) => text.includes(`customer ${buyer}`))).toEqual([])
      expect((await marketplace.journal.get(id))?.error).toBe(`Error: unknown customer ${buyer}`)
    },
  )

  it('L48 has the message of an error that quotes nothing', async () => {
    const { all, logger } = collecting()
    const { marketplace, deliver } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
    marketplace.on('application/installed', () => {
      throw new TypeError('no business has this subscription: the mail server is away')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    const message = 'no business has this subscription: the mail server is away'
    expect(all()).toContain(`event ${id}: TypeError: ${message}`)
    expect(all()).toContainEqual(
      expect.stringContaining(`A handler of event:application/installed failed: ${message}.`),
    )
  })

  it.each([
    "Cannot read properties of undefined (reading 'x')",
    'connect ECONNREFUSED 127.0.0.1:6379',
    'Missing signature of a webhook of the marketplace',
  ])('L48 has the message that quotes nothing of a request, also over a Unix socket: %s', async (message) => {
    const { all, logger } = collecting()
    const fail = () => {
      throw new TypeError(message)
    }
    const { marketplace, target } = await createScene({ logger, verifyDelivery: fail })
    const listener = marketplace.listener({ path: '/webhooks/marketplace', otherwise: fail })
    const socketPath = join(temporaryFolder(), 'app.sock')
    const server = createServer(listener).listen(socketPath)
    onCleanUp(() => server.close())
    await once(server, 'listening')
    const path = `/webhooks/marketplace/${target.split('/').at(-1)}`
    for (const options of [
      { socketPath, path, method: 'POST' },
      { socketPath, path: '/other' },
    ]) {
      const headers = {
        'content-type': 'application/json',
        host: '127.0.0.1:3000',
        'x-forwarded-for': '127.0.0.1',
      }
      const sent = request({ ...options, headers })
      sent.end(options.method === 'POST' ? '{}' : undefined)
      const [reply] = (await once(sent, 'response')) as [IncomingMessage]
      expect(reply.resume().statusCode).toBeGreaterThanOrEqual(500)
    }
    await serveOtherwise(marketplace, fail)
    expect((await fetch(target, { method: 'POST', body: '{}' })).status).toBe(503)
    expect(all().join('\n')).toContain(message)
    expect(all().filter((text) => text.includes('what was received'))).toEqual([])
  })

  it('L48 has the message of an error that repeats words of our own', async () => {
    const { all, logger } = collecting()
    const { marketplace, platform, deliver, jump } = await createScene({
      logger,
      handlers: { retryDelaysMs: [] },
    })
    const messages = [
      'cannot reach the mail server with this known token: no envelope, no issues',
      'request to http://mail failed, reason: socket hang up, cause: unknown',
    ]
    const fail = (message?: string) => () => {
      throw new TypeError(message)
    }
    marketplace.onUnrecognised(fail(messages[0]))
    marketplace.onEntitlementChange(fail(messages[1]))
    await deliver({ entity_name: 'x', event_type: 'y', data: {} })
    await marketplace.settled()
    jump(HOUR)
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until(
      'its change is dead',
      async () => (await marketplace.journal.list({ status: 'dead' })).length === 2,
    )
    for (const message of messages) expect(all().join('\n')).toContain(`TypeError: ${message}`)
    expect(all().filter((text) => text.includes('what was received'))).toEqual([])
  })

  it('L48 has our own message for a delivery that verifyDelivery did not answer in time', async () => {
    const { all, logger } = collecting()
    const { marketplace, target } = await createScene({
      logger,
      verifyDelivery: () => new Promise<boolean>(() => {}),
      ...internals({ acceptTimeoutMs: 50 }),
    })
    const url = await serve(marketplace.listener({ path: '/deliveries' }))
    const sent = {
      method: 'POST',
      body: '{"note":"delivery"}',
      headers: { 'content-type': 'application/json' },
    }
    expect((await fetch(`${url}/deliveries/${target.split('/').at(-1)}`, sent)).status).toBe(503)
    expect(all()).toContain('MarketplaceError: Cannot accept the delivery: it was not accepted within 50 ms')
  })
})

describe('L50 warnings and lines', () => {
  it('L50 are written for a thrown value that throws itself when it is read', async () => {
    const { lines, warned, logger } = collecting()
    const { marketplace, deliver, jump } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
    const fail = () => {
      throw new Error('not to be read')
    }
    const traps = {
      get: fail,
      has: fail,
      getPrototypeOf: fail,
      ownKeys: fail,
      getOwnPropertyDescriptor: fail,
    }
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const odd = new Error('odd')
    expect(odd.stack).toContain('odd')
    for (const name of ['message', 'stack', 'cause', 'errors', 'code', 'name', 'constructor'])
      Object.defineProperty(odd, name, { get: fail })
    const thrown = [new Proxy({}, traps), new Proxy(new Error('x'), traps), revoked.proxy, odd]
    for (const [i, value] of thrown.entries()) {
      const remove = marketplace.on('application/installed', () => {
        throw value
      })
      const { id } = await deliver(sampleDelivery('application/installed'))
      await marketplace.settled()
      remove()
      expect((await marketplace.journal.get(id))?.status).toBe('dead')
      expect(lines.filter(([, { code }]) => code === 'dead')).toHaveLength(i + 1)
      expect(lines.filter(([, { code }]) => code === 'handler_failed')).toHaveLength(i + 1)
      expect(warned.filter(({ code }) => code === 'handler_failed')).toHaveLength(i + 1)
      jump(HOUR)
    }
    const { deliver: refused } = await createScene({
      logger,
      verifyDelivery: () => Promise.reject(revoked.proxy),
    })
    expect((await refused(sampleDelivery('application/installed'))).status).toBe(503)
    expect(lines.filter(([, { area }]) => area === 'receiving')).toHaveLength(1)
  })

  it('L50 are not written for bodies that anybody with the delivery secret can send', async () => {
    const { lines, logger } = collecting()
    const { target } = await createScene({ worker: false, logger })
    const cut = gzipSync('{"entity_name":"application"}').subarray(0, 20)
    for (const [encoding, body] of [
      ['gzip', cut],
      ['br', cut],
      ['zstd', cut],
      ['identity', '{"entity_name":'],
      ['identity', new Uint8Array([0xff, 0xfe])],
    ] as const) {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding }
      expect((await fetch(target, { method: 'POST', headers, body })).status).toBeGreaterThanOrEqual(400)
    }
    expect(lines).toEqual([])
  })

  it('L50 are bounded in number, whatever varies in their texts, and the last one of a kind says so', async () => {
    const { lines, warned, logger } = collecting()
    const { marketplace, deliver, jump } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
    let count = 0
    marketplace.on('application/installed', () => {
      count++
      const name = `Failure${count}`
      throw new (Object.defineProperty(class extends Error {}, 'name', { value: name }))(`text ${count}`)
    })
    const refused = await serveOtherwise(marketplace, () => {
      throw new (Object.defineProperty(class extends Error {}, 'name', { value: `Other${++count}` }))(
        `${count}`,
      )
    })
    for (let i = 0; i < 60; i++) {
      await deliver(sampleDelivery('application/installed', { business_id: `b${i}` }))
      await refused()
    }
    await until('all have failed', async () => count >= 120)
    await marketplace.settled()
    for (const code of ['handler_failed', 'otherwise_failed'] as const) {
      const ofCode = warned.filter((each) => each.code === code)
      expect(ofCode).toHaveLength(21)
      expect(new Set(ofCode.map(({ message }) => message)).size).toBe(21)
      expect(ofCode.at(-1)?.message).toMatch(/^Further warnings of this kind are suppressed/)
      expect(ofCode.at(-1)?.message).toContain(WARNINGS[code])
      if (code === 'handler_failed')
        expect(ofCode.at(-1)?.message).toContain("journal.list({ status: 'dead' })")
      expect(lines.filter(([, fields]) => fields.code === code)).toHaveLength(21)
    }
    const dead = () => lines.filter(([, fields]) => fields.area === 'handling' && fields.code === 'dead')
    expect(dead()).toHaveLength(1)
    jump(HOUR)
    await deliver(sampleDelivery('application/installed', { business_id: 'b' }))
    await until('a further line', () => dead().length === 2)
    expect(dead().at(-1)?.[2]).toMatch(/\(59 more before this one\)$/)
    expect(warned.filter(({ code }) => code === 'handler_failed')).toHaveLength(21)
  })
})

describe.each(ENGINE_NAMES)("L49 the stack of a handler's error on %s", (engineName) => {
  const engine = useEngine(engineName)

  it('L49 stands in a field of its log lines and in the entry, until the handler succeeds; support does not see it', async () => {
    const { lines, logger } = collecting()
    const { marketplace, deliver, app, url } = await createScene({
      store: await engine.freshAddress(),
      logger,
      handlers: { retryDelaysMs: [] },
    })
    mountConsole(app, marketplace)
    let isBroken = true
    function sendMailToBuyer() {
      const cause = new RangeError('the port is closed')
      if (isBroken) throw new TypeError('the mail server\nis away', { cause })
    }
    marketplace.on('application/installed', sendMailToBuyer)
    const { id } = await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()

    const entry = await marketplace.journal.get(id)
    expect(entry?.error).toBe('TypeError: the mail server is away')
    const stack = entry?.stack?.split('\n') ?? []
    expect(stack[0]).toBe('TypeError: the mail server is away')
    expect(stack[1]).toMatch(/^ {4}at .*sendMailToBuyer \(.*log-lines\.test\.ts:\d+:\d+\)$/)
    expect(stack).toContain('caused by RangeError: the port is closed')
    expect(await marketplace.journal.list({ status: 'dead' })).toEqual([entry])
    for (const code of ['handler_failed', 'dead']) {
      const [, fields] = lines.find(([, { code: each }]) => each === code) ?? []
      expect(fields?.stack).toMatch(/^TypeError at .*sendMailToBuyer \(.*log-lines\.test\.ts:\d+:\d+\) at /)
      expect(fields?.stack).not.toContain('mail server')
    }

    const shown = async (role: 'operator' | 'support') =>
      (await consoleCaller(`${url}/ops`, role).read('entry', { id })).body
    expect((await shown('operator')).stack).toBe(entry?.stack)
    expect(JSON.stringify(await shown('support'))).not.toContain('sendMailToBuyer')

    isBroken = false
    await marketplace.journal.replay(id)
    await marketplace.settled()
    expect(await marketplace.journal.get(id)).toMatchObject({ status: 'done', error: null, stack: null })
  })

  it('L49 has the errors that one holds and the causes of each, in the entry and in the log, without what was received', async () => {
    const { lines, logger } = collecting()
    const { marketplace, deliver, jump } = await createScene({
      store: await engine.freshAddress(),
      logger,
      handlers: { retryDelaysMs: [] },
    })
    const inner = (i: number) =>
      new TypeError(`mail server ${i} is away`, { cause: new RangeError(`port ${i} is closed`) })
    const circle = new AggregateError([], 'a circle')
    circle.errors = [circle, inner(7)]
    circle.cause = circle
    const thrown: ((quoted: string) => unknown)[] = [
      () => Promise.any([0, 1].map((i) => Promise.reject(inner(i)))),
      (quoted) => {
        throw new Error('outer', {
          cause: new AggregateError([new Error(`no ${quoted}`), inner(1), 'a text']),
        })
      },
      () => Promise.reject(circle),
      () => Promise.any(Array.from({ length: 5_000 }, (_, i) => Promise.reject(inner(i)))),
    ]
    const shown: { entry: string; log: string }[] = []
    for (const fail of thrown) {
      const remove = marketplace.on('application/installed', ({ data }) => fail(String(data.business_id)))
      const { id } = await deliver(sampleDelivery('application/installed', { business_id: CANARY }))
      await marketplace.settled()
      remove()
      const ofLine = lines.filter(([, { code }]) => code === 'dead').at(-1)?.[1].stack
      shown.push({ entry: (await marketplace.journal.get(id))?.stack ?? '', log: String(ofLine) })
      jump(HOUR)
    }
    for (const text of Object.values(shown[0] ?? {}))
      for (const i of [0, 1]) {
        expect(text).toContain(`error ${i + 1} of 2: TypeError: mail server ${i} is away`)
        expect(text).toContain(`caused by RangeError: port ${i} is closed`)
      }
    expect(shown[1]?.entry).toMatch(
      /^Error: outer$.*^caused by AggregateError: .*^error 1 of 3: Error: no canary of a buyer$.*^error 3 of 3: string: a text$/ms,
    )
    expect(shown[1]?.log).toMatch(
      /^Error at .* caused by AggregateError: .* error 1 of 3: Error at .* error 2 of 3: TypeError: mail server 1 is away at .* caused by RangeError: port 1 is closed at .* error 3 of 3: string: a text$/,
    )
    for (const text of Object.values(shown[2] ?? {})) expect(text).toContain('mail server 7 is away')
    expect(shown[2]?.entry.match(/a circle/g)).toHaveLength(1)
    for (const text of Object.values(shown[3] ?? {})) {
      expect(text).toContain('error 3 of 5000: TypeError: mail server 2 is away')
      expect(text.length).toBeLessThanOrEqual(4_000)
    }
    expect(JSON.stringify(lines)).not.toContain(CANARY)
  })

  it('L49 is bounded, and null for a thrown value that is no error', async () => {
    quietWarnings()
    const { marketplace, deliver } = await createScene({
      store: await engine.freshAddress(),
      handlers: { retryDelaysMs: [] },
    })
    const deep = (left: number): Error =>
      new Error('x'.repeat(100_000), { cause: left > 0 ? deep(left - 1) : 'no error' })
    const circle = new Error('a circle')
    circle.cause = circle
    const thrown = [
      deep(50),
      circle,
      'a text',
      null,
      Object.assign(new Error('odd'), { stack: 7 }),
      '\ud800\0',
    ]
    const stacks: (string | null | undefined)[] = []
    for (const value of thrown) {
      const remove = marketplace.on('application/installed', () => {
        throw value
      })
      const { id } = await deliver(sampleDelivery('application/installed'))
      await marketplace.settled()
      remove()
      const { status, stack } = (await marketplace.journal.get(id)) ?? {}
      expect(status).toBe('dead')
      stacks.push(stack)
    }
    expect(stacks[0]?.length).toBeLessThanOrEqual(4_000)
    expect(stacks[1]?.match(/a circle/g)?.length).toBe(1)
    expect(stacks.slice(2)).toEqual([null, null, null, null])
  })
})

/** The lines that a logger, DEBUG and the process get: `all` has every text of them. */
function collecting() {
  const lines: [level: string, fields: Record<string, unknown>, message: string][] = []
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push([level, fields as Record<string, unknown>, message])
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const spy = quietWarnings()
  const debugged = captureDebug()
  const warned: { code: unknown; message: string }[] = []
  spy.mockImplementation(
    ((message: string, options: { code: string }) =>
      void warned.push({ code: options.code, message })) as typeof process.emitWarning,
  )
  const all = () => [
    ...lines.flatMap(([, fields, message]) => [...Object.values(fields).map(String), message]),
    ...warned.map(({ message }) => message),
    // Without the time.
    ...debugged.map((line) => line.replace(/^\S+Z /, '')),
  ]
  return { lines, warned, all, logger }
}

/** A server whose other requests `otherwise` answers. Returns a function that makes one. */
async function serveOtherwise(
  marketplace: Awaited<ReturnType<typeof createScene>>['marketplace'],
  otherwise: (req: IncomingMessage) => unknown,
  headers: Record<string, string> = {},
) {
  const url = await serve(marketplace.listener({ path: '/hooks', otherwise }))
  const ask = async () => expect((await fetch(url, { headers })).status).toBe(500)
  await ask()
  return ask
}

const encode = (text: string) => Buffer.from(text).toString('base64')
const decode = (text: string) => Buffer.from(text, 'base64').toString()

function classNamed(name: string): new (message: string) => Error {
  return Object.defineProperty(class extends Error {}, 'name', { value: name })
}

/** Keeps its text where nothing but its own code can see it. */
class Hidden {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  get text() {
    return this.#text
  }
}

/** An event of the app, whose schema decodes a value that the delivery has in another form. */
const RATED = defineEvent({
  entity_name: 'application',
  event_type: 'rated',
  data: z.object({
    business_id: z.string(),
    name: z.string().transform((text) => Buffer.from(text, 'base64').toString()),
  }),
  tokens: ['app'],
  subject: ({ business_id }) => ({ business_uid: business_id }),
})
