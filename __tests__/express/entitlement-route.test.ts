import { createServer } from 'node:http'
import { describe, expect, it, jest } from '@jest/globals'
import type express5 from 'express'
import request from 'supertest'
import type { DecisionPort, EntitlementRouteOptions } from '../../lib/express/decision-for-request.js'
import { createEntitlementRoute } from '../../lib/express/entitlement-route.js'
import { ALLOWED, DENIED, UNKNOWN } from '../support/receiving/decisions.js'
import { EXPRESSES } from '../support/receiving/receivers.js'

describe.each(EXPRESSES)('the route for a front end on %s', (_name, express) => {
  it.each([
    [
      'may use the app',
      ALLOWED,
      { entitled: true, known: true, accessUntil: ALLOWED.accessUntil, items: ['pro'] },
    ],
    ['may not use it', DENIED, { entitled: false, known: true, accessUntil: null, items: [] }],
    ['is not known now', UNKNOWN, { entitled: false, known: false, accessUntil: null, items: [] }],
  ] as const)('answers 200 about a business that %s', async (_what, decision, body) => {
    const { app, explain } = setUp(express, async () => decision)
    const get = await request(app).get('/api/entitlement').set('x-business', 'b-1').expect(200)
    expect(get.body).toEqual(body)
    expect(get.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' })
    expect(get.headers['retry-after']).toBe(decision.known ? undefined : '5')
    expect(explain.mock.calls).toEqual([['b-1', undefined]])
    const head = await request(app).head('/api/entitlement').set('x-business', 'b-1').expect(200)
    expect(head.text ?? '').toBe('')
    for (const name of ['content-type', 'cache-control', 'retry-after', 'content-length'])
      expect([name, head.headers[name]]).toEqual([name, get.headers[name]])
  })

  it('answers in the same way to a browser that prefers HTML', async () => {
    const { app } = setUp(express, async () => UNKNOWN)
    const reply = await request(app)
      .get('/api/entitlement')
      .set({ 'x-business': 'b-1', accept: 'text/html' })
      .expect(200)
    expect(reply.body).toMatchObject({ known: false })
  })

  it('answers 401 to a request without a business, and asks nothing', async () => {
    const { app, explain } = setUp(express, async () => ALLOWED)
    const reply = await request(app).get('/api/entitlement').expect(401)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
    })
    expect(reply.body).toMatchObject({ status: 401, code: 'business_missing' })
    expect(explain).not.toHaveBeenCalled()
  })

  it.each(['post', 'put', 'patch', 'delete', 'options'] as const)('answers 405 to %s', async (method) => {
    const { app, explain } = setUp(express, async () => ALLOWED)
    const reply = await request(app)[method]('/any').set('x-business', 'b-1').expect(405)
    expect(reply.headers).toMatchObject({
      allow: 'GET, HEAD',
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
    })
    expect(reply.body).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(explain).not.toHaveBeenCalled()
  })

  it.each([
    ['throws', () => JSON.parse('{')],
    ['rejects', () => Promise.reject(new Error('down: postgres://user:hunter2@db'))],
    ['returns nothing', async () => undefined],
  ])('answers that nothing is known when the lookup %s', async (_how, explain) => {
    const { app } = setUp(express, explain as never)
    const reply = await request(app).get('/api/entitlement').set('x-business', 'b-1').expect(200)
    expect(reply.body).toEqual({ entitled: false, known: false, accessUntil: null, items: [] })
    expect(reply.headers['retry-after']).toBe('5')
  })

  it('asks for the items that its options name', async () => {
    for (const purchasableUid of ['pro', () => ['pro'], async () => ['pro']] as const) {
      const { app, explain } = setUp(express, async () => ALLOWED, { purchasableUid })
      await request(app).get('/api/entitlement').set('x-business', 'b-1').expect(200)
      expect(explain.mock.calls).toEqual([['b-1', { purchasableUid: ['pro'] }]])
    }
  })

  it.each([
    ['businessUid', { businessUid: () => Promise.reject(new Error('no session')) }, 'no session'],
    ['businessUid', { businessUid: () => JSON.parse('{') }, /JSON/],
    ['purchasableUid', { purchasableUid: () => Promise.reject(new Error('no plan')) }, 'no plan'],
    [
      'businessUid, of no error,',
      { businessUid: () => Promise.reject(undefined) },
      'Cannot answer whether a business may use the app: undefined was thrown',
    ],
  ])('passes an error of the app’s own %s on to next', async (_what, options, words) => {
    const { app } = setUp(express, async () => ALLOWED, options)
    const reply = await request(app).get('/api/entitlement').set('x-business', 'b-1').expect(500)
    expect(reply.text).toMatch(words)
    expect(reply.text).toMatch(/^the app says: /)
  })
})

describe('the route for a front end', () => {
  it('works without a framework', async () => {
    const route = createEntitlementRoute({ explain: async () => ALLOWED })({ businessUid: () => 'b-1' })
    const server = createServer((req, res) => void route(req, res, () => res.end('next')))
    expect((await request(server).get('/').expect(200)).body).toMatchObject({ entitled: true })
  })

  it.each([
    undefined,
    null,
    {},
    { businessUid: 'b-1' },
    { businessUid: () => 'b', purchasableUid: undefined },
    { businessUid: () => 'b', purchasableUid: 'gold' },
  ])('refuses its options at construction: %j', (options) => {
    const entitlementRoute = createEntitlementRoute({
      explain: async () => ALLOWED,
      purchasableUids: ['pro'],
    })
    expect(() => entitlementRoute(options as never)).toThrow(
      expect.objectContaining({
        code: 'argument_invalid',
        message: expect.stringMatching(/^Cannot answer whether a business may use the app: /),
      }),
    )
  })
})

/** An app with the route at one path for GET, and at another for every method. */
function setUp(
  express: typeof express5,
  given: DecisionPort['explain'],
  options: Partial<EntitlementRouteOptions> = {},
) {
  const explain = jest.fn(given)
  const route = createEntitlementRoute({ explain })({
    businessUid: (req) => req.get('x-business'),
    ...options,
  })
  const app = express()
  app.get('/api/entitlement', route)
  app.use('/any', route)
  const sayError: express5.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(`the app says: ${error.message}`)
  }
  app.use(sayError)
  return { app, explain }
}
