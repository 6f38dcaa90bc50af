import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { createHttp, platformUrl } from '../../lib/platform/http.js'
import { onCleanUp } from '../support/clean-up.js'
import { until } from '../support/until.js'

type Answer = Parameters<typeof createServer>[1]

describe('a call of the platform', () => {
  it('sends method, headers and a body, and gives status, Retry-After and the body as JSON', async () => {
    const seen: unknown[] = []
    const { send } = await calling(async (req, res) => {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk as Buffer)
      seen.push([
        req.method,
        req.url,
        req.headers['x-own'],
        req.headers['content-length'],
        String(Buffer.concat(chunks)),
      ])
      res.writeHead(429, { 'retry-after': '7', 'content-type': 'text/json' }).end('\ufeff{"a":1}')
    })
    const reply = {
      ...{ status: 429, retryAfter: '7', contentType: 'text/json' },
      ...{ json: { a: 1 }, isPage: false },
    }
    expect(await send({ method: 'POST', headers: { 'x-own': 'yes' }, body: '{}' })).toEqual(reply)
    expect(await send({ method: 'POST', body: '' })).toEqual(reply)
    expect(await send({ method: 'GET' })).toEqual(reply)
    expect(seen).toEqual([
      ['POST', '/', 'yes', '2', '{}'],
      ['POST', '/', undefined, '0', ''],
      ['GET', '/', undefined, undefined, ''],
    ])
  })

  it.each([
    ['', undefined, false],
    ['[]', [], false],
    ['plain text', undefined, false],
    ['<html>', undefined, true],
    [' \n<?xml version="1.0"?>', undefined, true],
    ['a page: <html>', undefined, false],
  ])('tells JSON and pages from other bodies: %j', async (body, json, isPage) => {
    const { send } = await calling((_req, res) => res.end(body))
    expect(await send()).toEqual({ status: 200, retryAfter: null, contentType: null, json, isPage })
  })

  it('gives a reply without a body', async () => {
    const { send } = await calling((_req, res) => res.writeHead(204).end())
    const head = { status: 204, retryAfter: null, contentType: null }
    expect(await send()).toEqual({ ...head, json: undefined, isPage: false })
  })

  it.each([300, 302, 399])('is refused when the answer is the redirect %d', async (status) => {
    const { send } = await calling((_req, res) => res.writeHead(status, { location: '/elsewhere' }).end())
    await expect(send()).rejects.toMatchObject({
      code: 'platform_redirected',
      message: 'Cannot call the platform: it answered with a redirect, and redirects are not followed',
    })
  })

  it.each([299, 400])('takes the status %d, which is no redirect', async (status) => {
    const { send } = await calling((_req, res) => res.writeHead(status).end())
    expect(await send()).toMatchObject({ status })
  })

  it('takes a body of the largest size, and none of a byte more', async () => {
    let body = '"abcdefgh"'
    const { send } = await calling((_req, res) => res.end(body), { maxReplyBytes: 10 })
    expect(await send()).toMatchObject({ json: 'abcdefgh' })
    body = '"abcdefghi"'
    await expect(send()).rejects.toMatchObject({
      code: 'platform_reply_too_large',
      message: 'Cannot call the platform: its answer is larger than 10 bytes',
    })
  })

  it('ends at its deadline with an error that says so, and cancels the request', async () => {
    let isGone = false
    const { send } = await calling(
      (req) =>
        void req.on('close', () => {
          isGone = true
        }),
      { timeoutMs: 60 },
    )
    await expect(send()).rejects.toMatchObject({
      code: 'platform_timeout',
      message: 'Cannot call the platform: no complete answer within 60 ms',
    })
    await until('the platform sees the end of the connection', () => isGone)
  })

  const ABORTED = { code: 'platform_unreachable', message: 'Cannot call the platform: the call was aborted' }

  it('ends when its signal aborts, before or during the call, and leaves no listener', async () => {
    let begun = 0
    const { send } = await calling(() => void begun++)
    await expect(send({ signal: AbortSignal.abort() })).rejects.toMatchObject(ABORTED)
    expect(begun).toBe(0)
    const { signal, listeners, abort } = countingSignal()
    const call = send({ signal })
    await until('the request has come', () => begun === 1)
    expect(listeners()).toBe(1)
    abort()
    await expect(call).rejects.toMatchObject(ABORTED)
    expect(listeners()).toBe(0)
  })

  it('leaves no listener on a signal that never aborts', async () => {
    const { send } = await calling((_req, res) => res.end('{}'))
    const { signal, listeners } = countingSignal()
    await send({ signal })
    expect(listeners()).toBe(0)
  })

  it('ends when all calls are closed, and so does every later one', async () => {
    let begun = 0
    const { send, close } = await calling(() => void begun++)
    const call = expect(send()).rejects.toMatchObject(ABORTED)
    await until('the request has come', () => begun === 1)
    close()
    await call
    await expect(send()).rejects.toMatchObject(ABORTED)
    expect(begun).toBe(1)
  })
})

describe('the error of a connection that failed', () => {
  const chain = (depth: number) =>
    Array.from({ length: depth }).reduce<unknown>((cause) => ({ cause }), { code: 'ECONNRESET' })
  const long = `A${'B'.repeat(40)}`

  it.each([
    [{ code: 'ECONNREFUSED' }, 'ECONNREFUSED'],
    [chain(1), 'ECONNRESET'],
    [chain(4), 'ECONNRESET'],
    [chain(5), 'no further reason'],
    [{ code: 'lower', cause: { code: 'UND_ERR_SOCKET' } }, 'UND_ERR_SOCKET'],
    [{ code: long }, long],
    [{ code: `${long}B` }, 'no further reason'],
    [{ code: 'AB' }, 'no further reason'],
    [{ code: 'ABC' }, 'ABC'],
    [{ code: ' ECONNREFUSED' }, 'no further reason'],
    [{ code: 'ECONNREFUSED ' }, 'no further reason'],
    [{ code: 7 }, 'no further reason'],
    [null, 'no further reason'],
    [undefined, 'no further reason'],
    ['a text', 'no further reason'],
    [{ cause: null }, 'no further reason'],
    [Object.assign(() => {}, { code: 'ABC' }), 'no further reason'],
  ])('names the code of the system, and nothing else: %j', async (thrown, reason) => {
    const { send } = createHttp({ fetch: () => Promise.reject(thrown), timeoutMs: 1_000, clock: systemClock })
    await expect(send({ method: 'GET', url: new URL('http://a.example') })).rejects.toMatchObject({
      code: 'platform_unreachable',
      message: `Cannot call the platform: the connection failed (${reason})`,
    })
  })
})

describe('an address of the platform', () => {
  it.each([
    ['https://a.example', 'https://a.example/p'],
    ['https://a.example/', 'https://a.example/p'],
    ['https://a.example/api', 'https://a.example/api/p'],
    ['https://a.example/api//', 'https://a.example/api/p'],
    ['https://a.example//api/', 'https://a.example//api/p'],
  ])('is joined with a path: %s', (base, url) => {
    expect(platformUrl(base, '/p').href).toBe(url)
    expect(platformUrl(base, '/p', { q: 'a b' }).href).toBe(`${url}?q=a+b`)
  })

  it('is refused when it is not absolute, without being quoted', () => {
    expect(() => platformUrl('secret.example', '/p')).toThrow(
      expect.objectContaining({
        code: 'config_invalid',
        message:
          'Cannot call the platform: its address is not an absolute URL. Correct platform.baseUrl and platform.authUrl',
      }),
    )
  })
})

/** Calls of a server that answers as given. */
async function calling(
  answer: NonNullable<Answer>,
  options: { timeoutMs?: number; maxReplyBytes?: number } = {},
) {
  const server: Server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const { send, close } = createHttp({ timeoutMs: 10_000, clock: systemClock, ...options })
  return {
    close,
    send: (request: Partial<Parameters<typeof send>[0]> = {}) => send({ method: 'GET', url, ...request }),
  }
}

function countingSignal() {
  const controller = new AbortController()
  const { signal } = controller
  let count = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    count++
    add(...given)
  }
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    count--
    remove(...given)
  }
  return { signal, listeners: () => count, abort: () => controller.abort() }
}
