import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, describe, expect, it } from '@jest/globals'
import { type Context, context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api'
import createDebug from 'debug'
import express from 'express'
import { createMarketplace, MarketplaceError } from '../../lib/index.js'
import { createPlatformClient } from '../../lib/platform/client.js'
import { createHttp } from '../../lib/platform/http.js'
import { appToken } from '../../lib/platform/token.js'
import { PLATFORM_DEFAULTS } from '../support/defaults.js'
import { internals } from '../support/internals.js'

const CLIENT_SECRET = 'canary-client-7Hq2'
const TOKEN = 'canary-token-9Zx4'
const DELIVERY_SECRET = 'canary-delivery-Jw83nfQz17Lk'
const CANARY = /canary-/

const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

describe('secrets', () => {
  it.each([
    ['a refused token', (res: ServerResponse) => res.writeHead(403).end(`{"error":"no ${CLIENT_SECRET}"}`)],
    ['an invalid client', (res: ServerResponse) => res.writeHead(401).end('{"error":"invalid_client"}')],
    ['a redirect', (res: ServerResponse) => res.writeHead(302, { location: `/x?${CLIENT_SECRET}` }).end()],
    ['a reset connection', (res: ServerResponse) => res.socket?.destroy()],
    ['a page', (res: ServerResponse) => res.end(`<p>${CLIENT_SECRET}</p>`)],
    ['a token that works', (res: ServerResponse) => res.end(JSON.stringify({ access_token: TOKEN }))],
  ])(
    'L1, L4, L5, L6 appear in no log, reply, decision, health, journal or database file with %s',
    async (_name, answer) => {
      const lines = captureDebug()
      const platform = await serve((_req, res) => {
        if (_req.url?.startsWith('/oauth/token')) return answer(res)
        return res.writeHead(500).end(`echo ${_req.headers.authorization}`)
      })
      const folder = mkdtempSync(join(tmpdir(), 'marketplace-secrets-'))
      cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
      const marketplace = createMarketplace({
        app: { clientId: 'client', clientSecret: CLIENT_SECRET, purchasableUid: 'p1' },
        platform: { baseUrl: platform, authUrl: platform },
        ...internals({ callTimeoutMs: 500 }),
        deliverySecrets: DELIVERY_SECRET,
        store: `sqlite:${join(folder, 'm.db')}`,
        closeTimeoutMs: 500,
      })
      cleanUps.push(() => marketplace.close())
      const app = await serve(express().use('/hooks', marketplace.router))

      const replies: unknown[] = []
      for (const [path, init] of [
        [DELIVERY_SECRET, { method: 'POST', body: notice() }],
        [DELIVERY_SECRET, { method: 'POST', body: '{' }],
        [DELIVERY_SECRET, { method: 'GET' }],
        [`${DELIVERY_SECRET}x`, { method: 'POST', body: notice() }],
      ] as const) {
        const reply = await fetch(`${app}/hooks/${path}`, init)
        replies.push(reply.status, Object.fromEntries(reply.headers), await reply.text())
      }
      const shown = [
        replies,
        await marketplace.businesses.refresh('b1'),
        await marketplace.explain('b1'),
        await marketplace.health(),
        await marketplace.journal.list(),
        inspect(marketplace, { depth: 8 }),
        lines,
      ]
      expect(replies[0]).toBe(200)
      expect(inspect(shown, { depth: Number.POSITIVE_INFINITY })).not.toMatch(CANARY)
      for (const file of readdirSync(folder)) {
        expect(readFileSync(join(folder, file), 'latin1')).not.toMatch(CANARY)
      }
      await marketplace.close()
    },
  )

  it('L2 appear in no error of the platform client, at any depth', async () => {
    const closed = await serve((_req, res) => res.end())
    await cleanUps.pop()?.()
    const client = createPlatformClient({
      ...PLATFORM_DEFAULTS,
      baseUrl: closed,
      authUrl: closed,
      clientId: 'client',
      clientSecret: CLIENT_SECRET,
    })
    const error = await client
      .registerWebhook({
        event: 'e',
        targetUrl: `https://app.example/${DELIVERY_SECRET}`,
        token: appToken(TOKEN),
        accepts: () => ['app'],
      })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MarketplaceError)
    expect((error as Error).message).toContain('ECONNREFUSED')
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toMatch(CANARY)
  })

  it('L2 appear in no error when fetch itself quotes the address', async () => {
    const quoting = async (url: unknown) => {
      const cause = new TypeError(`Invalid URL ${url}`)
      throw new TypeError(`Failed to parse URL from ${url}`, { cause })
    }
    const { send } = createHttp({ ...PLATFORM_DEFAULTS, fetch: quoting as typeof fetch })
    const error = await send({
      method: 'POST',
      url: new URL(`http://x/?client_secret=${CLIENT_SECRET}`),
    }).catch((thrown: unknown) => thrown)
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toMatch(CANARY)
  })

  it('L3 are in no address that a tracer may record: only the token call suppresses tracing', async () => {
    const storage = new AsyncLocalStorage<Context>()
    context.setGlobalContextManager({
      active: () => storage.getStore() ?? ROOT_CONTEXT,
      with: (current, call, self, ...args) => storage.run(current, () => call.apply(self as never, args)),
      bind: (_context, target) => target,
      enable: () => context as never,
      disable: () => context as never,
    })
    cleanUps.push(() => context.disable())
    const calls: object[] = []
    const key = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
    const recording: typeof fetch = async (input) => {
      const { pathname } = new URL(String(input))
      calls.push({ pathname, isSuppressed: context.active().getValue(key) === true })
      return new Response(JSON.stringify({ access_token: TOKEN, data: { subscriptions: [] } }))
    }
    const origin = 'http://platform.example'
    const app = { clientId: 'client', clientSecret: CLIENT_SECRET }
    const client = createPlatformClient({
      ...PLATFORM_DEFAULTS,
      ...app,
      baseUrl: origin,
      authUrl: origin,
      fetch: recording,
    })
    expect(await client.readSubscription({ subscriptionUid: 's1', businessUid: 'b1' })).toEqual({
      kind: 'missing',
    })
    expect(calls).toEqual([
      { pathname: '/oauth/token', isSuppressed: true },
      { pathname: '/business/subscriptionsmng/v1/subscriptions', isSuppressed: false },
    ])
  })

  it('L2 appear in no result when an address cannot be parsed', async () => {
    const broken = `http://[${CLIENT_SECRET}`
    const app = { clientId: 'client', clientSecret: CLIENT_SECRET }
    const client = createPlatformClient({ ...PLATFORM_DEFAULTS, ...app, baseUrl: broken, authUrl: broken })
    const result = await client.readSubscription({ subscriptionUid: 's1', businessUid: 'b1' })
    expect(result).toEqual({ kind: 'outage', code: 'config_invalid' })
    const error = await client
      .registerWebhook({
        event: 'e',
        targetUrl: `https://app.example/${DELIVERY_SECRET}`,
        token: appToken(TOKEN),
        accepts: () => ['app'],
      })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MarketplaceError)
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toMatch(CANARY)
  })

  it('L2 appear in no fault of the options', () => {
    const build = () =>
      createMarketplace({
        app: { clientId: '', clientSecret: CLIENT_SECRET },
        platform: { baseUrl: `https://user:${CLIENT_SECRET}@x`, authUrl: `ftp://${CLIENT_SECRET}` },
        deliverySecrets: ['canary-', 'canary-password'],
        store: `postgres://user:${CLIENT_SECRET}@host/db`,
      })
    expect(build).toThrow(/clientId.*baseUrl.*authUrl.*deliverySecrets/s)
    try {
      build()
    } catch (error) {
      expect(inspect(error, { depth: Number.POSITIVE_INFINITY })).not.toMatch(CANARY)
    }
  })
})

/** Every debug line from here on, with all areas switched on. */
function captureDebug(): string[] {
  const lines: string[] = []
  const { log } = createDebug
  createDebug.enable('marketplace-webhooks:*')
  createDebug.log = (...args: unknown[]) => lines.push(inspect(args))
  cleanUps.push(() => {
    createDebug.log = log
    createDebug.disable()
  })
  return lines
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(resolve)
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function notice(): string {
  return JSON.stringify({
    entity_name: 'purchasable_subscription',
    event_type: 'created',
    data: { business_id: 'b1', purchasable_uid: 'p1', subscription_uid: 's1' },
  })
}
