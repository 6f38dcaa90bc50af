import { createServer } from 'node:http'
import { describe, expect, it, jest } from '@jest/globals'
import request from 'supertest'
import { type Clock, systemClock } from '../../lib/base/clock.js'
import {
  createRequireEntitlement,
  type EntitlementPort,
  type RequireEntitlementOptions,
} from '../../lib/express/require-entitlement.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { DENIED, UNKNOWN } from '../support/receiving/decisions.js'

const SHOP = 'https://marketplace.example/apps/my-app?from=gate&plan=pro'
/** What no link may have: other schemes, and addresses that browsers read as another host's. */
const REFUSED = [
  'javascript:alert(1)',
  'JavaScript:alert(1)',
  'java\nscript:alert(1)',
  'data:text/html,x',
  'ftp://shop.example/',
  'shop.example/app',
  './app',
  '?buy',
  '//evil.example/',
  '/\\evil.example/',
  '/\t/evil.example/',
  ' https://shop.example/',
  'https://',
  'https:shop.example',
  'http://[',
  '',
]

describe('the purchaseUrl of a gate', () => {
  it.each([
    ['a text', SHOP],
    ['a function', () => SHOP],
    ['a function with a promise', async () => SHOP],
  ])('is in the reply to a business that may not use the app: %s', async (_what, purchaseUrl) => {
    const { get, failures } = setUp({ purchaseUrl })
    const json = await get('b-1').expect(402)
    expect(json.body).toEqual({
      type: 'about:blank',
      title: 'not entitled',
      status: 402,
      code: 'not_entitled',
      detail: 'This app is not available to your business, because there is no active purchase of it.',
      purchase_url: SHOP,
    })
    const page = await get('b-1', 'text/html').expect(402)
    expect(page.text).toContain('<h1>This app is not available to your business')
    expect(page.text).toContain(
      '<p><a href="https://marketplace.example/apps/my-app?from=gate&amp;plan=pro">Buy this app</a></p>',
    )
    expect(failures).toEqual([])
  })

  it('is not in the other replies, and the function is not called for them', async () => {
    const purchaseUrl = jest.fn(() => SHOP)
    const { get } = setUp({ purchaseUrl }, async () => UNKNOWN)
    for (const accept of ['application/json', 'text/html']) {
      expect((await get('b-1', accept).expect(503)).text).not.toMatch(
        /purchase_url|href|marketplace\.example/,
      )
      expect((await get('', accept).expect(401)).text).not.toMatch(/purchase_url|href|marketplace\.example/)
    }
    expect(purchaseUrl).not.toHaveBeenCalled()
  })

  it('is left to onDenied, which has the request', async () => {
    const purchaseUrl = jest.fn(() => SHOP)
    const { get } = setUp({ purchaseUrl, onDenied: (_req, res) => res.writeHead(418).end() })
    await get('b-1').expect(418)
    expect(purchaseUrl).not.toHaveBeenCalled()
  })

  it('gets the request', async () => {
    const { get } = setUp({ purchaseUrl: (req) => `/buy/${req.headers['x-business']}` })
    expect((await get('b-7')).body.purchase_url).toBe('/buy/b-7')
  })

  it.each([
    ['/buy', '/buy'],
    ['/', '/'],
    ['/buy?a=1&b=2#c', '/buy?a=1&amp;b=2#c'],
    ['HTTP://shop.example', 'HTTP://shop.example'],
    ['/buy?name="><script>alert(1)</script>', '/buy?name=&quot;>&lt;script>alert(1)&lt;/script>'],
    [`https://shop.example/?q="onclick='x'`, `https://shop.example/?q=&quot;onclick='x'`],
  ])('may be %s, and is escaped in the page', async (address, escaped) => {
    for (const purchaseUrl of [address, () => address]) {
      const { get } = setUp({ purchaseUrl })
      const page = await get('b-1', 'text/html').expect(402)
      expect(page.text).toContain(`<p><a href="${escaped}">Buy this app</a></p>`)
      expect((await get('b-1')).body.purchase_url).toBe(address)
    }
  })

  it.each([...REFUSED, null, 5, {}, ['/buy'], new URL(SHOP)])(
    'is refused at construction when it is a fixed %p',
    (purchaseUrl) => {
      expect(() => setUp({ purchaseUrl: purchaseUrl as never })).toThrow(
        expect.objectContaining({
          code: 'argument_invalid',
          message: expect.stringMatching(/^Cannot guard a route: purchaseUrl must be /),
        }),
      )
    },
  )

  it.each([undefined, () => undefined, () => null, async () => undefined])(
    'may be none, which is no failure: %p',
    async (purchaseUrl) => {
      const { get, failures } = setUp({ purchaseUrl })
      const [json, page] = [await get('b-1').expect(402), await get('b-1', 'text/html').expect(402)]
      expect(json.body).not.toHaveProperty('purchase_url')
      expect(page.text).not.toContain('<a')
      expect(failures).toEqual([])
    },
  )

  it.each([...REFUSED, 5, {}, true])(
    'is left out when a function returns %p, and the failure is reported without the value',
    async (returned) => {
      for (const purchaseUrl of [() => returned, async () => returned]) {
        const { get, failures } = setUp({ purchaseUrl: purchaseUrl as never })
        const [json, page] = [await get('b-1').expect(402), await get('b-1', 'text/html').expect(402)]
        expect(json.body).not.toHaveProperty('purchase_url')
        expect(page.text).not.toMatch(/<a|javascript|evil/i)
        const kind = typeof returned
        const failure = [`returned a value of type ${kind} that no link may have`, kind]
        expect(failures).toEqual([failure, failure])
      }
    },
  )

  it.each([
    [
      'throws',
      () => {
        throw new TypeError('no shop')
      },
    ],
    ['rejects', () => Promise.reject(new TypeError('no shop'))],
  ])('is left out when a function %s, and the failure is reported', async (_how, purchaseUrl) => {
    const { get, failures } = setUp({ purchaseUrl })
    expect((await get('b-1').expect(402)).body).not.toHaveProperty('purchase_url')
    expect(failures).toEqual([['threw', 'TypeError', { error: new TypeError('no shop') }]])
  })

  it('is left out when a function gives no answer within 5 s, and the failure is reported', async () => {
    const clock = createVirtualClock()
    const { get, failures } = setUp(
      { purchaseUrl: () => new Promise(() => {}) },
      async () => DENIED,
      clock.forProcess(),
    )
    const reply = await clock.until(
      get('b-1')
        .expect(402)
        .then(({ body }) => body),
    )
    expect(reply).not.toHaveProperty('purchase_url')
    expect([failures, clock.passed()]).toEqual([[['did not answer within 5 s', 'late']], 5_000])
  })
})

/** A gate in front of a plain HTTP server. Every business is denied by default. */
function setUp(
  options: Partial<RequireEntitlementOptions>,
  explain: EntitlementPort['explain'] = async () => DENIED,
  clock: Clock = systemClock,
) {
  const failures: unknown[][] = []
  const guard = createRequireEntitlement({
    explain,
    clock,
    onPurchaseUrlFailed: (...failure) => failures.push(failure),
  })({ businessUid: (req) => req.headers['x-business'], ...options })
  const server = createServer((req, res) => {
    void guard(req, res, (error) => void res.writeHead(error ? 500 : 200).end())
  })
  const get = (business: string, accept = 'application/json') =>
    request(server).get('/').set({ 'x-business': business, accept })
  return { get, failures }
}
