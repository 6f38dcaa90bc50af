import { createServer } from 'node:http'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import type express5 from 'express'
import request from 'supertest'
import type { Decision } from '../../lib/entitlement/decide.js'
import {
  createRequireEntitlement,
  type EntitlementPort,
  type GuardDecision,
  type RequireEntitlementOptions,
} from '../../lib/express/require-entitlement.js'
import { ALLOWED, DENIED, UNKNOWN } from '../support/receiving/decisions.js'
import { EXPRESSES } from '../support/receiving/receivers.js'

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
afterEach(() => expect(unhandled).toEqual([]))

describe.each(EXPRESSES)('requireEntitlement on %s', (_name, express) => {
  it('admits an entitled business, and asks once', async () => {
    const { app, explain } = setUp(express, { explain: async (uid) => (uid === 'b-1' ? ALLOWED : DENIED) })
    await request(app).get('/report').set('x-business', 'b-1').expect(200, 'the report')
    expect(explain.mock.calls).toEqual([['b-1', undefined]])
    await request(app).get('/report').set('x-business', 'b-2').expect(402)
    expect(explain.mock.calls.slice(1)).toEqual([['b-2', undefined]])
  })

  it('gives the decision to the routes behind it, also beside other locals of the app', async () => {
    const { app, seen } = setUp(express, { explain: async () => ALLOWED })
    await request(app).get('/report').set('x-business', 'b-1').expect(200)
    expect(seen).toEqual([{ before: true, entitlement: ALLOWED }])
  })

  it.each([
    ['taken away', undefined],
    ['null', null],
    ['a text', 'locals'],
  ])('gives the decision also when res.locals is %s', async (_what, locals) => {
    const { app, seen } = setUp(express, { explain: async () => ALLOWED }, {}, { locals })
    await request(app).get('/report').set('x-business', 'b-1').expect(200)
    expect(seen).toEqual([{ entitlement: ALLOWED }])
  })

  it('gives the decision about the items that it asks for', async () => {
    const about = { ...ALLOWED, entitledItems: ['team'] }
    const { app, explain, seen } = setUp(
      express,
      { explain: async (_uid, options) => (options ? about : ALLOWED) },
      { purchasableUid: 'team' },
    )
    await request(app).get('/report').set('x-business', 'b-1').expect(200)
    expect(explain.mock.calls).toEqual([['b-1', { purchasableUid: ['team'] }]])
    expect(seen).toMatchObject([{ entitlement: { entitledItems: ['team'] } }])
  })

  it('gives the decision that denies to a route that onDenied lets through, and none where there is none', async () => {
    const answers = {
      explain: async (uid: string): Promise<Decision> => {
        if (uid === 'b-2') return DENIED
        throw new Error('closed')
      },
    }
    const { app, seen } = setUp(express, answers, { onDenied: (_req, _res, next) => next() })
    await request(app).get('/report').set('x-business', 'b-2').expect(200)
    await request(app).get('/report').set('x-business', 'b-3').expect(200)
    await request(app).get('/report').expect(200)
    expect(seen.map((locals) => (locals as { entitlement?: Decision }).entitlement)).toEqual([
      DENIED,
      undefined,
      undefined,
    ])
  })

  it('gives the decision of the last gate, and none of an earlier one', async () => {
    const { requireEntitlement, route, seen, app } = setUp(express, { explain: async () => ALLOWED })
    const second = requireEntitlement({ businessUid: () => null, onDenied: (_req, _res, next) => next() })
    app.get('/twice', requireEntitlement({ businessUid: () => 'b-1' }), second, route)
    await request(app).get('/twice').expect(200)
    expect(seen).toEqual([{ before: true, entitlement: undefined }])
  })

  it('J30 denies with 402 and a short sentence, and reveals nothing of the decision', async () => {
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
      detail: 'This app is not available to your business, because there is no active purchase of it.',
    })
  })

  it('replies 503 with Retry-After while the answer is not known', async () => {
    const { app } = setUp(express, { explain: async () => UNKNOWN })
    const reply = await request(app).get('/report').set('x-business', 'b-2').expect(503)
    expect(reply.headers['retry-after']).toBe('5')
    expect(reply.body).toEqual({
      type: 'about:blank',
      title: 'entitlement unknown',
      status: 503,
      code: 'entitlement_unknown',
      detail: 'Your purchase of this app cannot be checked at the moment. Please try again shortly.',
    })
  })

  it.each([
    undefined,
    null,
    '',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1.5,
    2 ** 53,
    {},
    [],
    ['b-1'],
    true,
    12n,
    Symbol('b-1'),
    'b\u0000',
    'b\ud800',
    'b'.repeat(256),
  ])('J31 replies 401, without a lookup, if the request names no business: %p', async (uid) => {
    for (const businessUid of [() => uid, async () => uid]) {
      const { app, explain } = setUp(
        express,
        { explain: async () => ALLOWED },
        { businessUid: businessUid as never },
      )
      const reply = await request(app).get('/report').expect(401)
      expect(reply.headers['cache-control']).toBe('no-store')
      expect(reply.body).toEqual({
        type: 'about:blank',
        title: 'business missing',
        status: 401,
        code: 'business_missing',
        detail: 'Please sign in: this request is not made for a business.',
      })
      expect(explain).not.toHaveBeenCalled()
    }
  })

  it('accepts a number as its text', async () => {
    const { app, explain } = setUp(express, { explain: async () => ALLOWED }, { businessUid: async () => 72 })
    await request(app).get('/report').expect(200)
    expect(explain).toHaveBeenCalledWith('72', undefined)
  })

  it('denies access if the lookup fails or returns anything but true', async () => {
    const failing = async () => {
      throw new Error('database is gone: postgres://user:hunter2@db')
    }
    const throwing = () => {
      throw new Error('closed')
    }
    for (const answers of [
      { explain: failing },
      { explain: throwing },
      { explain: async () => undefined as never },
      { explain: async () => ({ ...UNKNOWN, entitled: 'true' as never }) },
      { explain: async () => ({ ...UNKNOWN, entitled: 1 as never }) },
    ]) {
      const { app } = setUp(express, answers)
      const reply = await request(app).get('/report').set('x-business', 'b-1').expect(503)
      expect(reply.body.code).toBe('entitlement_unknown')
      expect(reply.text).not.toContain('hunter2')
    }
  })

  it("passes an error of the app's businessUid to the app's error handler", async () => {
    for (const businessUid of [
      () => {
        throw new Error('no session')
      },
      () => Promise.reject(new Error('no session')),
    ]) {
      const { app } = setUp(express, { explain: async () => ALLOWED }, { businessUid })
      await request(app).get('/report').expect(500, 'the app says: no session')
    }
  })

  it.each([
    ['text/html', 'html'],
    ['application/json;q=0.1, text/html;q=0.2', 'html'],
    [undefined, 'problem'],
    ['text/html, application/json', 'problem'],
    [',;,/;q=;q=1,'.repeat(500), 'problem'],
  ])('J30 replies to Accept: %s with %s', async (accept, kind) => {
    for (const [decision, status] of [
      [DENIED, 402],
      [UNKNOWN, 503],
    ] as const) {
      const { app } = setUp(express, { explain: async () => decision })
      const headers: Record<string, string> = accept === undefined ? {} : { accept }
      const reply = await request(app)
        .get('/report')
        .set({ 'x-business': 'b-2', ...headers })
        .expect(status)
      expect(reply.headers['cache-control']).toBe('no-store')
      expect(reply.headers['retry-after']).toBe(status === 503 ? '5' : undefined)
      expect('refresh' in reply.headers).toBe(kind === 'html' && status === 503)
      expect(reply.headers['content-type']).toBe(
        kind === 'html' ? 'text/html; charset=utf-8' : 'application/problem+json',
      )
      expect(reply.text.startsWith('<!doctype html>')).toBe(kind === 'html')
      expect(reply.text).not.toMatch(/not_purchased|not_read_yet|suspended|platform/)
    }
  })

  it('J30 replies to a browser without a business with a page', async () => {
    const { app } = setUp(express, {})
    const reply = await request(app).get('/report').set('accept', 'text/html').expect(401)
    expect(reply.text).toContain('<h1>Please sign in: this request is not made for a business.</h1>')
  })

  it('replies to a browser whose answer is not known with a page that loads itself again', async () => {
    const { app, requireEntitlement } = setUp(express, { explain: async () => UNKNOWN })
    app.use('/orders', requireEntitlement({ businessUid: () => 'b-1' }))
    const get = await request(app).get('/orders').set('accept', 'text/html').expect(503)
    expect(get.text).toContain('<h1>Your purchase of this app cannot be checked at the moment. ')
    expect(get.text).toContain('This page tries again by itself in a few seconds.</h1>')
    for (const [path, query] of [
      ['/orders', '?'],
      ['/orders/a;b?c=1&d="2"', '?c=1&d=%222%22'],
    ] as const) {
      const { headers } = await request(app).get(path).set('accept', 'text/html').expect(503)
      expect(headers.refresh).toBe(`${headers['retry-after']};url=${query}`)
    }
    const head = await request(app).head('/orders').set('accept', 'text/html').expect(503)
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
    for (const method of ['post', 'put', 'delete'] as const) {
      const reply = await request(app)[method]('/orders').set('accept', 'text/html').expect(503)
      expect(reply.headers['retry-after']).toBe('5')
      expect(reply.headers).not.toHaveProperty('refresh')
      expect(reply.text).not.toMatch(/by itself/)
      expect(reply.text).toContain('Please try again shortly.</h1>')
    }
  })

  it('J30 passes every denying decision to the log, and still denies access if the log fails', async () => {
    const noted: GuardDecision[] = []
    const onDenied = (decision: GuardDecision) => {
      noted.push(decision)
      throw new Error('the log is full')
    }
    const { app } = setUp(express, { explain: async () => DENIED, onDenied })
    await request(app).get('/report').set('x-business', 'b-2').expect(402)
    await request(app).get('/report').expect(401)
    expect(noted).toMatchObject([DENIED, { reason: 'business_missing' }])
  })

  it.each([undefined, null, 0, '', false, 'route', 'router'])(
    'J33 denies access if the app\'s businessUid throws %p, which means "continue" to Express',
    async (thrown) => {
      for (const businessUid of [
        () => {
          throw thrown
        },
        () => Promise.reject(thrown),
      ]) {
        const { app } = setUp(express, { explain: async () => ALLOWED }, { businessUid })
        const reply = await request(app).get('/report').expect(500)
        expect(reply.text).toMatch(/^the app says: Cannot guard a route: .* was thrown$/)
      }
    },
  )

  it('lets the app reply in its own way, with the decision as an argument', async () => {
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

  it("lets the app's onDenied continue, and passes its error on", async () => {
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

describe('requireEntitlement without a framework', () => {
  it('gives the decision to what follows', async () => {
    const guard = createRequireEntitlement({ explain: async () => ALLOWED })({ businessUid: () => 'b-1' })
    const server = createServer((req, res) => {
      void guard(req, res, () => res.end(JSON.stringify((res as { locals?: unknown }).locals)))
    })
    expect(JSON.parse((await request(server).get('/').expect(200)).text)).toEqual({ entitlement: ALLOWED })
  })
})

describe('the options of requireEntitlement', () => {
  it.each([undefined, null, {}, { businessUid: 'b-1' }, { businessUid: () => 'b', onDenied: '/upgrade' }])(
    'are refused at construction: %j',
    (options) => {
      const requireEntitlement = createRequireEntitlement({ explain: async () => DENIED })
      expect(() => requireEntitlement(options as never)).toThrow(
        expect.objectContaining({
          code: 'argument_invalid',
          message: expect.stringMatching(/^Cannot guard a route: /),
        }),
      )
    },
  )
})

/** An app with one guarded route, which notes what it finds in `res.locals`. By default every business is denied. */
function setUp(
  express: typeof express5,
  { explain: given = async () => DENIED, ...more }: Partial<EntitlementPort>,
  options: Partial<RequireEntitlementOptions> = {},
  { locals }: { locals: unknown } = { locals: { before: true } },
) {
  const explain = jest.fn(given)
  const requireEntitlement = createRequireEntitlement({ explain, ...more })
  const app = express()
  const seen: unknown[] = []
  const setLocals: express5.RequestHandler = (_req, res, next) => {
    Object.assign(res, { locals })
    next()
  }
  const route: express5.RequestHandler = (_req, res) => {
    seen.push({ ...res.locals })
    res.send('the report')
  }
  app.use(setLocals)
  app.get('/report', requireEntitlement({ businessUid: (req) => req.get('x-business'), ...options }), route)
  const sayError: express5.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(`the app says: ${error.message}`)
  }
  app.use(sayError)
  return { app, explain, requireEntitlement, route, seen }
}
