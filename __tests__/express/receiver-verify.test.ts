import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import request from 'supertest'
import { barrier, EVENT, express4, setUp, until } from '../support/receiving/receivers.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('the receiver on %s', (_name, express) => {
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

    it('stores a delivery that it approves later, even behind express.json(), where it gets no text', async () => {
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

    it.each([false, undefined, null, 'yes', 1])('refuses with 403 if it returns %j', async (answer) => {
      for (const verifyDelivery of [() => answer as boolean, async () => answer as boolean]) {
        const { app, kept } = setUp(express, { verifyDelivery })
        const reply = await request(app).post(`/hooks/${SECRET}`).send(EVENT).expect(403)
        expect(reply.body.code).toBe('delivery_refused')
        expect(kept).toEqual([])
      }
    })

    it('replies 503 at once if it rejects, or the write after it', async () => {
      const failure = new Error('no key')
      for (const options of [
        { verifyDelivery: () => Promise.reject(failure) },
        { verifyDelivery: () => true, accept: () => Promise.reject(failure) },
      ]) {
        const { app } = setUp(express, { ...options, acceptTimeoutMs: 60_000 })
        await request(app).post(`/hooks/${SECRET}`).send(EVENT).timeout(3_000).expect(503)
      }
    })

    it('replies 503 if it throws or takes too long, and then stores nothing', async () => {
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

  it('A22 counts a request once when a method that was replaced throws, and leaves no deadline behind', async () => {
    const outcomes: unknown[] = []
    const { receiver } = setUp(express, { bodyTimeoutMs: 50, count: (outcome) => outcomes.push(outcome) })
    const app = express().use((req, _res, next) => {
      req.on = () => {
        throw new Error('replaced')
      }
      next()
    })
    app.use('/hooks', receiver)
    await request(app)
      .post(`/hooks/${SECRET}`)
      .send(EVENT)
      .catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(outcomes).toEqual(['delivery_not_accepted'])
  })

  it('A22 sends its own headers behind a middleware whose writeHead does not support lists', async () => {
    const { receiver } = setUp(express)
    const app = express().use((_req, res, next) => {
      const { writeHead } = res
      // on-headers before 1.1.0, which compression and express-session use, does not.
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
