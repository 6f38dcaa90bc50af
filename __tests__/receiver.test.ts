import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import express5 from 'express'
import request from 'supertest'
import type { Envelope } from '../lib/envelope.js'
import { createSecretCheck } from '../lib/express/delivery-secret.js'
import { createReceiver, type ReceiverOptions } from '../lib/express/receiver.js'
import { RECEIVER_DEFAULTS } from './support/defaults.js'

const express4 = require('express-4') as typeof express5

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'
const NEXT_SECRET = 'p5GdXa-1KuEo6NsBjV4tWq'
const EVENT = {
  entity_name: 'app_subscription',
  event_type: 'installed',
  data: { business_id: 'b', app_id: 72 },
}

const open: (() => void)[] = []
const logged = (['log', 'info', 'warn', 'error'] as const).map((level) => jest.spyOn(console, level))
const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))

afterEach(() => {
  for (const close of open.splice(0)) close()
  for (const spy of logged) expect(spy).not.toHaveBeenCalled()
  expect(unhandled).toEqual([])
})

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('the receiver on %s', (_name, express) => {
  describe('stores', () => {
    it('one envelope, and answers with its id', async () => {
      const { app, kept } = setUp(express)
      const reply = await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(200)
      expect(reply.body).toEqual({ received: true, id: 'e1' })
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(reply.text.length),
      })
      expect(kept).toEqual([[{ value: EVENT, text: JSON.stringify(EVENT) }]])
    })

    it('the text of the body as it was sent', async () => {
      const { app, kept } = setUp(express)
      const text = ' {"price": 10.00, "price": 1e2,\n "n":12345678901234567890}'
      await request(app).post(`/hooks/${SECRET}`).type('json').send(text).expect(200)
      expect(kept[0]?.[0]?.text).toBe(text)
    })

    it('B12 an array as one envelope each, in one call, and answers with all ids', async () => {
      const { app, kept } = setUp(express)
      const reply = await request(app).post(`/hooks/${SECRET}`).send([EVENT, null, 7]).expect(200)
      expect(reply.body).toEqual({ received: true, id: 'e1', ids: ['e1', 'e2', 'e3'] })
      expect(kept).toEqual([[EVENT, null, 7].map((value) => ({ value, text: null }))])
    })

    it('an array of one as an array', async () => {
      const { app } = setUp(express)
      const reply = await request(app).post(`/hooks/${SECRET}`).send([EVENT])
      expect(reply.body).toEqual({ received: true, id: 'e1', ids: ['e1'] })
    })

    it.each(['null', '[]', '7', '"text"', 'true', '{}', '[[]]'])(
      'B12 %s, whatever its meaning',
      async (text) => {
        const { app, kept } = setUp(express)
        await request(app).post(`/hooks/${SECRET}`).type('json').send(text).expect(200)
        expect(kept).toHaveLength(1)
        expect(kept[0]).toHaveLength(1)
      },
    )

    it('up to 1,000 elements separately, and more than that as a whole', async () => {
      const { app, kept } = setUp(express)
      await request(app).post(`/hooks/${SECRET}`).send(Array(1_000).fill(0)).expect(200)
      await request(app).post(`/hooks/${SECRET}`).send(Array(1_001).fill(0)).expect(200)
      expect(kept.map((envelopes) => envelopes.length)).toEqual([1_000, 1])
    })

    it('B11 an unrecognised delivery, with the reason', async () => {
      const accept = async (envelopes: readonly Envelope[]) =>
        envelopes.map(({ value }, i) => ({
          id: `e${i}`,
          issues: value === EVENT.data ? null : ['odd', 'very odd'],
        }))
      const { app } = setUp(express, { accept })
      const one = await request(app).post(`/hooks/${SECRET}`).send({}).expect(200)
      expect(one.body).toEqual({ received: true, id: 'e0', issues: ['odd', 'very odd'] })
      const two = await request(app).post(`/hooks/${SECRET}`).send([1, 2]).expect(200)
      expect(two.body.issues).toEqual(['[0] odd', '[0] very odd', '[1] odd', '[1] very odd'])
    })

    it('A15 a delivery whose sender disconnects before the reply, once', async () => {
      const gate = barrier()
      const { app, kept, outcomes } = setUp(express, {}, gate.passed)
      const { port } = await listen(app)
      const socket = await dial(port)
      socket.write(`POST /hooks/${SECRET} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`)
      await until(() => kept.length === 1)
      socket.resetAndDestroy()
      await once(socket, 'close')
      gate.open()
      await until(() => outcomes.length === 1)
      expect(kept).toHaveLength(1)
      expect(outcomes).toEqual(['received'])
    })

    it('deliveries one after the other on one connection', async () => {
      const { app, kept } = setUp(express)
      const { port } = await listen(app)
      const socket = await dial(port)
      const message = `POST /hooks/${SECRET} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`
      let text = ''
      socket.on('data', (data) => {
        text += data
      })
      socket.write(message.repeat(3))
      await until(() => text.match(/"received":true/g)?.length === 3)
      expect(kept).toHaveLength(3)
    })
  })

  describe('finds the secret', () => {
    it.each(['', '/', '?a=1&a=2&a[b]=%', '/?x', '?%E0%A4%A'])('A4 with %j behind it', async (suffix) => {
      const { app, kept } = setUp(express)
      await request(app).post(`/hooks/${SECRET}${suffix}`).send(EVENT).expect(200)
      expect(kept).toHaveLength(1)
    })

    it('in percent encoding', async () => {
      const { app } = setUp(express)
      await request(app)
        .post(`/hooks/${SECRET.replace('_', '%5F')}`)
        .send(EVENT)
        .expect(200)
    })

    it('at any mount path of the router, and each instance only its own', async () => {
      const app = express()
      const [root, nested, other] = [
        setUp(express),
        setUp(express),
        setUp(express, { isSecret: createSecretCheck([NEXT_SECRET]) }),
      ]
      app.use('/a/b', express.Router().use('/c', nested.receiver))
      app.use('/other', other.receiver)
      app.use(root.receiver)
      await request(app).post(`/${SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/a/b/c/${SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/other/${NEXT_SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/other/${SECRET}`).send(EVENT).expect(404)
      expect([root, nested, other].map(({ kept }) => kept.length)).toEqual([1, 1, 1])
    })

    it('A3 old or new during a rotation, and only the new one afterwards', async () => {
      const { app } = setUp(express, { isSecret: createSecretCheck([NEXT_SECRET, SECRET]) })
      for (const secret of [SECRET, NEXT_SECRET]) {
        await request(app).post(`/hooks/${secret}`).send(EVENT).expect(200)
      }
      const { app: later } = setUp(express, { isSecret: createSecretCheck([NEXT_SECRET]) })
      await request(later).post(`/hooks/${SECRET}`).send(EVENT).expect(404)
      await request(later).post(`/hooks/${NEXT_SECRET}`).send(EVENT).expect(200)
    })
  })

  it('counts requests with a wrong secret, and passes on which secret a delivery came with', async () => {
    const secrets: unknown[] = []
    const { app, outcomes } = setUp(express, {
      whichSecret: (candidate) => [SECRET].indexOf(candidate) + 7,
      accept: async (_envelopes, secret) => {
        secrets.push(secret)
        return [{ id: 'e1', issues: null }]
      },
    })
    await request(app).post('/hooks/wrong').send(EVENT).expect(404)
    await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(200)
    expect([outcomes, secrets]).toEqual([['secret_wrong', 'received'], [7]])
  })

  describe('A1 answers 404 with an empty body', () => {
    it.each([
      '',
      '/',
      '?',
      `?${SECRET}`,
      `/x?secret=${SECRET}`,
      `/${SECRET.slice(1)}`,
      `/${SECRET}x`,
      `/${SECRET}//`,
      `/${SECRET}/x`,
      `/x/${SECRET}`,
      `/${SECRET.toLowerCase()}`,
      `/${SECRET};x`,
      `/${SECRET}%00`,
      `/${SECRET}%2f`,
      '/%',
      '/%E0%A4%A',
      '/%ff%fe',
      `/${'x'.repeat(10_000)}`,
      '/__proto__',
    ])('A4 at <mount>%s', async (path) => {
      const { app, kept } = setUp(express)
      for (const method of ['post', 'get', 'put'] as const) {
        const reply = await request(app)[method](`/hooks${path}`)
        expect([reply.status, reply.text]).toEqual([404, ''])
      }
      expect(kept).toEqual([])
    })

    it('before the body is sent', async () => {
      const { app, kept } = setUp(express)
      const { port } = await listen(app)
      const socket = await dial(port)
      socket.write('POST /hooks/wrong HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n')
      const reply = await closed(socket)
      expect(reply).toMatch(/^HTTP\/1\.1 404 /)
      expect(reply).toMatch(/\r\n\r\n$/)
      expect(kept).toEqual([])
    })

    it('also to a sender that has already sent a large body', async () => {
      const { app } = setUp(express)
      for (let i = 0; i < 5; i++) {
        await request(app)
          .post('/hooks/wrong')
          .type('json')
          .send(`"${'x'.repeat(500_000)}"`)
          .expect(404)
      }
    })
  })

  it.each(['get', 'put', 'patch', 'delete', 'options', 'head'] as const)(
    'A7 answers %s with 405',
    async (method) => {
      const { app, kept } = setUp(express)
      const reply = await request(app)[method](`/hooks/${SECRET}`)
      expect(reply.status).toBe(405)
      expect(reply.headers).toMatchObject({ allow: 'POST', 'content-type': 'application/problem+json' })
      if (method !== 'head') expect(reply.body).toMatchObject({ status: 405, code: 'method_not_allowed' })
      expect(kept).toEqual([])
    },
  )

  describe('a delivery that cannot be stored', () => {
    const notKept = async (options: Partial<ReceiverOptions>) => {
      const { app, outcomes } = setUp(express, options)
      const reply = await request(app).post(`/hooks/${SECRET}`).send(EVENT)
      expect(reply.status).toBe(503)
      expect(reply.headers).toMatchObject({ 'retry-after': '5', 'content-type': 'application/problem+json' })
      expect(reply.body).toMatchObject({ status: 503, code: 'delivery_not_accepted' })
      expect(reply.text).not.toMatch(/postgres:|hunter/)
      if (!options.count) expect(outcomes).toEqual(['delivery_not_accepted'])
    }

    it('gets 503 when accept rejects, throws or answers nonsense, without the text of the error', async () => {
      const failure = new Error('connection to postgres://user:hunter2@db refused')
      await notKept({ accept: () => Promise.reject(failure) })
      await notKept({
        accept: () => {
          throw failure
        },
      })
      await notKept({ accept: async () => [] })
      await notKept({ accept: async () => undefined as never })
    })

    it.each([
      ['success', undefined],
      ['failure', new Error('too late for anybody to hear')],
    ])('gets 503 when accept takes too long, and its later %s is not counted', async (_what, result) => {
      const gate = barrier()
      const counted: string[] = []
      await notKept({
        acceptTimeoutMs: 50,
        accept: (envelopes) => gate.passed.then(() => envelopes.map(() => ({ id: 'late', issues: null }))),
        count: (outcome) => void counted.push(outcome),
      })
      gate.open(result)
      await gate.passed.catch(() => {})
      await new Promise(setImmediate)
      expect(counted).toEqual(['delivery_not_accepted'])
    })

    it('or that was stored gets its reply also when the count of it throws', async () => {
      const count = () => {
        throw new Error('no meter')
      }
      const stored = setUp(express, { count })
      await request(stored.app).post(`/hooks/${SECRET}`).send(EVENT).expect(200)
      const failing = setUp(express, { count, accept: () => Promise.reject(new Error('disk full')) })
      await request(failing.app).post(`/hooks/${SECRET}`).send(EVENT).expect(503)
    })

    it('is reported to the app', async () => {
      const failure = new Error('disk full')
      const errors: unknown[] = []
      const { app } = setUp(express, {
        accept: () => Promise.reject(failure),
        count: (_outcome, error) => errors.push(error?.cause),
      })
      await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(503)
      expect(errors).toEqual([failure])
    })
  })

  describe('with verifyDelivery', () => {
    it('passes the request and the text to it, before anything is stored', async () => {
      const seen: unknown[] = []
      const { app, kept } = setUp(express, {
        verifyDelivery: ({ req, text }) => {
          seen.push(req.headers['x-signature'], text, kept.length)
          return true
        },
      })
      await request(app).post(`/hooks/${SECRET}`).set('x-signature', 's').send(EVENT).expect(200)
      expect(seen).toEqual(['s', JSON.stringify(EVENT), 0])
      expect(kept).toHaveLength(1)
    })

    it('stores a delivery that it approves later, also behind express.json(), where it gets no text', async () => {
      const seen: unknown[] = []
      const { receiver, kept } = setUp(express, {
        verifyDelivery: async ({ text }) => {
          seen.push(text)
          return true
        },
      })
      const app = express().use(express.json()).use('/hooks', receiver)
      await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(200)
      expect(seen).toEqual([undefined])
      expect(kept).toHaveLength(1)
    })

    it.each([false, undefined, null, 'yes', 1])('refuses with 403 when it answers %j', async (answer) => {
      for (const verifyDelivery of [() => answer as boolean, async () => answer as boolean]) {
        const { app, kept } = setUp(express, { verifyDelivery })
        const reply = await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(403)
        expect(reply.body.code).toBe('delivery_refused')
        expect(kept).toEqual([])
      }
    })

    it('answers 503 at once when it rejects, or the write after it', async () => {
      const failure = new Error('no key')
      for (const options of [
        { verifyDelivery: () => Promise.reject(failure) },
        { verifyDelivery: () => true, accept: () => Promise.reject(failure) },
      ]) {
        const { app } = setUp(express, { ...options, acceptTimeoutMs: 60_000 })
        await request(app).post(`/hooks/${SECRET}`).send(EVENT).timeout(3_000).expect(503)
      }
    })

    it('answers 503 when it throws or takes too long, and then stores nothing', async () => {
      let gate = barrier()
      for (const verifyDelivery of [
        () => {
          throw new Error('no key')
        },
        () => Promise.reject(new Error('no key')),
        () => gate.passed.then(() => true),
      ]) {
        gate = barrier()
        const { app, kept } = setUp(express, { verifyDelivery, acceptTimeoutMs: 50 })
        await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(503)
        gate.open()
        await gate.passed
        await new Promise(setImmediate)
        expect(kept).toEqual([])
      }
    })
  })

  it('ignores a request that another middleware has already answered', async () => {
    const gate = barrier()
    const { receiver, kept, outcomes } = setUp(express, {}, gate.passed)
    const app = express().use((_req, res, next) => {
      next()
      void until(() => kept.length === 1).then(() => res.status(504).end('too slow'))
    })
    app.use('/hooks', receiver)
    await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(504, 'too slow')
    gate.open()
    await until(() => outcomes.length === 1)
  })

  it('A22 sends its own headers behind a middleware whose writeHead does not support lists', async () => {
    const { receiver } = setUp(express)
    const app = express().use((_req, res, next) => {
      const { writeHead } = res
      // As on-headers did before 1.1.0, by which compression and express-session work.
      res.writeHead = ((status: number, headers?: object) => {
        for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(`x-${name}`, value)
        return writeHead.call(res, status)
      }) as typeof res.writeHead
      next()
    })
    app.use('/hooks', receiver)
    const reply = await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(200)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(reply.text.length),
    })
    expect(Object.keys(reply.headers).filter((name) => /^x-\d/.test(name))).toEqual([])
  })

  it('A6, L4 never repeats the secret in a reply', async () => {
    const { app } = setUp(express, { accept: () => Promise.reject(new Error(SECRET)) })
    const send = (text: string) => request(app).post(`/hooks/${SECRET}`).type('json').send(text)
    for (const reply of [await send('{}'), await send('{'), await request(app).get(`/hooks/${SECRET}`)]) {
      expect(reply.status).toBeGreaterThanOrEqual(400)
      expect(JSON.stringify([reply.headers, reply.text])).not.toContain(SECRET)
    }
  })
})

describe('the options of the receiver', () => {
  it('give a middleware with a name in stack traces', () => {
    expect(createReceiver({ ...RECEIVER_DEFAULTS, isSecret: () => true, accept: async () => [] }).name).toBe(
      'receiveDelivery',
    )
  })
})

/** A receiver at /hooks that stores into an array and replies when `passed` resolves. */
function setUp(
  express: typeof express5,
  options: Partial<ReceiverOptions> = {},
  passed: Promise<unknown> = Promise.resolve(),
) {
  const kept: (readonly Envelope[])[] = []
  const outcomes: string[] = []
  const receiver = createReceiver({
    ...RECEIVER_DEFAULTS,
    isSecret: createSecretCheck([SECRET]),
    accept: async (envelopes) => {
      kept.push(envelopes)
      await passed
      return envelopes.map((_envelope, i) => ({ id: `e${i + 1}`, issues: null }))
    },
    count: (outcome) => outcomes.push(outcome),
    ...options,
  })
  const app = express().use('/hooks', receiver)
  return { app, kept, outcomes, receiver }
}

async function listen(app: express5.Express): Promise<AddressInfo> {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return server.address() as AddressInfo
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  open.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** All data until the other side closes. */
async function closed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return text
}

function barrier() {
  let settle: (error?: Error) => void = () => {}
  const passed = new Promise<never>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve(undefined as never))
  })
  return { passed, open: (error?: Error) => settle(error) }
}

async function until(isTrue: () => boolean, deadline = Date.now() + 5_000): Promise<void> {
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error('Not so within 5 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
