import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { sampleDelivery } from '../../lib/testing/index.js'
import { forWholeFile } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { notice } from '../support/events.js'
import { quietWarnings } from '../support/output.js'
import { jsonLines, runCli, runCliHere, settingsFor } from '../support/processes/cli.js'
import {
  createScene,
  DELIVERY_SECRET,
  OUR_ITEM,
  openMarketplace,
  serve,
  startPlatform,
} from '../support/scene.js'
import { until } from '../support/until.js'

interface Finding {
  status: string
  text: string
  fix?: string
}

describe('doctor', () => {
  const engine = useEngine('PostgreSQL')

  it('finds no problem beside a running app, and delivers through its public address', async () => {
    const { env, url, marketplace } = await app()
    // The app writes counts every few seconds.
    await marketplace.webhooks.check()
    const args = ['doctor', '--public-url', `${url}/hooks`]
    const { code, checks } = await examine(args, env)
    expect(statusOf(checks)).toEqual({
      settings: 'ok',
      host: 'ok',
      store: 'ok',
      events: 'warning',
      items: 'ok',
      handlers: 'ok',
      token: 'ok',
      clock: 'ok',
      read: 'ok',
      // The address is http, not https.
      delivery: 'warning',
    })
    expect(code).toBe(0)
    expect(checks.events?.text).toContain('application/uninstalled')
    expect(checks.read?.text).toContain('the platform shows s1: purchased')
    expect(await marketplace.journal.list({ kind: 'unrecognised' })).toHaveLength(1)

    const text = await runCli(args, { env })
    expect(text.code).toBe(0)
    expect(text.stdout).toMatch(/^ok +settings +complete$/m)
    expect(text.stdout).toMatch(/^ {19}Fix: Serve the app over https/m)
    expect(Math.max(...text.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(text.stdout + text.stderr).not.toContain(DELIVERY_SECRET)
  })

  let running: Awaited<ReturnType<typeof app>>
  beforeAll(async () => {
    running = await forWholeFile(app)
  })
  it.each([
    [
      'a client secret that is wrong',
      { MARKETPLACE_CLIENT_SECRET: 'another-secret' },
      'token',
      'failed',
      'app.clientSecret',
    ],
    [
      'a business that does not have the app',
      {},
      'token',
      'failed',
      'installed the app',
      ['--business', 'b-none'],
    ],
    [
      'a subscription that is not there',
      {},
      'read',
      'failed',
      'platform_record_missing',
      ['--business', 'b1', '--subscription', 's-none'],
    ],
    ['another delivery secret', { DELIVERY_SECRETS: 'Zt4bYs8wLr2nXk6mQj9d' }, 'delivery', 'failed', '404'],
    ['no item', { MARKETPLACE_PURCHASABLE_UID: '' }, 'settings', 'warning', 'app.purchasableUid is not set'],
    [
      'a database that is down',
      { MARKETPLACE_STORE: 'postgres://127.0.0.1:1/none' },
      'store',
      'failed',
      'Cannot',
    ],
    ['the wrong path', { PATH_OF_ROUTER: '/elsewhere' }, 'delivery', 'failed', 'mount address'],
    [
      'a platform that is not there',
      { MARKETPLACE_AUTH_URL: 'http://127.0.0.1:1' },
      'host',
      'failed',
      '127.0.0.1:1 of MARKETPLACE_AUTH_URL does not answer',
    ],
    [
      'an item that nobody has bought',
      { MARKETPLACE_PURCHASABLE_UID: 'misspelt' },
      'items',
      'failed',
      "none of the app's",
    ],
  ])('finds %s', async (_what, wrong, check, status, text, more: string[] = []) => {
    const { env, url } = running
    const { PATH_OF_ROUTER: path = '/hooks', ...changed } = wrong as Record<string, string>
    const args = ['doctor', '--public-url', `${url}${path}`, ...more]
    const { code, checks } = await examine(args, { ...env, ...changed })
    expect(checks[check]).toMatchObject({ status, text: expect.stringContaining(text) })
    if (status === 'failed') expect(checks[check]?.fix).toMatch(/\S/)
    expect(code).toBe(status === 'failed' ? 1 : 0)
    // Without a token the platform would refuse a read too, for the same cause.
    if (check === 'token' || check === 'host') expect(checks.read?.status).toBe('skipped')
    // A warning does not end the examination.
    if (check === 'settings') expect(checks.read?.status).toBe('ok')
  })

  it.each([
    [307, {}, 'a redirect', 'after the redirect'],
    [503, { code: 'store_unavailable' }, 'the reply was 503 store_unavailable', 'the health() of the app'],
    [501, {}, 'the reply was 501, but not from this package', 'A proxy or another program'],
    [403, {}, 'the reply was 403', 'A proxy or firewall'],
    [204, {}, 'the reply was 204', 'A proxy or firewall'],
    [200, { id: 'of-another-program' }, 'not from this package', 'Another program'],
    [200, { received: true }, 'not from this package', 'Another program'],
  ])('finds what is wrong behind the public address: %i %j', async (status, body, text, fix) => {
    const url = await serve((_req, res) => {
      res.writeHead(status, { location: '/elsewhere' }).end(status === 204 ? '' : JSON.stringify(body))
    })
    const { checks } = await examine(['doctor', '--public-url', `${url}/hooks`], {
      ...running.env,
      MARKETPLACE_STORE: 'sqlite:none.db',
    })
    expect(checks.delivery).toEqual({
      check: 'delivery',
      status: 'failed',
      text: expect.stringContaining(text),
      fix: expect.stringContaining(fix),
    })
  })

  it('says that it could not look for the delivery if the database does not open', async () => {
    const url = await serve((_req, res) => void res.end('{"received":true,"id":"e1"}'))
    const { code, checks } = await examine(['doctor', '--public-url', `${url}/hooks`], {
      ...running.env,
      MARKETPLACE_STORE: 'sqlite:none.db',
    })
    expect(code).toBe(1)
    expect(checks.delivery).toMatchObject({
      status: 'ok',
      text: expect.stringMatching(/accepted it .* as e1; its database was not checked/),
    })
  })

  it('warns of a handler that fails, with the error of its newest entry', async () => {
    const { env, marketplace, deliver } = await app({ handlers: { retryDelaysMs: [] } })
    quietWarnings()
    marketplace.on('application/installed', () => {
      throw new Error('says-no')
    })
    await deliver(sampleDelivery('application/installed'))
    await until('it is dead', async () => (await marketplace.journal.list({ status: 'dead' })).length > 0)
    const { code, checks } = await examine(['doctor'], env)
    expect(checks.handlers).toMatchObject({
      status: 'warning',
      text: expect.stringMatching(/on every try; the newest: application\/installed .*: Error: says-no$/),
      fix: expect.stringContaining('journal replay --dead --wait'),
    })
    expect(code).toBe(0)
  })

  it('reads a subscription of the given business, else one that is purchased', async () => {
    const { env, platform, marketplace } = await app()
    platform.purchase({ business_uid: 'a-late', payment: 'failed', subscription_uid: 'a-first' })
    await platform.settled()
    await marketplace.settled()
    const any = await examine(['doctor'], env)
    expect([any.checks.token?.text, any.checks.read?.text]).toEqual([
      'the platform issued a token for b1',
      'the platform shows s1: purchased',
    ])
    const named = await examine(['doctor', '--business', 'a-late'], env)
    expect([named.checks.token?.text, named.checks.read?.text]).toEqual([
      'the platform issued a token for a-late',
      'the platform shows a-first: suspended, not_purchased',
    ])
  })

  it('reads one that was read before and is still shown, not one that somebody made up or that is gone', async () => {
    const { env, platform, marketplace, deliver } = await app()
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', subscription_uid: 's0-gone' })
    await platform.settled()
    await marketplace.settled()
    platform.paymentIssue('s1')
    await platform.settled()
    await deliver(notice('b1', 's0-a-made-up'))
    await marketplace.settled()
    const { sql, store } = await openStoreWithSql(env.MARKETPLACE_STORE as string)
    await sql(`update subscriptions set gone = 'missing', state = null where subscription_uid = 's0-gone'`)
    await store.close()
    const listed = await marketplace.subscriptions.list()
    expect(listed.map((each) => [each.subscription_uid, each.readAt !== null, each.gone])).toEqual([
      ['s0-a-made-up', false, null],
      ['s0-gone', true, 'missing'],
      ['s1', true, null],
    ])
    const { code, checks } = await examine(['doctor'], env)
    expect([code, checks.read]).toMatchObject([
      0,
      { status: 'ok', text: 'the platform shows s1: suspended, not_purchased' },
    ])
  })

  it('finds a different database behind the public address', async () => {
    const { platform, url, env } = await app()
    const other = { ...env, MARKETPLACE_STORE: await engine.freshAddress() }
    const elsewhere = openMarketplace(platform, { store: other.MARKETPLACE_STORE })
    await elsewhere.start()
    const { code, checks } = await examine(['doctor', '--public-url', `${url}/hooks`], other)
    expect(checks.delivery).toMatchObject({
      status: 'failed',
      fix: expect.stringContaining('another database'),
    })
    expect(code).toBe(1)
  })

  it('finds a misspelt item before anything was read, by the events of the journal', async () => {
    const store = await engine.freshAddress()
    const { platform, deliver } = await createScene({ store, app: { purchasableUid: 'misspelt' } })
    await deliver(notice('b2', 's2'))
    const env = { ...settingsFor(platform, store), MARKETPLACE_PURCHASABLE_UID: 'misspelt' }
    const { code, checks } = await examine(['doctor'], env)
    expect(checks.items).toMatchObject({
      status: 'failed',
      text: expect.stringContaining(`another item ("${OUR_ITEM}") and none of the app's ("misspelt")`),
      fix: expect.stringContaining('MARKETPLACE_PURCHASABLE_UID'),
    })
    expect(code).toBe(1)
  })

  it('tests the address of the platform before it says that the database is of another app', async () => {
    const { env } = running
    const silent = await examine(['doctor'], { ...env, MARKETPLACE_BASE_URL: 'http://127.0.0.1:1' })
    expect(silent.checks.store).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('another app'),
      fix: expect.stringContaining('Correct the address of the platform first'),
    })
    const elsewhere = await serve((_req, res) => void res.writeHead(404).end())
    const answering = await examine(['doctor'], { ...env, MARKETPLACE_BASE_URL: elsewhere })
    expect(answering.checks).toMatchObject({
      host: { status: 'ok' },
      store: { status: 'failed', fix: expect.stringContaining('check MARKETPLACE_STORE') },
    })
  })

  it('warns of an address of the platform whose reply is an error of its own', async () => {
    const broken = await serve((_req, res) => void res.writeHead(503).end())
    const { checks } = await examine(['doctor'], { ...running.env, MARKETPLACE_AUTH_URL: broken })
    expect(checks.host).toMatchObject({
      status: 'warning',
      text: `${new URL(broken).host} of MARKETPLACE_AUTH_URL answers with 503`,
      fix: 'Try again later, or check the address.',
    })
    expect(checks.token).toMatchObject({ status: 'failed' })
  })

  it('asks for a token of the last business that has the app by the journal, if none has bought it', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    await marketplace.start()
    platform.install('b-old')
    platform.install('b-has-it')
    platform.install('b-gone')
    platform.uninstall('b-gone')
    await platform.settled()
    await marketplace.settled()
    const { checks } = await examine(['doctor'], settingsFor(platform, store))
    expect(checks).toMatchObject({
      items: { status: 'skipped' },
      token: { status: 'ok', text: 'the platform issued a token for b-has-it' },
      read: { status: 'skipped' },
    })
  })

  it.each([
    [-3_600, 'failed', /3(59|60)\d s behind/],
    [-15, 'ok', /1[4-6] s behind/],
    [15, 'ok', /1[4-6] s ahead of/],
    [60, 'failed', /(59|60|61) s ahead of/],
  ])('judges the clock by the Date header of the replies: %i s', async (seconds, status, text) => {
    const { env, platform } = running
    const elsewhen = await serve((req, res) => forward(req, res, { base: platform.authUrl, seconds }))
    const { code, checks } = await examine(['doctor'], { ...env, MARKETPLACE_AUTH_URL: elsewhen })
    expect(checks.token).toMatchObject({ status: 'ok' })
    expect(checks.clock).toMatchObject({ status, text: expect.stringMatching(text) })
    if (status === 'failed') expect(checks.clock?.fix).toContain('NTP')
    expect(code).toBe(status === 'failed' ? 1 : 0)
  })

  it('finds missing rights in PostgreSQL, and prints the SQL that grants them, as migrate does', async () => {
    const { env } = await app()
    const server = engine.server()
    const store = new URL(env.MARKETPLACE_STORE as string)
    await server.sql(`create role poor login password 'canary-poor-7Kq'`)
    const poor = new URL(store)
    poor.username = 'poor'
    poor.password = 'canary-poor-7Kq'
    const asPoor = { ...env, MARKETPLACE_STORE: poor.href }
    const before = await examine(['doctor'], asPoor)
    expect(before.checks.store).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('grant usage'),
    })
    const { code, stdout } = await runCli(['migrate', '--print-grants', 'poor'], { env })
    expect(code).toBe(0)
    await server.sql(stdout, [], store.pathname.slice(1))
    expect((await examine(['doctor'], asPoor)).checks.store).toMatchObject({ status: 'ok' })
  })

  it('skips checks that the settings do not allow, and ends with 1', async () => {
    const { code, checks } = await examine(['doctor'], {})
    expect(code).toBe(1)
    const others = ['host', 'store', 'events', 'items', 'handlers', 'token', 'clock', 'read', 'delivery']
    expect(statusOf(checks)).toEqual({
      settings: 'failed',
      ...Object.fromEntries(others.map((check) => [check, 'skipped'])),
    })
    expect(checks.settings?.text).toContain('MARKETPLACE_CLIENT_ID is not set')
  })

  /** A running app with a subscription that the platform has delivered. */
  async function app(options: Parameters<typeof createScene>[0] = {}) {
    const store = await engine.freshAddress()
    const { platform, marketplace, url, deliver } = await createScene({ store, ...options })
    await marketplace.start()
    platform.install('b1')
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed', subscription_uid: 's1' })
    platform.confirmPayment(uid)
    await platform.settled()
    await until('the subscription is read', () => marketplace.isEntitled('b1'))
    await marketplace.settled()
    return { platform, marketplace, url, deliver, env: settingsFor(platform, store) }
  }
})

describe.each(ENGINE_NAMES)('doctor on %s', (name) => {
  const engine = useEngine(name)

  it('tries a read with the contents of the database', async () => {
    const store = await engine.freshAddress()
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', subscription_uid: 's1' })
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b1' })
    await until('the subscription is read', () => marketplace.isEntitled('b1'))
    await marketplace.close()
    const { code, checks } = await examine(['doctor'], settingsFor(platform, store))
    expect(statusOf(checks)).toMatchObject({
      store: 'ok',
      // It was tracked, so nothing has arrived.
      events: 'skipped',
      token: 'ok',
      clock: 'ok',
      read: 'ok',
      delivery: 'skipped',
    })
    expect(code).toBe(0)
  })
})

async function examine(args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await runCliHere([...args, '--json'], { env })
  const [report] = jsonLines<{ ok: boolean; checks: (Finding & { check: string })[] }>(stdout)
  if (!report) throw new Error(`no report: ${stderr}`)
  expect(report.ok).toBe(code === 0)
  const checks: Record<string, Finding> = Object.fromEntries(report.checks.map((each) => [each.check, each]))
  return { code, checks }
}

function statusOf(checks: Record<string, Finding>): Record<string, string> {
  return Object.fromEntries(Object.entries(checks).map(([check, { status }]) => [check, status]))
}

/** Forwards the request to the real endpoint. The Date of the reply differs by so many seconds. */
function forward(
  req: IncomingMessage,
  res: ServerResponse,
  { base, seconds }: { base: string; seconds: number },
) {
  const on = request(`${base}${req.url}`, { method: req.method as string }, (reply) => {
    res.writeHead(reply.statusCode ?? 500, {
      ...reply.headers,
      date: new Date(Date.now() + seconds * 1_000).toUTCString(),
    })
    reply.pipe(res)
  })
  req.pipe(on)
}
