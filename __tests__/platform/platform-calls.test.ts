import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { MarketplaceError } from '../../lib/base/errors.js'
import { createPlatformClient } from '../../lib/platform/client.js'
import { createHttp } from '../../lib/platform/http.js'
import { appToken, businessToken, directoryToken } from '../../lib/platform/token.js'
import { PLATFORM_DEFAULTS } from '../support/defaults.js'
import { type Answer, found, html, json, outage, read, start } from '../support/platform/platform-calls.js'
import { until } from '../support/until.js'

describe('a token endpoint that never answers', () => {
  it('does not delay a caller that aborts, and does not cancel the call for the others', async () => {
    const waiting: ServerResponse[] = []
    const { client, requests } = await start({ token: (_req, res) => waiting.push(res), timeoutMs: 10_000 })
    const controller = new AbortController()
    const request = { subscriptionUid: 's1', businessUid: 'b1' }
    const leaving = client.readSubscription({ ...request, signal: controller.signal })
    const staying = client.readSubscription(request)
    await until('a token is requested', () => waiting.length === 1)
    controller.abort()
    expect(await leaving).toEqual(outage('unreachable'))
    waiting[0]?.end('{"access_token":"late"}')
    expect(await staying).toEqual(found())
    expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })
})

describe('the call of fetch', () => {
  it("ends at the deadline even if the app's own fetch ignores the signal", async () => {
    const { send } = createHttp({ fetch: () => new Promise(() => {}), timeoutMs: 50, clock: systemClock })
    const call = send({ method: 'GET', url: new URL('http://platform.example') })
    await expect(call).rejects.toMatchObject({ code: 'platform_timeout' })
  })

  it('shows no secret in an error when fetch itself quotes the address', async () => {
    const quoting = async (url: unknown) => {
      const cause = new TypeError(`Invalid URL ${url}`)
      throw new TypeError(`Failed to parse URL from ${url}`, { cause })
    }
    const { send } = createHttp({ ...PLATFORM_DEFAULTS, fetch: quoting as typeof fetch })
    const url = new URL('http://x/?client_secret=canary')
    const error = await send({ method: 'POST', url }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MarketplaceError)
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary')
  })

  it('shows no secret in a result when an address cannot be parsed', async () => {
    const broken = 'http://[canary'
    const app = { clientId: 'client', clientSecret: 'canary' }
    const client = createPlatformClient({ ...PLATFORM_DEFAULTS, ...app, baseUrl: broken, authUrl: broken })
    expect(await read(client)).toEqual({ kind: 'outage', code: 'config_invalid' })
    const error = await client.registerWebhook(registration()).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MarketplaceError)
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary')
  })
})

describe('registering a webhook', () => {
  it('makes the call of the interface document', async () => {
    const { client, requests, bodies } = await start()
    await client.registerWebhook(registration())
    expect(requests).toMatchObject([
      {
        method: 'POST',
        path: '/platform/v1/webhook/subscribe',
        query: {},
        authorization: 'Bearer app-token',
        contentType: 'application/json',
      },
    ])
    expect(JSON.parse(bodies[0] as string)).toEqual({
      event: 'e',
      target_url: 'https://app.example/hooks/secret-path',
    })
  })

  it.each([
    ['201', json(201, { id: 1 }), 'created'],
    ['200 without a body', json(200, undefined), 'created'],
    ['422 already exists', json(422, { errors: [{ code: 'x', message: 'Already exists' }] }), 'exists'],
    ['409 already registered', json(409, { error: 'target already registered' }), 'exists'],
    [
      'an error of 200 with already exists',
      json(200, { success: false, errors: [{ message: 'already exists' }] }),
      'exists',
    ],
  ] as [string, Answer, string][])('accepts %s as success', async (_name, answer, status) => {
    const { client } = await start({ register: answer })
    expect(await client.registerWebhook(registration())).toEqual({ status })
  })

  it.each([
    ['401', json(401, { error: 'unauthorized' }), 'platform_refused', /401 \(unauthorized\)/],
    [
      '422',
      json(422, { message: 'target is bad', status: 'Error' }),
      'platform_refused',
      /422 \(target is bad\)/,
    ],
    ['500 with HTML', html(500), 'platform_failing', /answered 500$/],
    ['429', json(429, {}), 'platform_throttled', /429/],
    ['a page with 200', html(200), 'platform_reply_invalid', /answered 200$/],
    [
      'success false with 200',
      json(200, { success: false, errors: [{ code: 'c', message: 'm' }] }),
      'platform_refused',
      /c m/,
    ],
  ] as [string, Answer, string, RegExp][])(
    'rejects %s with a clear error',
    async (_name, answer, code, message) => {
      const { client } = await start({ register: answer })
      await expect(client.registerWebhook(registration())).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      })
    },
  )

  it('shows neither token nor target if the platform quotes them', async () => {
    const quoting = json(400, {
      error: 'app-token cannot register https://app.example/hooks/secret-path for client-secret',
    })
    const { client } = await start({ register: quoting })
    const error = await client.registerWebhook(registration()).catch((thrown: Error) => thrown)
    expect((error as Error).message).not.toMatch(/app-token|secret/)
  })

  it.each([
    ['the path of the target alone', ({ targetUrl }: Sent) => new URL(targetUrl).pathname],
    ['its last segment', ({ targetUrl }: Sent) => targetUrl.split('/').pop()],
    ['the encoded target', ({ targetUrl }: Sent) => encodeURIComponent(targetUrl)],
    ['a token longer than the message', ({ token }: Sent) => token.value],
  ])('shows no part of the target if the platform quotes %s', async (_name, quoted) => {
    const sent = { ...registration(), token: appToken(`secret-${'x'.repeat(900)}`) }
    const { client } = await start({ register: json(400, { error: `bad: ${quoted(sent)}` }) })
    await expect(client.registerWebhook(sent)).rejects.toMatchObject({
      message: 'Cannot register for e: the platform answered 400 (bad: …)',
    })
  })

  it('refuses a token without a usable value before any call', async () => {
    const { client, requests } = await start()
    const forged = { ...registration(), token: { kind: 'app' as const, value: 'a\r\nX: 1' } }
    await expect(client.registerWebhook(forged)).rejects.toMatchObject({ code: 'argument_invalid' })
    expect(requests).toEqual([])
  })

  it('refuses a kind of token that the event does not accept before any call', async () => {
    const { client, requests } = await start()
    for (const [token, given] of [
      [businessToken('business-token'), 'a token of kind business'],
      [Promise.resolve(appToken('a')), 'a promise of one: await it'],
      ['app-token', 'a value that is not a token: pass appToken(value)'],
      [undefined, 'a value that is not a token: pass appToken(value)'],
    ])
      await expect(
        client.registerWebhook({ ...registration(), token: token as never }),
      ).rejects.toMatchObject({
        code: 'token_kind_not_accepted',
        message: `Cannot register for e: it takes a token of kind app, not ${given}`,
      })
    await expect(client.registerWebhook({ ...registration(), event: 'unknown' })).rejects.toMatchObject({
      code: 'event_unknown',
      message: 'Cannot register for unknown: it is not a known event',
    })
    expect(requests).toEqual([])
  })

  it('hides the value of a token from JSON, enumeration and inspect', () => {
    for (const token of [appToken('value-1'), businessToken('value-2'), directoryToken('value-3')]) {
      expect(JSON.stringify(token)).not.toContain('value')
      expect(inspect(token, { showHidden: true })).not.toContain(token.value)
      expect(Object.keys(token)).toEqual(['kind'])
    }
    expect(() => appToken('two\nlines')).toThrow(/one line/)
  })
})

type Sent = { targetUrl: string; token: { value: string } }

function registration() {
  return {
    event: 'e',
    targetUrl: 'https://app.example/hooks/secret-path',
    token: appToken('app-token') as ReturnType<typeof appToken> | ReturnType<typeof businessToken>,
    accepts: (event: string) => (event === 'e' ? (['app'] as const) : undefined),
  }
}
