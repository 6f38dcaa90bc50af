import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from '@jest/globals'
import { systemClock } from '../lib/clock.js'
import { createPlatformClient } from '../lib/platform/client.js'
import { createHttp } from '../lib/platform/http.js'
import { appToken, businessToken, directoryToken } from '../lib/platform/token.js'

const RECORD = {
  uid: 's1',
  business_uid: 'b1',
  purchasable_uid: 'p1',
  purchase_state: 'purchased',
  updated_at: '2026-01-01T00:00:00.000Z',
}

const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

describe('reading a subscription', () => {
  it('makes the calls of the interface document, exactly as written', async () => {
    const { client, requests } = await start({ base: '/api/', auth: '/login' })
    expect(await read(client)).toEqual({ kind: 'found', record: RECORD })
    expect(requests).toEqual([
      {
        method: 'POST',
        path: '/login/oauth/token',
        query: {
          client_id: 'client',
          client_secret: 'client-secret',
          grant_type: 'assertion',
          type: 'token',
          business_uid: 'b1',
        },
        authorization: undefined,
        contentType: undefined,
      },
      {
        method: 'GET',
        path: '/api/business/subscriptionsmng/v1/subscriptions',
        query: { 'filter[uid]': 's1' },
        authorization: 'Bearer token-1',
        contentType: 'application/json',
      },
    ])
  })

  it.each([
    '../../etc',
    's1&filter[uid]=s2',
    '@evil.example',
    '#',
    'a\r\nHost: evil',
    'ü 猫',
    '%2f..%2f',
    '?x=1',
  ])('A17 sends the identifier %j as one query value to the configured origin', async (uid) => {
    const { client, requests } = await start()
    await client.readSubscription({ subscriptionUid: uid, businessUid: uid })
    expect(requests.map(({ query }) => query)).toMatchObject([{ business_uid: uid }, { 'filter[uid]': uid }])
  })

  it('D13 matches the record by uid, never by position', async () => {
    const { client } = await start({
      read: records({ ...RECORD, uid: 'other' }, RECORD, { ...RECORD, uid: 'third' }),
    })
    expect(await read(client)).toMatchObject({ kind: 'found', record: { uid: 's1' } })
  })

  it('D13 takes the one updated last of several with the same uid', async () => {
    const newer = { ...RECORD, purchase_state: 'suspended', updated_at: '2026-02-01T00:00:00.000Z' }
    const undated = { ...RECORD, purchase_state: 'undated', updated_at: null }
    const { client } = await start({ read: records(undated, newer, RECORD) })
    expect(await read(client)).toMatchObject({ record: { purchase_state: 'suspended' } })
  })

  it('accepts a record with prices, dates and further fields in any format, and numbers for identifiers', async () => {
    const odd = {
      ...RECORD,
      uid: 17,
      business_uid: 4,
      purchase_price: 99.99,
      cancellation_date: '',
      extra: { a: [1] },
    }
    const { client } = await start({ read: records(odd) })
    const result = await client.readSubscription({ subscriptionUid: '17', businessUid: '4' })
    expect(result).toMatchObject({
      kind: 'found',
      record: { uid: '17', purchase_price: 99.99, extra: { a: [1] } },
    })
  })

  it.each([
    ['an empty list', records(), { kind: 'missing' }],
    ['D13 only other records', records({ ...RECORD, uid: 's2' }), { kind: 'missing' }],
    ['A12, D13 a record of another business', records({ ...RECORD, business_uid: 'b2' }), mismatch()],
    [
      'a record without a purchase_state',
      records({ ...RECORD, purchase_state: undefined }),
      outage('reply_invalid'),
    ],
    ['no list', json(200, { data: {} }), outage('reply_invalid')],
    ['null', json(200, null), outage('reply_invalid')],
    ['an array', json(200, []), outage('reply_invalid')],
    ['E5 an HTML page with 200', html(200), outage('reply_invalid')],
    ['an HTML page with 502', html(502), outage('failing')],
    ['500', json(500, { message: 'x', status: 'Error' }), outage('failing')],
    ['408', json(408, {}), outage('failing')],
    ['E8 400', json(400, { error: 'bad' }), refused()],
    ['E8 403', json(403, { success: false, errors: [{ code: 'forbidden', message: 'no' }] }), refused()],
    ['E8 404', html(404), refused()],
    [
      'an error with 200',
      json(200, { success: false, errors: [{ code: 'x', message: 'y' }] }),
      outage('failing'),
    ],
    ['an empty error beside the record', json(200, { error: '', ...reply(RECORD) }), found()],
    ['an error of false beside the record', json(200, { error: false, ...reply(RECORD) }), found()],
    ['a reply with a byte order mark', raw(`\uFEFF${JSON.stringify(reply(RECORD))}`), found()],
    ['E10 a record nested 20,000 deep', raw(deepRecord(20_000)), outage('reply_invalid')],
    ['E6 429', json(429, {}), { kind: 'throttled' }],
    [
      'E6 429 with seconds',
      json(429, {}, { 'retry-after': '7' }),
      { kind: 'throttled', retryAfterMs: 7_000 },
    ],
    [
      'E6 429 with ten days',
      json(429, {}, { 'retry-after': '864000' }),
      { kind: 'throttled', retryAfterMs: 3_600_000 },
    ],
    ['E6 429 with rubbish', json(429, {}, { 'retry-after': 'soon' }), { kind: 'throttled' }],
    ['E4 a truncated reply', truncated, outage('unreachable')],
    [
      'E1 a reset connection',
      (_req: IncomingMessage, res: ServerResponse) => res.socket?.destroy(),
      outage('unreachable'),
    ],
    ['E2 no reply', () => {}, outage('timeout')],
    ['E3 a reply that trickles', trickle, outage('timeout')],
    ['E10 a huge reply', huge, outage('reply_too_large')],
    ['E10 a small reply that unpacks to a huge one', bomb, outage('reply_too_large')],
    [
      'E10 a reply nested 200,000 deep',
      raw('['.repeat(200_000) + ']'.repeat(200_000)),
      outage('reply_invalid'),
    ],
  ] as [string, Answer, object][])('%s is classified', async (_name, answer, expected) => {
    // Only where it is the time limit that ends it, it is short.
    const timeoutMs = 'code' in expected && expected.code === 'platform_timeout' ? 400 : 10_000
    const { client } = await start({ read: answer, timeoutMs })
    expect(await read(client)).toMatchObject(expected)
  })

  it.each([
    ['F5 invalid_client', json(401, { error: 'invalid_client' }), { kind: 'credentials_refused' }],
    [
      'F5 invalid_client in a list',
      json(400, { errors: [{ code: 'invalid_client' }] }),
      { kind: 'credentials_refused' },
    ],
    ['another error with 200', json(200, { error: 'access_denied' }), { kind: 'token_refused' }],
    ['E5 a page with 200', html(200), outage('reply_invalid')],
    ['F5 invalid_client with 200', json(200, { error: 'invalid_client' }), { kind: 'credentials_refused' }],
    ['403', json(403, { error: 'access_denied' }), { kind: 'token_refused' }],
    ['400 without a body', json(400, undefined), { kind: 'token_refused' }],
    ['a page of 404', html(404), refused()],
    ['500', html(500), outage('failing')],
    ['429', json(429, {}, { 'retry-after': '2' }), { kind: 'throttled', retryAfterMs: 2_000 }],
    ['F7 no token', json(200, {}), outage('reply_invalid')],
    ['F7 an empty token', json(200, { access_token: '' }), outage('reply_invalid')],
    ['F7 a token with a line break', json(200, { access_token: 'a\r\nX: 1' }), outage('reply_invalid')],
    ['F7 a token that is not text', json(200, { access_token: { a: 1 } }), outage('reply_invalid')],
    [
      'F7 a token of 10,000 characters',
      json(200, { access_token: 'x'.repeat(10_000) }),
      outage('reply_invalid'),
    ],
  ] as [string, Answer, object][])(
    '%s from the token endpoint is classified',
    async (_name, answer, expected) => {
      const { client, requests } = await start({ token: answer })
      expect(await read(client)).toMatchObject(expected)
      expect(requests).toHaveLength(1)
    },
  )

  it('E9 refuses a redirect, and sends on neither secret nor token', async () => {
    const other = await start()
    const away = (_req: IncomingMessage, res: ServerResponse) =>
      res.writeHead(307, { location: `${other.origin}/stolen` }).end()
    const token = await start({ token: away })
    expect(await read(token.client)).toEqual(outage('redirected'))
    const reads = await start({ read: away })
    expect(await read(reads.client)).toEqual(outage('redirected'))
    expect(other.requests).toEqual([])
  })

  it('E7, F2 fetches a new token once after a 401, and repeats the read once', async () => {
    let reads = 0
    const first401 = (req: IncomingMessage, res: ServerResponse) =>
      reads++ === 0 ? json(401, {})(req, res) : records(RECORD)(req, res)
    const { client, requests } = await start({ read: first401 })
    expect(await read(client)).toMatchObject({ kind: 'found' })
    expect(requests.map(({ authorization }) => authorization)).toEqual([
      undefined,
      'Bearer token-1',
      undefined,
      'Bearer token-2',
    ])
  })

  it('E7 gives up after a second 401', async () => {
    const { client, requests } = await start({ read: json(401, {}) })
    expect(await read(client)).toMatchObject(refused())
    expect(requests).toHaveLength(4)
  })

  it('E8 fetches a new token after a 403, at the next try', async () => {
    const { client, requests } = await start({ read: json(403, {}) })
    await read(client)
    await read(client)
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST', 'GET'])
  })

  it('E12 reads at most four at once', async () => {
    let now = 0
    let most = 0
    const counted = (req: IncomingMessage, res: ServerResponse) => {
      most = Math.max(most, ++now)
      setTimeout(() => {
        now--
        records()(req, res)
      }, 20)
    }
    const { client } = await start({ read: counted })
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        client.readSubscription({ subscriptionUid: `s${i}`, businessUid: 'b1' }),
      ),
    )
    expect(most).toBe(4)
  })

  it('gives up at once when its signal is aborted', async () => {
    const { client } = await start({ read: () => {}, timeoutMs: 60_000 })
    const controller = new AbortController()
    const reading = client.readSubscription({
      subscriptionUid: 's1',
      businessUid: 'b1',
      signal: controller.signal,
    })
    controller.abort()
    expect(await reading).toMatchObject({ kind: 'outage' })
  })
})

describe('a token endpoint that never answers', () => {
  it('does not hold a caller that aborts, nor cancels the call for the others', async () => {
    const waiting: ServerResponse[] = []
    const { client, requests } = await start({ token: (_req, res) => waiting.push(res), timeoutMs: 10_000 })
    const controller = new AbortController()
    const request = { subscriptionUid: 's1', businessUid: 'b1' }
    const leaving = client.readSubscription({ ...request, signal: controller.signal })
    const staying = client.readSubscription(request)
    await until(() => waiting.length === 1)
    controller.abort()
    expect(await leaving).toEqual(outage('unreachable'))
    waiting[0]?.end('{"access_token":"late"}')
    expect(await staying).toEqual(found())
    expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  it('F9 does not stop businesses with a cached token', async () => {
    const hanging = (req: IncomingMessage, res: ServerResponse) =>
      req.url?.includes('business_uid=b1') && json(200, { access_token: 'cached' })(req, res)
    const { client, requests } = await start({ token: hanging, timeoutMs: 10_000 })
    await read(client)
    const controller = new AbortController()
    const stuck = Array.from({ length: 8 }, (_, i) =>
      client.readSubscription({
        subscriptionUid: `x${i}`,
        businessUid: `x${i}`,
        signal: controller.signal,
      }),
    )
    await until(() => requests.filter(({ method }) => method === 'POST').length === 5)
    expect(await read(client)).toEqual(found())
    controller.abort()
    await Promise.all(stuck)
  })
})

describe('the call of fetch', () => {
  it('ends at the deadline also when the app’s own fetch ignores the signal', async () => {
    const { send } = createHttp({ fetch: () => new Promise(() => {}), timeoutMs: 50, clock: systemClock })
    const call = send({ method: 'GET', url: new URL('http://platform.example') })
    await expect(call).rejects.toMatchObject({ code: 'platform_timeout' })
  })
})

describe('registering a webhook', () => {
  it('makes the call of the interface document', async () => {
    const { client, requests, bodies } = await start()
    await client.registerWebhook(registration())
    expect(requests).toMatchObject([
      {
        method: 'POST',
        path: '/platform/v1/webhook/subscribe',
        query: {},
        authorization: 'Bearer app-token',
        contentType: 'application/json',
      },
    ])
    expect(JSON.parse(bodies[0] as string)).toEqual({
      event: 'e',
      target_url: 'https://app.example/hooks/secret-path',
    })
  })

  it.each([
    ['201', json(201, { id: 1 }), 'created'],
    ['200 without a body', json(200, undefined), 'created'],
    ['422 already exists', json(422, { errors: [{ code: 'x', message: 'Already exists' }] }), 'exists'],
    ['409 already registered', json(409, { error: 'target already registered' }), 'exists'],
    [
      'an error of 200 with already exists',
      json(200, { success: false, errors: [{ message: 'already exists' }] }),
      'exists',
    ],
  ] as [string, Answer, string][])('accepts %s as success', async (_name, answer, status) => {
    const { client } = await start({ register: answer })
    expect(await client.registerWebhook(registration())).toEqual({ status })
  })

  it.each([
    ['401', json(401, { error: 'unauthorized' }), 'platform_refused', /401 \(unauthorized\)/],
    [
      '422',
      json(422, { message: 'target is bad', status: 'Error' }),
      'platform_refused',
      /422 \(target is bad\)/,
    ],
    ['500 with HTML', html(500), 'platform_failing', /answered 500$/],
    ['429', json(429, {}), 'platform_throttled', /429/],
    ['a page with 200', html(200), 'platform_reply_invalid', /answered 200$/],
    [
      'success false with 200',
      json(200, { success: false, errors: [{ code: 'c', message: 'm' }] }),
      'platform_refused',
      /c m/,
    ],
  ] as [string, Answer, string, RegExp][])(
    'rejects %s with a clear error',
    async (_name, answer, code, message) => {
      const { client } = await start({ register: answer })
      await expect(client.registerWebhook(registration())).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      })
    },
  )

  it('shows neither token nor target when the platform quotes them', async () => {
    const quoting = json(400, {
      error: 'app-token cannot register https://app.example/hooks/secret-path for client-secret',
    })
    const { client } = await start({ register: quoting })
    const error = await client.registerWebhook(registration()).catch((thrown: Error) => thrown)
    expect((error as Error).message).not.toMatch(/app-token|secret/)
  })

  it.each([
    ['the path of the target alone', ({ targetUrl }: Sent) => new URL(targetUrl).pathname],
    ['its last segment', ({ targetUrl }: Sent) => targetUrl.split('/').pop()],
    ['the encoded target', ({ targetUrl }: Sent) => encodeURIComponent(targetUrl)],
    ['a token longer than the message', ({ token }: Sent) => token.value],
  ])('shows no part of the target when the platform quotes %s', async (_name, quoted) => {
    const sent = { ...registration(), token: appToken(`secret-${'x'.repeat(900)}`) }
    const { client } = await start({ register: json(400, { error: `bad: ${quoted(sent)}` }) })
    await expect(client.registerWebhook(sent)).rejects.toMatchObject({
      message: 'Cannot register for e: the platform answered 400 (bad: …)',
    })
  })

  it('refuses a token without a usable value before any call', async () => {
    const { client, requests } = await start()
    const forged = { ...registration(), token: { kind: 'app' as const, value: 'a\r\nX: 1' } }
    await expect(client.registerWebhook(forged)).rejects.toMatchObject({ code: 'argument_invalid' })
    expect(requests).toEqual([])
  })

  it('refuses a token of a kind the event does not accept before any call', async () => {
    const { client, requests } = await start()
    const wrong = { ...registration(), token: businessToken('business-token') }
    await expect(client.registerWebhook(wrong)).rejects.toMatchObject({ code: 'token_kind_not_accepted' })
    await expect(client.registerWebhook({ ...registration(), event: 'unknown' })).rejects.toMatchObject({
      code: 'event_unknown',
    })
    expect(requests).toEqual([])
  })

  it('hides the value of a token from JSON, enumeration and inspect', () => {
    for (const token of [appToken('value-1'), businessToken('value-2'), directoryToken('value-3')]) {
      expect(JSON.stringify(token)).not.toContain('value')
      expect(inspect(token, { showHidden: true })).not.toContain(token.value)
      expect(Object.keys(token)).toEqual(['kind'])
    }
    expect(() => appToken('two\nlines')).toThrow(/one line/)
  })
})

type Sent = { targetUrl: string; token: { value: string } }
type Answer = (req: IncomingMessage, res: ServerResponse) => unknown

/** A platform with the given answers, and a client for it. */
async function start(
  options: {
    token?: Answer
    read?: Answer
    register?: Answer
    base?: string
    auth?: string
    timeoutMs?: number
  } = {},
) {
  const requests: object[] = []
  const bodies: string[] = []
  let tokens = 0
  const sockets = new Set<Socket>()
  const server = createServer(async (req, res) => {
    const url = new URL(req.url as string, 'http://platform')
    const { authorization, 'content-type': contentType } = req.headers
    const query = Object.fromEntries(url.searchParams)
    requests.push({ method: req.method, path: url.pathname, query, authorization, contentType })
    if (req.method === 'POST') {
      let body = ''
      for await (const chunk of req) body += chunk
      bodies.push(body)
    }
    if (url.pathname.endsWith('/oauth/token')) {
      return (options.token ?? json(200, { access_token: `token-${++tokens}`, expires_in: 3600 }))(req, res)
    }
    if (req.method === 'GET') return (options.read ?? records(RECORD))(req, res)
    return (options.register ?? json(201, {}))(req, res)
  })
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createPlatformClient({
    baseUrl: origin + (options.base ?? ''),
    authUrl: origin + (options.auth ?? ''),
    clientId: 'client',
    clientSecret: 'client-secret',
    timeoutMs: options.timeoutMs ?? 5_000,
    concurrency: 4,
    clock: systemClock,
  })
  return { client, requests: requests as Record<string, unknown>[], bodies, origin }
}

function read(client: ReturnType<typeof createPlatformClient>) {
  return client.readSubscription({ subscriptionUid: 's1', businessUid: 'b1' })
}

function registration() {
  return {
    event: 'e',
    targetUrl: 'https://app.example/hooks/secret-path',
    token: appToken('app-token') as ReturnType<typeof appToken> | ReturnType<typeof businessToken>,
    accepts: (event: string) => (event === 'e' ? (['app'] as const) : undefined),
  }
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_req, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers })
    res.end(body === undefined ? undefined : JSON.stringify(body))
  }
}

function records(...subscriptions: object[]): Answer {
  return json(200, reply(...subscriptions))
}

function reply(...subscriptions: object[]) {
  return { data: { subscriptions } }
}

function deepRecord(levels: number): string {
  const deep = '['.repeat(levels) + ']'.repeat(levels)
  return JSON.stringify(reply({ ...RECORD, deep: 0 })).replace('"deep":0', `"deep":${deep}`)
}

async function until(condition: () => boolean) {
  const deadline = Date.now() + 5_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('the condition did not come true')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function html(status: number): Answer {
  return (_req, res) =>
    res.writeHead(status, { 'content-type': 'text/html' }).end('<html><body>Oops</body></html>')
}

function raw(body: string): Answer {
  return (_req, res) => res.end(body)
}

function truncated(_req: IncomingMessage, res: ServerResponse) {
  res.writeHead(200, { 'content-length': '500' })
  res.write('{"data":')
  setTimeout(() => res.destroy(), 10)
}

function trickle(_req: IncomingMessage, res: ServerResponse) {
  res.writeHead(200)
  const timer = setInterval(() => res.write(' '), 50)
  res.on('close', () => clearInterval(timer))
}

function huge(_req: IncomingMessage, res: ServerResponse) {
  res.writeHead(200)
  const chunk = Buffer.alloc(256 * 1024, 'x')
  for (let i = 0; i < 8; i++) res.write(chunk)
  res.end()
}

function bomb(_req: IncomingMessage, res: ServerResponse) {
  res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(20 * 1024 * 1024, 'x')))
}

function found() {
  return { kind: 'found', record: RECORD }
}

function outage(code: string) {
  return { kind: 'outage', code: `platform_${code}` }
}

function refused() {
  return { kind: 'refused', code: 'platform_refused' }
}

function mismatch() {
  return { kind: 'refused', code: 'platform_record_mismatch' }
}
