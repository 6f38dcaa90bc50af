import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { describe, expect, it } from '@jest/globals'
import { createDoors } from '../../lib/express/doors.js'
import { createRequireEntitlement } from '../../lib/express/require-entitlement.js'
import { onCleanUp } from '../support/clean-up.js'
import { ALLOWED, DENIED } from '../support/receiving/decisions.js'
import { OPTIONS, send, serve } from '../support/receiving/listener-calls.js'
import { EXPRESSES, SECRET } from '../support/receiving/receivers.js'
import { listen } from '../support/serving.js'

const PATH = '/webhooks/marketplace'

const EVENT = { entity_name: 'application', event_type: 'rated' }

describe.each(EXPRESSES)('the handler in front of %s', (_name, express) => {
  it('receives deliveries, and leaves all other requests to the app, with bodies and not-found pages', async () => {
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

  it('serves the routers of the app too, including guarded ones', async () => {
    const guard = createRequireEntitlement({
      explain: async (uid) => (uid === 'in' ? ALLOWED : DENIED),
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
    'A24 gives an empty 500 if it %s: the error is reported, and the next request is served',
    async (_what, otherwise) => {
      const { url, port, errors } = await serve({ path: PATH, otherwise })
      const reply = await fetch(`${url}/own`, { method: 'POST', body: 'x'.repeat(100_000) })
      expect([reply.status, await reply.text()]).toEqual([500, ''])
      expect(errors).toEqual([new Error('broken')])
      expect(await send(port, `${PATH}/${SECRET}`)).toBe(200)
    },
  )

  it('A24 may fail after its reply has begun: the connection is cut, so that no client treats the reply as complete', async () => {
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
    const handler = createDoors(OPTIONS).listener({ path: PATH, otherwise: (_req, res) => res.end('app') })
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
