import { createServer, type IncomingMessage, request } from 'node:http'
import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { CALLS, type CallName, consoleRouter } from '../../lib/console/index.js'
import { createScene, type Scene, serve } from '../support/scene.js'
import { consoleCaller, mountConsole, PEOPLE, type RoleName } from '../support/scenes/console.js'
import { until } from '../support/until.js'

// The types of Express 5 also fit Express 4, as far as this file uses them.
const express4 = require('express-4') as typeof express
const ACTS = namesOf('act')

describe('consoleRouter', () => {
  it('cannot be created without authorize, with a short key, or with invalid limits', async () => {
    const { marketplace } = await createScene({ worker: false })
    const authorize = () => null
    for (const options of [
      undefined,
      {},
      { authorize: PEOPLE.operator },
      { authorize, tokenKey: 'short' },
      { authorize, actionsPerMinute: 0 },
      { authorize, callsPerMinute: 1.5 },
      { authorize, signInUrl: 'javascript:alert(1)' },
      { authorize, signInUrl: '//other.example' },
      { authorize, lookup: 'names' },
    ])
      expect(() => consoleRouter(marketplace, options as never)).toThrow(/Cannot create the console/)
  })

  const nobody: Record<string, () => unknown> = {
    null: () => null,
    undefined: () => undefined,
    true: () => true,
    'a name without a role': () => ({ name: 'sue' }),
    'a role that does not exist': () => ({ name: 'sue', role: 'admin' }),
    'a role of an object': () => ({ name: 'sue', role: 'constructor' }),
    'an empty name': () => ({ name: ' ', role: 'operator' }),
    'a rejection': () => Promise.reject(new Error('the session store is down')),
  }
  for (const [what, authorize] of Object.entries(nobody)) {
    it(`denies the page and every call when authorize answers ${what}`, async () => {
      const { url } = await stage({ authorize })
      expect((await fetch(`${url}/`)).status).toBe(401)
      for (const [name, { kind }] of Object.entries(CALLS)) {
        const reply = await fetch(`${url}/call/${name}`, { method: kind === 'act' ? 'POST' : 'GET' })
        expect({ name, status: reply.status }).toEqual({ name, status: 401 })
      }
    })
  }

  it('links to the address where people sign in, from a page with a landmark that fits a phone', async () => {
    const { url } = await stage({ authorize: () => null, signInUrl: '/in?a=1&b="2"' })
    const page = await (await fetch(`${url}/`)).text()
    expect(page).toMatch(/<meta name="viewport" .*<main><h1>.*<\/main>/)
    expect(page).toContain('<a href="/in?a=1&#38;b=&#34;2&#34;">Sign in</a>')
  })

  it('says that the lookup of the app failed, and takes nobody for unknown', async () => {
    for (const lookup of [() => Promise.reject(new Error('no network')), () => [{}], () => ({})]) {
      const { url } = await stage({ lookup })
      const { status, body } = await consoleCaller(url, 'support').read('search', { q: 'Bakery Lindt' })
      expect([status, body]).toMatchObject([200, { isKnown: false, hasLookupFailed: true }])
      expect(JSON.stringify(body)).not.toContain('network')
    }
  })

  it('denies access when authorize throws synchronously', async () => {
    const { url } = await stage({
      authorize: () => {
        throw new Error('no session')
      },
    })
    expect((await fetch(`${url}/`)).status).toBe(401)
  })

  for (const [name, { kind, role }] of Object.entries(CALLS)) {
    it(`answers ${name} only to ${role} and up, by ${kind === 'act' ? 'POST' : 'GET'} only`, async () => {
      const { url } = await stage()
      for (const person of ['support', 'operator'] as const) {
        const caller = consoleCaller(url, person)
        const { status, body } = kind === 'act' ? await caller.act(name, {}) : await caller.read(name)
        const may = role === 'support' || person === 'operator'
        expect({ person, isRefused: body.code === 'role_missing' }).toEqual({ person, isRefused: !may })
        if (!may) expect(status).toBe(403)
        const headers = { 'x-person': person, 'content-type': 'application/json' }
        const method = kind === 'act' ? 'GET' : 'POST'
        const other = await fetch(`${url}/call/${name}`, { method, headers })
        expect([other.status, other.headers.get('allow')]).toEqual([405, kind === 'act' ? 'POST' : 'GET'])
      }
    })
  }

  it('shows at most 50 subscriptions of a decision', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const [decision, one] = [await marketplace.explain('b'), { subscription_uid: 's', reason: 'ended' }]
    const many = { ...decision, subscriptions: Array(60).fill(one) }
    mountConsole(app, { ...marketplace, explain: async () => many })
    const { body } = await consoleCaller(`${url}/ops`, 'support').read('business', { business_uid: 'b' })
    expect(body.decision.subscriptions).toHaveLength(50)
  })

  it('identifies groups of failures by its key, so that nobody can guess their texts', async () => {
    const { marketplace, app, url, deliver } = await createScene({ handlers: { retryDelaysMs: [] } })
    marketplace.onUnrecognised(() => {
      throw new Error('a secret text')
    })
    await deliver({ any: 'thing' })
    await until('it is dead', async () => (await marketplace.health()).counts?.dead === 1)
    const keys: string[] = []
    for (const [path, tokenKey] of Object.entries({ '/a': KEY, '/b': KEY, '/c': `${KEY}!` })) {
      mountConsole(app, marketplace, { path, tokenKey })
      const { body } = await consoleCaller(`${url}${path}`, 'support').read('attention')
      keys.push(body.groups[0].key)
    }
    expect([keys[0] === keys[1], keys[0] === keys[2]]).toEqual([true, false])
  })

  it('tracks with or without an announcement, as asked', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const asked: unknown[] = []
    const track = async (_of: unknown, options: unknown) => void asked.push(options)
    const look = async () => ({ record: null, failure: null })
    mountConsole(app, { ...marketplace, subscriptions: { ...marketplace.subscriptions, look, track } })
    const operator = consoleCaller(`${url}/ops`, 'operator')
    const input = { business_uid: 'b', subscription_uid: 's' }
    for (const more of [{}, { announce: false }]) await operator.act('track', { ...input, ...more })
    expect(asked).toEqual([{ announce: true }, { announce: false }])
  })

  it('has no other calls', async () => {
    const { operator } = await stage()
    for (const name of ['constructor', '__proto__', 'toString', 'targetUrl', 'backup', 'close'])
      expect([name, (await operator.read(name)).status]).toEqual([name, 404])
  })

  describe('an action', () => {
    it('needs the token of the person who acts', async () => {
      const { url, operator, support } = await stage()
      const { token } = (await support.read('session')).body
      for (const wrong of ['', 'x', token, `${token}x`]) {
        const { status, body } = await operator.act(
          'refresh',
          { business_uid: 'b' },
          { 'x-console-token': wrong },
        )
        expect([status, body.code]).toEqual([403, 'token_invalid'])
      }
      expect((await operator.act('refresh', { business_uid: 'b' })).status).toBe(200)
      expect(url).toContain('/ops')
    })

    it('L28 refuses the token of another person of the same role', async () => {
      const { app, marketplace, url, platform } = await createScene()
      const authorize = ({ headers }: IncomingMessage) => ({ name: headers['x-person'], role: 'operator' })
      mountConsole(app, marketplace, { authorize })
      platform.install('business-1')
      await platform.settled()
      const tokenOf = async (name: string) => {
        const reply = await fetch(`${url}/ops/call/session`, { headers: { 'x-person': name } })
        return ((await reply.json()) as { token: string }).token
      }
      const erase = async (name: string, token: string) => {
        const headers = { 'x-person': name, 'x-console-token': token, 'content-type': 'application/json' }
        const body = JSON.stringify({ business_uid: 'business-1', typed: 'business-1', reason: 'test' })
        return (await fetch(`${url}/ops/call/erase`, { method: 'POST', headers, body })).status
      }
      expect(await erase('ada', await tokenOf('bob'))).toBe(403)
      expect(await marketplace.businesses.history('business-1')).not.toEqual([])
      expect(await erase('ada', await tokenOf('ada'))).toBe(200)
    })

    it('accepts the token of another instance with the same tokenKey, and no other', async () => {
      const { app, marketplace, url } = await createScene({ worker: false })
      for (const [path, tokenKey] of [
        ['/a', KEY],
        ['/b', KEY],
        ['/c', `${KEY}!`],
        ['/d', undefined],
      ] as const)
        mountConsole(app, marketplace, { path, tokenKey })
      const { token } = (await consoleCaller(`${url}/a`, 'operator').read('session')).body
      const statuses = ['/a', '/b', '/c', '/d'].map(async (path) => {
        const caller = consoleCaller(`${url}${path}`, 'operator')
        return (await caller.act('refresh', { business_uid: 'b' }, { 'x-console-token': token })).status
      })
      expect(await Promise.all(statuses)).toEqual([200, 200, 403, 403])
    })

    it('is refused from another site, like a read', async () => {
      const { url, operator } = await stage()
      for (const site of ['cross-site', 'same-site', 'none']) {
        const { status } = await operator.act('refresh', { business_uid: 'b' }, { 'sec-fetch-site': site })
        expect([site, status]).toEqual([site, 403])
        const headers = { 'x-person': 'operator', 'sec-fetch-site': site }
        expect((await fetch(`${url}/call/session`, { headers })).status).toBe(403)
      }
      const bare = { 'sec-fetch-site': '' }
      expect((await operator.act('refresh', { business_uid: 'b' }, bare)).status).toBe(403)
    })

    it('accepts JSON of at most 16 KiB, and explains each refusal', async () => {
      const { operator } = await stage()
      const wrong: [input: unknown, status: number, code: string, headers?: Record<string, string>][] = [
        ['{', 400, 'body_not_json'],
        ['[]', 400, 'body_not_json'],
        ['null', 400, 'body_not_json'],
        ['{}', 415, 'content_type_unsupported', { 'content-type': 'text/plain' }],
        [{ business_uid: 'b', reason: 'x'.repeat(17_000) }, 413, 'body_too_large'],
        [{ business_uid: 'b', role: 'operator' }, 400, 'argument_invalid'],
        [{ business_uid: '' }, 400, 'argument_invalid'],
        [{}, 400, 'argument_invalid'],
      ]
      for (const [input, status, code, headers] of wrong) {
        const reply = await operator.act('refresh', input, headers)
        expect([input, reply.status, reply.body.code]).toEqual([input, status, code])
      }
      for (const [bytes, status] of [
        [16_384, 200],
        [16_385, 413],
      ] as const)
        expect((await operator.act('refresh', '{"business_uid":"b"}'.padEnd(bytes))).status).toBe(status)
    })

    it('is cut off at the size limit, even without a content length', async () => {
      const { url, operator } = await stage()
      const { token } = (await operator.read('session')).body
      const headers = { 'x-person': 'operator', 'x-console-token': token, 'content-type': 'application/json' }
      const status = await new Promise((resolve, reject) => {
        const req = request(`${url}/call/refresh`, { method: 'POST', headers }, (res) =>
          resolve(res.statusCode),
        )
        req.on('error', reject)
        req.write(`{"business_uid":"${'x'.repeat(20_000)}`)
      })
      expect(status).toBe(413)
    })

    it('is limited per person', async () => {
      const { operator, support } = await stage({ actionsPerMinute: 2 })
      const input = { business_uid: 'b' }
      const statuses = []
      for (let n = 0; n < 3; n++) statuses.push((await operator.act('refresh', input)).status)
      expect(statuses).toEqual([200, 200, 429])
      expect((await operator.act('refresh', input)).headers.get('retry-after')).toBe('10')
      expect((await support.act('refresh', input)).status).toBe(200)
      expect((await operator.read('health')).status).toBe(200)
    })

    for (const name of ACTS) {
      it(`records who did ${name}, to which target, and why`, async () => {
        const { operator, marketplace, platform, entryId } = await stage()
        const bought = { business_uid: 'business-1', subscription_uid: 'subscription-1' }
        platform.purchase({ ...bought, payment: 'succeeded' })
        const inputs: Record<string, object> = {
          refresh: { business_uid: 'business-1' },
          track: bought,
          replay: { entryId },
          export: { business_uid: 'business-1' },
          erase: { business_uid: 'business-1', typed: 'business-1' },
        }
        const { status, body } = await operator.act(name, { ...inputs[name], reason: 'ticket 812' })
        expect({ body, status }).toMatchObject({ status: 200 })
        const actions = await marketplace.journal.list({ kind: 'action' })
        const recorded = actions.find(({ payload }) => JSON.stringify(payload).includes('ticket 812'))
        expect(recorded?.payload).toMatchObject({ actor: 'otto@example.com (operator)' })
        const about = JSON.stringify(recorded)
        const expected = name === 'replay' ? entryId : name === 'erase' ? body.auditUid : 'business-1'
        expect(about).toContain(expected)
        expect(recorded?.name).toBe(name)
        expect(recorded?.subscription_uid).toBe(name === 'track' ? 'subscription-1' : null)
      })
    }
  })

  it('erases only the typed identifier, and replays several only with a reason', async () => {
    const { operator, marketplace } = await stage()
    const slip = { business_uid: 'business-1', typed: 'business-2', reason: 'slip' }
    expect((await operator.act('erase', slip)).body.code).toBe('typed_wrong')
    expect((await operator.act('erase', { business_uid: 'business-1', typed: 'business-1' })).status).toBe(
      400,
    )
    expect((await operator.act('replay', { status: 'dead' })).body.code).toBe('reason_missing')
    expect((await operator.act('replay', { status: 'dead', entryId: 'x', reason: 'y' })).status).toBe(400)
    expect((await operator.act('replay', { entryId: 'x', reason: 'y' })).body.code).toBe('entry_gone')
    expect(await marketplace.businesses.history('business-1')).not.toEqual([])
  })

  it('sends every reply with no-store, nosniff, no framing, no index and no share of a window with other origins', async () => {
    const { url } = await stage()
    for (const path of ['/', '/call/session', '/call/nothing', '/elsewhere']) {
      const { headers } = await fetch(`${url}${path}`, { headers: { 'x-person': 'support' } })
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'x-robots-tag': 'noindex',
      })
      const policy = headers.get('content-security-policy')
      for (const name of ['default-src', 'base-uri', 'form-action', 'frame-ancestors'])
        expect(policy).toContain(`${name} 'none'`)
      expect(policy).not.toContain('unsafe')
    }
  })

  it('lets the page run only its own script and style, and make no script of a text', async () => {
    const { url } = await stage()
    const { headers } = await fetch(`${url}/`, { headers: { 'x-person': 'support' } })
    const policy = headers.get('content-security-policy')
    expect(policy).toMatch(/script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; connect-src 'self';/)
    expect(policy).toContain("require-trusted-types-for 'script'")
  })

  it('limits what a person reads in a minute, too', async () => {
    const { operator, support } = await stage({ callsPerMinute: 2 })
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await operator.read('health')).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await operator.read('health')).headers.get('retry-after')).toBe('10')
    expect((await support.read('health')).status).toBe(200)
  })

  for (const [version, framework] of Object.entries({
    4: express4,
    5: express,
  })) {
    it(`works on Express ${version}, deep in routers, and behind parsers of the app`, async () => {
      const { marketplace } = await createScene({ worker: false })
      const inner = framework.Router()
      mountConsole(inner, marketplace, { path: '/ops/console' })
      const app = framework()
        .use(framework.json(), framework.urlencoded({ extended: true }))
        .use('/admin', inner)
      const caller = consoleCaller(`${await serve(app)}/admin/ops/console`, 'operator')
      expect((await caller.read('search', { q: ' b ' })).body).toMatchObject({ business_uid: 'b' })
      expect((await caller.act('refresh', { business_uid: 'b' })).body).toMatchObject({ business_uid: 'b' })
    })
  }

  it('refuses to search a text of more than 1,500 characters, and searches each shorter one', async () => {
    const { support } = await stage()
    // The widest characters in an address.
    const widest = '\u696d'.repeat(1_500)
    expect(await support.read('search', { q: widest })).toMatchObject({
      status: 200,
      body: { isKnown: false },
    })
    expect(await support.read('search', { q: `${widest}x` })).toMatchObject({
      status: 400,
      body: {
        code: 'argument_invalid',
        detail: 'Cannot do this: q: a text to search has at most 1500 characters. Paste only the identifier',
      },
    })
  })

  it('works without a framework', async () => {
    const { marketplace } = await createScene({ worker: false })
    const listener = consoleRouter(marketplace, { authorize: () => PEOPLE.support })
    const url = await serve(createServer(listener).listeners('request')[0] as never)
    expect(await (await fetch(url)).text()).toContain('<title>Console</title>')
    expect((await fetch(`${url}/call/session`)).status).toBe(200)
    const other = await fetch(url, { method: 'DELETE' })
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

const KEY = 'k'.repeat(32)

function namesOf(kind: 'act' | 'read'): CallName[] {
  return Object.entries(CALLS).flatMap(([name, rule]) => (rule.kind === kind ? [name as CallName] : []))
}

type Caller = ReturnType<typeof consoleCaller>

/** A console at /ops, with a business that has installed the app. */
async function stage(
  options: Record<string, unknown> = {},
): Promise<Scene & Record<RoleName, Caller> & { entryId: string }> {
  const scene = await createScene()
  mountConsole(scene.app, scene.marketplace, options)
  const url = `${scene.url}/ops`
  scene.platform.install('business-1')
  await scene.platform.settled()
  const [entry] = await until('the install is stored', () =>
    scene.marketplace.journal.list({ businessUid: 'business-1' }),
  )
  return {
    ...scene,
    url,
    support: consoleCaller(url, 'support'),
    operator: consoleCaller(url, 'operator'),
    entryId: entry?.id ?? '',
  }
}
