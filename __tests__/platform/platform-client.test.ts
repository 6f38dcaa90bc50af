import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import { createHttp } from '../../lib/platform/http.js'
import { PLATFORM_DEFAULTS } from '../support/defaults.js'
import {
  type Answer,
  found,
  html,
  json,
  outage,
  RECORD,
  read,
  records,
  reply,
  start,
} from '../support/platform/platform-calls.js'

describe('a token for the app', () => {
  it('is that of the business', async () => {
    const { client } = await start()
    expect(await client.fetchAppToken('b1')).toBe('token-1')
  })

  it.each<[Answer, string, string]>([
    [
      json(403, { error: 'access_denied' }),
      'token_refused',
      'the platform refuses it; has the business installed',
    ],
    [
      json(401, { error: 'invalid_client' }),
      'app_credentials_refused',
      'the platform refuses app.clientId and',
    ],
    [json(429, {}), 'platform_throttled', 'platform throttled'],
    [json(500, {}), 'platform_failing', 'platform failing'],
    [html(200), 'platform_reply_invalid', 'platform reply invalid'],
  ])('that the platform does not give is an error with its reason: %#', async (token, code, why) => {
    const { client } = await start({ token })
    const message = expect.stringContaining(`Cannot get a token for the business: ${why}`)
    await expect(client.fetchAppToken('b1')).rejects.toMatchObject({ code, message })
  })
})

describe('reading a subscription', () => {
  it('makes exactly the calls of the interface document', async () => {
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

  it('D13 matches the record by uid, never by position', async () => {
    const { client } = await start({
      read: records({ ...RECORD, uid: 'other' }, RECORD, { ...RECORD, uid: 'third' }),
    })
    expect(await read(client)).toMatchObject({ kind: 'found', record: { uid: 's1' } })
  })

  it('D13 uses the one updated last of several with the same uid', async () => {
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
    ['A12, D13 a record of another business', records({ ...RECORD, business_uid: 'b2' }), mismatch('b2')],
    [
      'records of two other businesses',
      records({ ...RECORD, business_uid: 'b2' }, { ...RECORD, business_uid: 'b3' }),
      { kind: 'refused', code: 'platform_record_mismatch' },
    ],
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
    ['an error with 200', json(200, { success: false, errors: [{ code: 'x', message: 'y' }] }), refused()],
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
    // The time limit is short only in the cases that it ends.
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
    [
      'a message that quotes a business of that name',
      json(400, {
        error: 'invalid_request',
        error_description: 'No business invalid_client',
        message: 'invalid_client',
      }),
      { kind: 'token_refused' },
    ],
    [
      'a message in a list that does',
      json(400, { errors: [{ code: 'not_found', message: 'no business invalid_client 1' }] }),
      { kind: 'token_refused' },
    ],
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

  it('E9 refuses a redirect, and sends neither secret nor token to it', async () => {
    const other = await start()
    const away = (_req: IncomingMessage, res: ServerResponse) =>
      res.writeHead(307, { location: `${other.origin}/stolen` }).end()
    const token = await start({ token: away })
    expect(await read(token.client)).toEqual(outage('redirected'))
    const reads = await start({ read: away })
    expect(await read(reads.client)).toEqual(outage('redirected'))
    expect(other.requests).toEqual([])
  })

  it("E9 believes no answer to a redirect that the app's own fetch follows or hides", async () => {
    const platform = await start({
      token: (_req, res) => void res.writeHead(307, { location: '/moved' }).end(),
    })
    const following = ((url, init) => fetch(url, { ...init, redirect: 'follow' })) as typeof fetch
    const hiding = (async () => {
      const hidden = new Response(null)
      Object.defineProperties(hidden, { type: { value: 'opaqueredirect' }, status: { value: 0 } })
      return hidden
    }) as typeof fetch
    for (const own of [following, hiding]) {
      const { send } = createHttp({ ...PLATFORM_DEFAULTS, fetch: own })
      const call = send({ method: 'POST', url: new URL(`${platform.origin}/oauth/token`) })
      await expect(call).rejects.toMatchObject({ code: 'platform_redirected' })
    }
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
})

function deepRecord(levels: number): string {
  const deep = '['.repeat(levels) + ']'.repeat(levels)
  return JSON.stringify(reply({ ...RECORD, deep: 0 })).replace('"deep":0', `"deep":${deep}`)
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

function refused() {
  return { kind: 'refused', code: 'platform_refused' }
}

function mismatch(recordBusinessUid: string) {
  return { kind: 'refused', code: 'platform_record_mismatch', recordBusinessUid }
}
