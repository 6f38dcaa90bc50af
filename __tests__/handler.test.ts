import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect, type Server } from 'node:net'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import express5 from 'express'
import { createSecretCheck } from '../lib/express/delivery-secret.js'
import { createHandler, type HandlerOptions } from '../lib/express/handler.js'
import { createReceiver } from '../lib/express/receiver.js'
import { createRequireEntitlement } from '../lib/express/require-entitlement.js'
import { onCleanUp } from './support/clean-up.js'
import { RECEIVER_DEFAULTS } from './support/defaults.js'
import { openMarketplace, startPlatform } from './support/scene.js'
import { until } from './support/until.js'

const express4 = require('express-4') as typeof express5

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'
const PATH = '/webhooks/marketplace'
const EVENT = { entity_name: 'application', event_type: 'rated' }

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
afterEach(() => expect(unhandled).toEqual([]))

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('the handler in front of %s', (_name, express) => {
  it('takes deliveries, and leaves the app all its own requests, with bodies and not-found pages', async () => {
    const app = express()
    app.use(express.json())
    app.post('/own', (req, res) => void res.json({ url: req.originalUrl, body: req.body }))
    const { url, kept } = await serve({ path: PATH, otherwise: app })
    const post = (path: string) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(EVENT),
      })
    const reply = await post(`${PATH}/${SECRET}?a=1`)
    expect([reply.status, await reply.json()]).toEqual([200, { received: true, id: 'e1' }])
    expect(kept).toEqual([EVENT])
    expect(await (await post('/own?b=2')).json()).toEqual({ url: '/own?b=2', body: EVENT })
    expect([(await post('/none')).status, (await post(`${PATH}/wrong`)).status]).toEqual([404, 404])
    expect(await (await post('/none')).text()).toContain('Cannot POST /none')
    expect(await (await post(`${PATH}/wrong`)).text()).toBe('')
    expect(kept).toHaveLength(1)
  })

  it('serves the routers of the app beside its own, including guarded ones', async () => {
    const guard = createRequireEntitlement({
      isEntitled: async (uid) => uid === 'in',
      explain: async () => ({ entitled: false, known: true, reason: 'not_purchased', explanation: '' }),
    })({ businessUid: (req) => req.headers['x-business'] })
    const app = express().use('/guarded', guard, (_req, res) => void res.send('welcome'))
    const { url } = await serve({ path: PATH, otherwise: app })
    for (const [business, status] of [
      ['in', 200],
      ['out', 402],
    ] as const) {
      const reply = await fetch(`${url}/guarded`, { headers: { 'x-business': business } })
      expect(reply.status).toBe(status)
    }
  })
})

describe('the path of the handler', () => {
  it.each([
    ['/webhooks/marketplace', '/webhooks/marketplace'],
    ['/webhooks/marketplace/', '/webhooks/marketplace'],
    ['/webhooks//marketplace', '/webhooks//marketplace'],
    ['/caf%C3%A9', '/caf%C3%A9'],
    ['/', ''],
  ])('A25 %s is where deliveries arrive', async (path, base) => {
    const { port, kept, seen } = await serve({ path, otherwise: path === '/' ? undefined : note })
    const own = [`${base}/${SECRET}`, `${base}/${SECRET}/`, `${base}/${SECRET}?x=/y`]
    own.push(`http://app.example${base}/${SECRET}`, `HTTPS://u@a.example:8443${base}/${SECRET}?a`)
    own.push(`${base}/${SECRET.replace('_', '%5f')}`)
    for (const target of own) expect([target, await send(port, target)]).toEqual([target, 200])
    expect(kept).toHaveLength(own.length)
    expect(seen).toEqual([])
  })

  it('A25 hides every path below it from the app', async () => {
    const { port, kept, seen } = await serve({ path: PATH, otherwise: note })
    for (const rest of [
      '',
      '/',
      '?',
      `?${SECRET}`,
      '/wrong',
      `//${SECRET}`,
      `/${SECRET}//`,
      `/${SECRET}/x`,
      '/%',
      '/..',
    ]) {
      expect([rest, await send(port, `${PATH}${rest}`)]).toEqual([rest, 404])
    }
    expect([kept, seen]).toEqual([[], []])
  })

  it('A25 leaves a path that only looks like it to the app, with the request target unchanged', async () => {
    const { port, kept, seen } = await serve({ path: PATH, otherwise: note })
    const targets = [
      ...[
        `${PATH}s/${SECRET}`,
        `${PATH.toUpperCase()}/${SECRET}`,
        `/${PATH}/${SECRET}`,
        '/webhooks',
        '/?',
        '/',
      ],
      ...[`/webhooks/%6darketplace/${SECRET}`, `/x${PATH}/${SECRET}`, `/webhooks/./marketplace/${SECRET}`],
      ...[
        `http://a.example/own?b=${PATH}/${SECRET}`,
        `http://a.example${PATH}s`,
        'http://a.example',
        `/own?${PATH}/`,
      ],
    ]
    for (const target of targets) expect([target, await send(port, target)]).toEqual([target, 204])
    expect(seen).toEqual(targets)
    expect(kept).toEqual([])
  })

  it.each([
    [undefined, 'path must begin with /'],
    [{}, 'path must begin with /'],
    [{ path: '' }, 'path must begin with /'],
    [{ path: 'webhooks' }, 'path must begin with /'],
    [{ path: 7 }, 'path must begin with /'],
    [{ path: ['/a'] }, 'path must begin with /'],
    [{ path: 'https://a.example/hooks' }, 'path must begin with /'],
    [{ path: '/hooks?a=1' }, 'no query'],
    [{ path: '/hooks#a' }, 'no query'],
    [{ path: '//hooks' }, 'written as in a URL'],
    [{ path: '/a/../hooks' }, 'written as in a URL'],
    [{ path: '/a b' }, 'written as in a URL'],
    [{ path: '/café' }, 'written as in a URL'],
    [{ path: '/hooks', otherwise: {} }, 'otherwise must be a function'],
    [{ path: '/hooks', otherwise: null }, 'otherwise must be a function'],
    [{ path: '/', otherwise: () => {} }, 'leaves none for otherwise'],
  ])('is refused at once when it could never work: %j', (options, why) => {
    expect(() => createHandler(OPTIONS, options as never)).toThrow(
      expect.objectContaining({ code: 'argument_invalid', message: expect.stringContaining(why) }),
    )
  })
})

describe('the app behind the handler', () => {
  it('A24 is optional: without it the reply is 404', async () => {
    const { url } = await serve({ path: PATH })
    const reply = await fetch(`${url}/own`)
    expect([reply.status, await reply.text()]).toEqual([404, ''])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'rejects later',
      async () => {
        await new Promise(setImmediate)
        throw new Error('broken')
      },
    ],
  ] as [string, RequestListener][])(
    'A24 gives an empty 500 when it %s: the error is reported, and the next request is served',
    async (_what, otherwise) => {
      const { url, port, errors } = await serve({ path: PATH, otherwise })
      const reply = await fetch(`${url}/own`, { method: 'POST', body: 'x'.repeat(100_000) })
      expect([reply.status, await reply.text()]).toEqual([500, ''])
      expect(errors).toEqual([new Error('broken')])
      expect(await send(port, `${PATH}/${SECRET}`)).toBe(200)
    },
  )

  it('A24 may fail after its reply has begun: the connection is cut off, so that no client takes it as complete', async () => {
    const { url, port, errors } = await serve({
      path: PATH,
      otherwise: async (_req, res) => {
        res.write('half')
        await new Promise(setImmediate)
        throw new Error('broken')
      },
    })
    await expect(fetch(`${url}/own`).then((reply) => reply.text())).rejects.toThrow()
    expect(errors).toHaveLength(1)
    expect(await send(port, `${PATH}/${SECRET}`)).toBe(200)
  })

  it('may have the form of Koa and Next, an async function, or of Fastify, a bound method', async () => {
    const koa = async (_req: IncomingMessage, res: ServerResponse) => {
      await new Promise(setImmediate)
      res.end('koa')
    }
    const fastify = {
      greeting: 'fastify',
      routing(_req: IncomingMessage, res: ServerResponse) {
        res.end(this.greeting)
      },
    }
    for (const [otherwise, text] of [
      [koa, 'koa'],
      [fastify.routing.bind(fastify), 'fastify'],
    ] as const) {
      const { url, port } = await serve({ path: PATH, otherwise })
      expect(await (await fetch(`${url}/`)).text()).toBe(text)
      expect(await send(port, `${PATH}/${SECRET}`)).toBe(200)
    }
  })

  it('A20 is served over HTTP/2 too', async () => {
    const handler = createHandler(OPTIONS, { path: PATH, otherwise: (_req, res) => res.end('app') })
    const port = await listen(createHttp2Server(handler))
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    onCleanUp(() => session.destroy())
    for (const [path, status] of [
      [`${PATH}/${SECRET}`, 200],
      [`${PATH}/wrong`, 404],
      ['/own', 200],
    ] as const) {
      const stream = session.request({ ':method': 'POST', ':path': path })
      stream.end('{}')
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
      expect([path, headers[':status']]).toEqual([path, status])
      stream.resume()
    }
  })
})

describe('marketplace.handler', () => {
  it('receives as the router does, and reports an error of the app in a warning', async () => {
    const warnings = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onCleanUp(() => warnings.mockRestore())
    const marketplace = openMarketplace(await startPlatform(), { worker: false })
    const otherwise = () => {
      throw new Error('the app is broken')
    }
    const port = await listen(createServer(marketplace.handler({ path: PATH, otherwise })))
    const url = `http://127.0.0.1:${port}`
    const target = marketplace.targetUrl(`${url}${PATH}`)
    const reply = await fetch(target, { method: 'POST', body: JSON.stringify(EVENT) })
    expect([reply.status, await reply.json()]).toMatchObject([200, { received: true }])
    expect(await marketplace.journal.list()).toHaveLength(1)
    expect((await fetch(`${url}/own`)).status).toBe(500)
    await fetch(`${url}/own`)
    expect(warnings.mock.calls.filter(([text]) => String(text).includes('the app is broken'))).toEqual([
      [expect.any(String), { type: 'MarketplaceWarning', code: 'otherwise_failed' }],
    ])
    expect(() => marketplace.handler({ path: 'x' })).toThrow(
      expect.objectContaining({ code: 'argument_invalid' }),
    )
  })
})

describe('the number of parameters, which adapters of other frameworks check,', () => {
  it('is three, as for Express middleware', () => {
    const receive = createReceiver(OPTIONS)
    expect([receive.name, receive.length]).toEqual(['receiveDelivery', 3])
    const guard = createRequireEntitlement({
      isEntitled: async () => true,
      explain: async () => ({}) as never,
    })
    const guarding = guard({ businessUid: () => '1' })
    expect([guarding.name, guarding.length]).toEqual(['requireEntitlementMiddleware', 3])
  })

  it('lets adapters wait for the end of the request, as next is never called', async () => {
    const next = jest.fn()
    const receive = createReceiver(OPTIONS)
    const port = await listen(createServer((req, res) => receive(req, res, next)))
    expect([await send(port, `/${SECRET}`), await send(port, '/wrong')]).toEqual([200, 404])
    expect(next).not.toHaveBeenCalled()
  })
})

const OPTIONS = {
  ...RECEIVER_DEFAULTS,
  isSecret: createSecretCheck([SECRET]),
  accept: async (envelopes: readonly unknown[]) =>
    envelopes.map((_envelope, i) => ({ id: `e${i + 1}`, issues: null })),
}

const seenBy = new WeakMap<Server, string[]>()
/** An app that records the request targets that it gets. */
function note(req: IncomingMessage, res: ServerResponse): void {
  const server = (req.socket as unknown as { server: Server }).server
  seenBy.get(server)?.push(req.url ?? '')
  res.writeHead(204).end()
}

async function serve(options: HandlerOptions) {
  const kept: unknown[] = []
  const errors: unknown[] = []
  const seen: string[] = []
  const handler = createHandler(
    {
      ...OPTIONS,
      accept: (envelopes) => {
        kept.push(...envelopes.map(({ value }) => value))
        return OPTIONS.accept(envelopes)
      },
      onError: (error) => errors.push(error),
    },
    options,
  )
  const server = createServer(handler)
  seenBy.set(server, seen)
  const port = await listen(server)
  return { port, url: `http://127.0.0.1:${port}`, kept, errors, seen }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanUp(() => {
    server.close()
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)()
  })
  return (server.address() as AddressInfo).port
}

/** The status of the reply to a POST with exactly this request target, which `fetch` would normalise. */
async function send(port: number, target: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  onCleanUp(() => socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (data) => {
    text += data
  })
  socket.write(`POST ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`)
  await until('a reply', () => text.includes('\r\n'))
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
}
