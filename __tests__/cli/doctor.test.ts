import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { forWholeFile } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { jsonLines, runCli, runCliHere, settingsFor } from '../support/processes/cli.js'
import { createScene, DELIVERY_SECRET, openMarketplace, serve, startPlatform } from '../support/scene.js'
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
      store: 'ok',
      events: 'warning',
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
      'token',
      'failed',
      'Cannot call the platform',
    ],
  ])('finds %s', async (_what, wrong, check, status, text, more: string[] = []) => {
    const { env, url } = running
    const { PATH_OF_ROUTER: path = '/hooks', ...changed } = wrong as Record<string, string>
    const args = ['doctor', '--public-url', `${url}${path}`, ...more]
    const { code, checks } = await examine(args, { ...env, ...changed })
    expect(checks[check]).toMatchObject({ status, text: expect.stringContaining(text) })
    if (status === 'failed') expect(checks[check]?.fix).toMatch(/\S/)
    expect(code).toBe(status === 'failed' ? 1 : 0)
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

  it('finds a wrong clock by the Date header of the replies', async () => {
    const { env, platform } = await app()
    const anHourAgo = await serve((req, res) => forward(req, res, platform.authUrl))
    const { code, checks } = await examine(['doctor'], { ...env, MARKETPLACE_AUTH_URL: anHourAgo })
    expect(checks.token).toMatchObject({ status: 'ok' })
    expect(checks.clock).toMatchObject({ status: 'failed', fix: expect.stringContaining('NTP') })
    expect(checks.clock?.text).toMatch(/3(59|60)\d s behind/)
    expect(code).toBe(1)
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
    expect(checks.settings).toMatchObject({ status: 'failed' })
    expect(checks.settings?.text).toContain('MARKETPLACE_CLIENT_ID is not set')
    expect(checks.read).toMatchObject({ status: 'skipped' })
  })

  /** A running app with a subscription that the platform has delivered. */
  async function app() {
    const store = await engine.freshAddress()
    const { platform, marketplace, url } = await createScene({ store })
    await marketplace.start()
    platform.install('b1')
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed', subscription_uid: 's1' })
    platform.confirmPayment(uid)
    await platform.settled()
    await until('the subscription is read', () => marketplace.isEntitled('b1'))
    await marketplace.settled()
    return { platform, marketplace, url, env: settingsFor(platform, store) }
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

/** Forwards the request to the real endpoint. The Date of the reply is an hour ago. */
function forward(req: IncomingMessage, res: ServerResponse, base: string) {
  const on = request(`${base}${req.url}`, { method: req.method as string }, (reply) => {
    res.writeHead(reply.statusCode ?? 500, {
      ...reply.headers,
      date: new Date(Date.now() - 3_600_000).toUTCString(),
    })
    reply.pipe(res)
  })
  req.pipe(on)
}
