import { afterEach, describe, expect, it, jest } from '@jest/globals'
import express5 from 'express'
import request from 'supertest'
import {
  createRequireEntitlement,
  type EntitlementPort,
  type GuardDecision,
  type RequireEntitlementOptions,
} from '../lib/express/require-entitlement.js'

const express4 = require('express-4') as typeof express5

const DENIED: GuardDecision = {
  entitled: false,
  known: true,
  reason: 'not_purchased',
  explanation: 'The subscription is suspended.',
}
const UNKNOWN: GuardDecision = {
  entitled: false,
  known: false,
  reason: 'not_read_yet',
  explanation: 'The platform has not answered yet.',
}

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
afterEach(() => expect(unhandled).toEqual([]))

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('requireEntitlement on %s', (_name, express) => {
  it('lets an entitled business through, without asking for reasons', async () => {
    const { app, port } = setUp(express, { isEntitled: async (uid) => uid === 'b-1' })
    await request(app).get('/report').set('x-business', 'b-1').expect(200, 'the report')
    expect(port.explain).not.toHaveBeenCalled()
  })

  it('denies with 402 and the words of the decision', async () => {
    const { app } = setUp(express, { explain: async () => DENIED })
    const reply = await request(app).get('/report').set('x-business', 'b-2').expect(402)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
    })
    expect(reply.headers['retry-after']).toBeUndefined()
    expect(reply.body).toEqual({
      type: 'about:blank',
      title: 'not entitled',
      status: 402,
      code: 'not_entitled',
      detail: 'The subscription is suspended.',
      reason: 'not_purchased',
    })
  })

  it('asks to come back with 503 and Retry-After while it cannot be known', async () => {
    const { app } = setUp(express, { explain: async () => UNKNOWN })
    const reply = await request(app).get('/report').set('x-business', 'b-2').expect(503)
    expect(reply.headers['retry-after']).toBe('5')
    expect(reply.body).toMatchObject({ code: 'entitlement_unknown', reason: 'not_read_yet' })
  })

  it('takes the yes that came between the two questions', async () => {
    const { app } = setUp(express, { explain: async () => ({ ...DENIED, entitled: true }) })
    await request(app).get('/report').set('x-business', 'b-2').expect(200)
  })

  it.each([undefined, null, '', Number.NaN, Number.POSITIVE_INFINITY, {}, [], ['b-1'], true, Symbol('b-1')])(
    'denies with 402, and asks nobody, when the request names no business: %p',
    async (uid) => {
      for (const businessUid of [() => uid, async () => uid]) {
        const { app, port } = setUp(
          express,
          { isEntitled: async () => true },
          { businessUid: businessUid as never },
        )
        const reply = await request(app).get('/report').expect(402)
        expect(reply.body).toMatchObject({ code: 'not_entitled', reason: 'business_missing' })
        expect(port.isEntitled).not.toHaveBeenCalled()
      }
    },
  )

  it('takes a number as the text of it', async () => {
    const { app, port } = setUp(express, { isEntitled: async () => true }, { businessUid: async () => 72 })
    await request(app).get('/report').expect(200)
    expect(port.isEntitled).toHaveBeenCalledWith('72')
  })

  it('stays closed when asking fails or answers anything but true', async () => {
    const failing = async () => {
      throw new Error('database is gone: postgres://user:hunter2@db')
    }
    const throwing = () => {
      throw new Error('closed')
    }
    for (const answers of [
      { isEntitled: failing },
      { isEntitled: throwing },
      { explain: failing },
      { explain: throwing },
      { isEntitled: async () => 'true' as never },
      { isEntitled: async () => 1 as never, explain: async () => undefined as never },
      { explain: async () => ({ ...UNKNOWN, entitled: 'yes' as never }) },
    ]) {
      const { app } = setUp(express, { explain: async () => UNKNOWN, ...answers })
      const reply = await request(app).get('/report').set('x-business', 'b-1').expect(503)
      expect(reply.body.code).toBe('entitlement_unknown')
      expect(reply.text).not.toContain('hunter2')
    }
  })

  it('hands what the app’s businessUid throws to the app’s error handler', async () => {
    for (const businessUid of [
      () => {
        throw new Error('no session')
      },
      () => Promise.reject(new Error('no session')),
    ]) {
      const { app } = setUp(express, { isEntitled: async () => true }, { businessUid })
      await request(app).get('/report').expect(500, 'the app says: no session')
    }
  })

  it('lets the app answer in its own way, with the decision at hand', async () => {
    for (const decision of [DENIED, UNKNOWN]) {
      const { app } = setUp(
        express,
        { explain: async () => decision },
        { onDenied: (_req, res, _next, given) => res.status(418).json(given) },
      )
      const reply = await request(app).get('/report').set('x-business', 'b').expect(418)
      expect(reply.body).toEqual(decision)
    }
  })

  it('lets the app’s onDenied go on, and hears what it throws', async () => {
    const { app } = setUp(express, {}, { onDenied: (_req, _res, next) => next() })
    await request(app).get('/report').set('x-business', 'b').expect(200)
    for (const onDenied of [
      () => {
        throw new Error('no page')
      },
      () => Promise.reject(new Error('no page')),
    ]) {
      const { app } = setUp(express, {}, { onDenied })
      await request(app).get('/report').set('x-business', 'b').expect(500, 'the app says: no page')
    }
  })
})

describe('the options of requireEntitlement', () => {
  it.each([undefined, null, {}, { businessUid: 'b-1' }, { businessUid: () => 'b', onDenied: '/upgrade' }])(
    'are refused at construction: %j',
    (options) => {
      const requireEntitlement = createRequireEntitlement({
        isEntitled: async () => true,
        explain: async () => DENIED,
      })
      expect(() => requireEntitlement(options as never)).toThrow(
        expect.objectContaining({
          code: 'argument_invalid',
          message: expect.stringMatching(/^Cannot guard a route: /),
        }),
      )
    },
  )

  it('give a middleware that stack traces can name', () => {
    const requireEntitlement = createRequireEntitlement({
      isEntitled: async () => true,
      explain: async () => DENIED,
    })
    expect(requireEntitlement({ businessUid: () => 'b' }).name).toBe('requireEntitlementMiddleware')
  })
})

/** An app with one guarded route; nobody is entitled unless `answers` say so. */
function setUp(
  express: typeof express5,
  answers: Partial<EntitlementPort>,
  options: Partial<RequireEntitlementOptions> = {},
) {
  const port = {
    isEntitled: jest.fn(answers.isEntitled ?? (async () => false)),
    explain: jest.fn(answers.explain ?? (async () => DENIED)),
  }
  const requireEntitlement = createRequireEntitlement(port)
  const app = express()
  app.get(
    '/report',
    requireEntitlement({ businessUid: (req) => req.get('x-business'), ...options }),
    (_req, res) => void res.send('the report'),
  )
  const sayError: express5.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(`the app says: ${error.message}`)
  }
  app.use(sayError)
  return { app, port }
}
