import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import createDebug from 'debug'
import express from 'express'
import {
  createMarketplace,
  type Logger,
  type MarketplaceError,
  type MarketplaceOptions,
} from '../../../lib/index.js'
import { appToken } from '../../../lib/platform/token.js'
import { SPANS } from '../../../lib/telemetry/instruments.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { internals } from '../../support/internals.js'
import { serve } from '../../support/scene.js'
import { until } from '../../support/until.js'

/** The test searches for each secret everywhere, as plain text and in base64. */
const SECRETS = {
  'the client secret': 'canary-client-7Hq2',
  'the delivery secret': 'canary-delivery-Jw83nfQz17Lk',
  'a token': 'canary-token-9Zx4',
  'the password of the database': 'canary-password-Lm5R',
}
const [CLIENT_SECRET, DELIVERY_SECRET, TOKEN, PASSWORD] = Object.values(SECRETS) as [
  string,
  string,
  string,
  string,
]
/** The control: no record or event contains it, only the addresses of the reads that this test requests. */
const CONTROL = 'canary-control'

type Answer = (res: ServerResponse, req: IncomingMessage) => unknown

const quote = (req: IncomingMessage) => `${req.url} ${CLIENT_SECRET} ${req.headers.authorization} ${TOKEN}`

/** How the token call of a business with this name ends. Every answer repeats its request. */
const TOKEN_CALL: Record<string, Answer> = {
  refused: (res, req) => res.writeHead(403).end(JSON.stringify({ error: `no: ${quote(req)}` })),
  redirected: (res, req) => res.writeHead(302, { location: `/elsewhere${req.url}` }).end(),
  reset: (res) => res.socket?.resetAndDestroy(),
  page: (res, req) => res.end(`<p>${quote(req)}</p>`),
  failing: (res, req) => res.writeHead(500).end(quote(req)),
  odd: (res) => res.end(JSON.stringify({ access_token: `${TOKEN}\r\nx-more: 1` })),
  cut: (res) => res.writeHead(200, { 'content-length': 99 }).end(`{"access_token":"${TOKEN}`),
  silent: () => {},
}
const READ_CALL: Record<string, Answer> = {
  'read refused': (res, req) => res.writeHead(403).end(JSON.stringify({ message: quote(req) })),
  'read unauthorized': (res, req) => res.writeHead(401).end(JSON.stringify({ error: quote(req) })),
  'read failing': (res, req) => res.writeHead(502).end(quote(req)),
  'read reset': (res) => res.socket?.resetAndDestroy(),
  'read foreign': (res) => res.end(JSON.stringify(recordsOf('somebody else', 's read foreign'))),
}
/** These answers would pause all reads, so only the token calls of these businesses are made. */
const ONLY_TOKEN_CALL: Record<string, Answer> = {
  credentials: (res, req) =>
    res.writeHead(401).end(JSON.stringify({ error: 'invalid_client', error_description: quote(req) })),
  // The last one: no call begins in the pause after it.
  throttled: (res, req) => res.writeHead(429, { 'retry-after': '1' }).end(quote(req)),
}

describe('secrets', () => {
  const seen: Awaited<ReturnType<typeof provokeEverything>>[] = []

  beforeAll(async () => {
    seen.push(await provokeEverything())
  })
  afterAll(() => {
    context.disable()
    trace.disable()
    metrics.disable()
  })

  it('L1 appear in no log line, warning or line on the console', () => {
    const { lines } = seen[0] as (typeof seen)[0]
    expect(lines.some((line) => line.includes('store_unavailable') || line.includes('Cannot'))).toBe(true)
    for (const level of ['debug', 'warn', 'error'])
      expect(lines.some((line) => line.startsWith(`logger.${level} `))).toBe(true)
    expect(leaksIn(lines)).toEqual([])
  })

  it('L2 appear in no error, at any depth', () => {
    const { errors } = seen[0] as (typeof seen)[0]
    // Every failure has caused an error of this package.
    expect(errors.map((error) => (error as MarketplaceError).code)).toEqual(
      expect.arrayContaining([
        'app_credentials_refused',
        'argument_invalid',
        'closed',
        'config_invalid',
        'platform_redirected',
        'platform_refused',
        'platform_reply_invalid',
        'platform_throttled',
        'platform_timeout',
        'platform_unreachable',
        'store_unavailable',
        'token_refused',
        'token_kind_not_accepted',
      ]),
    )
    expect(leaksIn(errors)).toEqual([])
  })

  it('L3 appear in no span of a tracer that records every fetch, and in no metric', () => {
    const { spans, counted, tokenCalls } = seen[0] as (typeof seen)[0]
    const addresses = spans.map(({ attributes }) => String(attributes['url.full']))
    // The control: the tracer records addresses with their queries, those of reads and of another token call.
    expect(addresses.filter((address) => address.includes('filter'))).not.toEqual([])
    expect(addresses.filter((address) => address.includes(CONTROL))).toHaveLength(1)
    expect(tokenCalls.filter((url) => url.includes(CLIENT_SECRET)).length).toBeGreaterThan(8)
    expect(inspect(counted, { depth: null })).toContain('marketplace_webhooks.reads')
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(Object.keys(SPANS).map((name) => `marketplace_webhooks.${name}`)),
    )
    expect(
      leaksIn(spans.filter(({ attributes }) => !String(attributes['url.full']).includes(CONTROL))),
    ).toEqual([])
    expect(leaksIn(counted)).toEqual([])
  })

  it('L4 appear in no reply to any request', () => {
    const { replies } = seen[0] as (typeof seen)[0]
    const statuses = new Set(replies.map(({ status }) => status))
    expect(statuses).toEqual(new Set([200, 400, 401, 402, 403, 404, 405, 408, 413, 415, 500, 503]))
    expect(leaksIn(replies)).toEqual([])
  })

  it('L5, A6 appear in no file of the database, while it is open and afterwards', () => {
    const { files } = seen[0] as (typeof seen)[0]
    expect(Object.keys(files)).toEqual(expect.arrayContaining(['open m.db', 'open m.db-wal', 'closed m.db']))
    // The control: the files contain the deliveries.
    expect(files['open m.db-wal']).toContain('s read failing')
    expect(files['closed m.db']).toContain('s read failing')
    expect(leaksIn(Object.values(files))).toEqual([])
  })

  it('L6 appear in no value that an app receives', () => {
    const { given } = seen[0] as (typeof seen)[0]
    expect(inspect(given, { depth: null })).toContain('purchased')
    expect(leaksIn(given)).toEqual([])
  })
})

/** Runs a marketplace through success and every failure. Returns all of its outputs by their place. */
async function provokeEverything() {
  const lines = captureLines()
  const { spanExporter, metricExporter, flush } = startTelemetry()
  const tokenCalls: string[] = []
  const platform = await serve((req, res) => {
    const url = new URL(String(req.url), 'http://platform.test')
    res.on('error', () => {})
    if (url.pathname === '/oauth/token') {
      tokenCalls.push(url.search)
      const business = String(url.searchParams.get('business_uid'))
      const answer = TOKEN_CALL[business] ?? ONLY_TOKEN_CALL[business]
      return answer ? answer(res, req) : res.end(JSON.stringify({ access_token: TOKEN, expires_in: 3_600 }))
    }
    if (req.method === 'POST') return res.writeHead(400).end(JSON.stringify({ error: quote(req) }))
    const uid = String(url.searchParams.get('filter[uid]'))
    const business = uid.slice(2)
    return READ_CALL[business]?.(res, req) ?? res.end(JSON.stringify(recordsOf(business, uid)))
  })
  const folder = temporaryFolder()
  const options: MarketplaceOptions = {
    app: { clientId: 'client', clientSecret: CLIENT_SECRET, purchasableUid: 'p1' },
    platform: { baseUrl: platform, authUrl: platform },
    reads: { concurrency: 20 },
    ...internals({ pollMs: 50, callTimeoutMs: 250 }),
    deliverySecrets: [DELIVERY_SECRET, 'canary-delivery-Pq61vbXc40Tr'],
    store: `sqlite:${join(folder, 'm.db')}`,
    closeTimeoutMs: 500,
    handlers: { retryDelaysMs: [] },
    freshness: { waitMs: 0 },
    logger: loggerInto(lines),
  }
  const marketplace = createMarketplace(options)
  onCleanUp(() => marketplace.close())
  const given: unknown[] = [marketplace]
  const errors: unknown[] = []
  marketplace.onAny((event, also) => void given.push(event, also))
  marketplace.onUnrecognised((delivery) => void given.push(delivery))
  marketplace.onHandlerError((failure) => void (failure.retryInMs === null && given.push(failure)))
  marketplace.onPurchaseChange((change, also) => {
    given.push(change, also)
    throw new Error('the app cannot')
  })

  // A database that cannot be opened, for its error and its 503.
  const without = createMarketplace({ ...options, store: `sqlite:${join(folder, 'no such folder', 'm.db')}` })
  onCleanUp(() => without.close())
  const slow = createMarketplace({
    ...options,
    store: 'sqlite::memory:',
    ...internals({ bodyTimeoutMs: 50 }),
    verifyDelivery: () => false,
  })
  onCleanUp(() => slow.close())
  const app = express()
    .use('/hooks', marketplace.router)
    .use('/without', without.router)
    .use('/slow', slow.router)
    .use('/read-before', (req, _res, next) => void req.resume().on('end', next), marketplace.router)
    .use('/guarded/:business', marketplace.requireEntitlement({ businessUid: (req) => businessIn(req) }))
    .use('/unknown/:business', without.requireEntitlement({ businessUid: (req) => businessIn(req) }))
    .use('/guarded', (_req, res) => void res.end('the report'))
  const url = await serve(app)

  const businesses = ['good', ...Object.keys(TOKEN_CALL), ...Object.keys(READ_CALL)]
  const replies: { status: number; headers: unknown; text: string }[] = []
  const send = async (path: string, sent: Parameters<typeof exchange>[1] = {}) =>
    replies.push(await exchange(url + path, sent))
  for (const business of businesses) await send(`/hooks/${DELIVERY_SECRET}`, { body: notice(business) })
  await send(`/hooks/${DELIVERY_SECRET}`, { body: '{"entity_name":"unheard of"}' })
  await send(`/hooks/${DELIVERY_SECRET}`, { body: '{' })
  await send(`/hooks/${DELIVERY_SECRET}`, { body: ' '.repeat(70_000) })
  await send(`/hooks/${DELIVERY_SECRET}`, { headers: { 'content-type': 'multipart/x' }, body: 'x' })
  await send(`/hooks/${DELIVERY_SECRET}`, { method: 'GET' })
  await send(`/hooks/${DELIVERY_SECRET}x`, { body: '{}' })
  await send(`/without/${DELIVERY_SECRET}`, { body: '{}' })
  await send(`/slow/${DELIVERY_SECRET}`, { body: '{}' })
  await send(`/slow/${DELIVERY_SECRET}`, { body: ' ', headers: { 'content-length': '9' } })
  await send(`/read-before/${DELIVERY_SECRET}`, { body: '{}' })
  for (const business of businesses) {
    const known = async () => {
      const [subscription] = (await marketplace.explain(business)).subscriptions
      return subscription?.failure || subscription?.pending === false
    }
    await until(`${business} has been read`, known)
    await send(`/guarded/${business}`)
    given.push(await marketplace.explain(business), await marketplace.businesses.refresh(business))
  }
  await send('/unknown/good')
  await send('/guarded/nobody')
  await send(`/guarded/${'x'.repeat(300)}`)

  async function fails(call: () => unknown) {
    try {
      given.push(await call())
    } catch (error) {
      errors.push(error)
    }
  }
  for (const business of [...businesses, ...Object.keys(ONLY_TOKEN_CALL)]) {
    await fails(async () => {
      const token = await marketplace.fetchAppToken(business)
      // Its `value` is the token that the caller requested, but it must not appear where a token is printed.
      return [inspect(token, { depth: null }), JSON.stringify(token), `${token}`]
    })
  }
  const registration = { event: 'application/installed', token: appToken(TOKEN) } as const
  const targetUrl = marketplace.webhooks.targetUrl(`${url}/hooks`)
  await fails(() => marketplace.webhooks.register({ ...registration, targetUrl }))
  await fails(() =>
    marketplace.webhooks.register({
      ...registration,
      targetUrl,
      event: 'app_subscription/installed',
    } as never),
  )
  await fails(() => marketplace.webhooks.targetUrl(`ftp://user:${PASSWORD}@x/${DELIVERY_SECRET}`))
  await fails(() =>
    marketplace.subscriptions.track({ subscriptionUid: `${TOKEN}\0`, businessUid: DELIVERY_SECRET }),
  )
  await fails(() => without.start())
  await fails(() =>
    createMarketplace({ ...options, app: CLIENT_SECRET, deliverySecrets: 'canary-' } as never),
  )
  // A database at an address with a password: refused at once, or when it cannot be reached.
  for (const address of [`postgres://user:${PASSWORD}@127.0.0.1:1/db`, `postgres://user:${PASSWORD}@[/db`]) {
    await fails(async () => {
      const remote = createMarketplace({ ...options, store: address })
      onCleanUp(() => remote.close())
      given.push(remote, await remote.health(), await remote.explain('good'))
      await remote.start()
    })
  }

  await fetch(`${platform}/oauth/token?client_secret=${CONTROL}`, { method: 'POST' }).then((it) => it.text())
  given.push(
    await marketplace.health(),
    await without.health(),
    await without.readiness(),
    await marketplace.webhooks.check(),
    await marketplace.journal.list({ limit: 1_000 }),
  )
  const files: Record<string, string> = filesIn(folder, 'open')
  await marketplace.close()
  await fails(() => marketplace.start())
  Object.assign(files, filesIn(folder, 'closed'))
  await flush()
  return {
    lines,
    errors,
    replies,
    given,
    files,
    tokenCalls,
    spans: spanExporter.getFinishedSpans(),
    counted: metricExporter.getMetrics(),
  }
}

/** This does not use `fetch`, whose spans would contain the addresses of deliveries. */
function exchange(
  url: string,
  {
    method = 'POST',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string },
) {
  return new Promise<{ status: number; headers: unknown; text: string }>((resolve, reject) => {
    const sending = request(url, { method, headers, agent: false }, (res) => {
      let text = ''
      res.on('data', (chunk) => {
        text += chunk
      })
      res.on('end', () => resolve({ status: Number(res.statusCode), headers: res.rawHeaders, text }))
      res.on('error', reject)
    })
    sending.on('error', reject)
    if (headers['content-length']) sending.write(body)
    else sending.end(body)
  })
}

/** The names of the secrets in `values`, with the text around each. */
function leaksIn(values: unknown): string[] {
  const shown = inspect(values, {
    depth: Number.POSITIVE_INFINITY,
    showHidden: true,
    getters: true,
    maxArrayLength: null,
    maxStringLength: null,
    breakLength: Number.POSITIVE_INFINITY,
  })
  const text = [shown, jsonOf(values), ...stacksIn(values)].join('\n')
  return Object.entries(SECRETS).flatMap(([name, secret]) =>
    [secret, Buffer.from(secret).toString('base64').slice(0, -4)].flatMap((form) => {
      const at = text.indexOf(form)
      return at < 0 ? [] : [`${name}: …${text.slice(Math.max(0, at - 80), at + 40)}…`]
    }),
  )
}

function jsonOf(values: unknown): string {
  try {
    return JSON.stringify(values) ?? ''
  } catch {
    return '' // circular
  }
}

/** `inspect` leaves out the stack of an error that has its own `inspect` method. */
function stacksIn(values: unknown): string[] {
  return Array.isArray(values) ? values.map((value) => String((value as Error | undefined)?.stack ?? '')) : []
}

function loggerInto(lines: string[]): Logger {
  const at =
    (level: string) =>
    (...args: unknown[]) =>
      void lines.push(`logger.${level} ${inspect(args, { depth: null })}`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function captureLines(): string[] {
  const lines: string[] = []
  const keep = (...args: unknown[]) => void lines.push(inspect(args, { depth: null }))
  const { log } = createDebug
  createDebug.enable('marketplace-webhooks:*')
  createDebug.log = keep
  const spies = [
    ...(['log', 'info', 'warn', 'error', 'debug'] as const).map((level) =>
      jest.spyOn(console, level).mockImplementation(keep),
    ),
    jest.spyOn(process, 'emitWarning').mockImplementation(keep as typeof process.emitWarning),
  ]
  onCleanUp(() => {
    createDebug.log = log
    createDebug.disable()
    for (const spy of spies) spy.mockRestore()
  })
  return lines
}

/** A tracer that records every span of every fetch, and a meter. */
function startTelemetry() {
  const spanExporter = new InMemorySpanExporter()
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const tracerProvider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: spanExporter })],
  })
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  })
  const meterProvider = new MeterProvider({ readers: [reader] })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(tracerProvider)
  metrics.setGlobalMeterProvider(meterProvider)
  const instrumentation = new UndiciInstrumentation()
  instrumentation.setTracerProvider(tracerProvider)
  instrumentation.enable()
  onCleanUp(() => {
    instrumentation.disable()
    return meterProvider.shutdown()
  })
  return {
    spanExporter,
    metricExporter,
    flush: async () => {
      await tracerProvider.forceFlush()
      await meterProvider.forceFlush()
    },
  }
}

function filesIn(folder: string, when: string): Record<string, string> {
  const files = readdirSync(folder).filter((name) => name.startsWith('m.db'))
  return Object.fromEntries(
    files.map((name) => [`${when} ${name}`, readFileSync(join(folder, name), 'latin1')]),
  )
}

function businessIn(req: { params?: unknown }): string {
  return (req.params as { business: string }).business
}

function recordsOf(business: string, uid: string) {
  const record = { uid, business_uid: business, purchasable_uid: 'p1', purchase_state: 'purchased' }
  return { data: { subscriptions: [record] } }
}

function notice(business: string): string {
  const data = { business_id: business, purchasable_uid: 'p1', subscription_uid: `s ${business}` }
  return JSON.stringify({ entity_name: 'purchasable_subscription', event_type: 'created', data })
}
