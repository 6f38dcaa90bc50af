import { type IncomingHttpHeaders, request } from 'node:http'
import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { CALLS } from '../../lib/console/index.js'
import { createScene, serve } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'

// The types of Express 5 also fit Express 4, as far as this file uses them.
const express4 = require('express-4') as typeof express
const OTHERS = [
  'https://evil.example',
  'null',
  'http://127.0.0.1:1',
  'http://localhost',
  'file://',
  'no address',
]

describe.each(Object.entries({ 4: express4, 5: express }))(
  'the console on Express %s',
  (_version, framework) => {
    it('A46 lets no page of another origin act or read, also if a middleware allows every origin', async () => {
      const { url, marketplace, token } = await stage(framework)
      for (const origin of OTHERS)
        for (const [name, { kind }] of Object.entries(CALLS)) {
          const { status, headers, body } = await call(`${url}/ops/call/${name}`, {
            method: kind === 'act' ? 'POST' : 'GET',
            headers: { origin, 'x-console-token': token },
            body: ERASE,
          })
          expect({ origin, name, status, code: body.code }).toEqual({
            origin,
            name,
            status: 403,
            code: 'other_origin',
          })
          expect(Object.keys(headers).filter((each) => each.startsWith('access-control-'))).toEqual([])
        }
      const page = await call(`${url}/ops/`, { headers: { origin: 'https://evil.example' } })
      expect([page.status, page.headers['access-control-allow-origin']]).toEqual([200, undefined])
      expect(await marketplace.businesses.history('business-1')).not.toEqual([])
    })

    it('A46 accepts its own origin, and refuses it beside a Sec-Fetch-Site of another site', async () => {
      const { url, token } = await stage(framework)
      const erase = (headers: Record<string, string>) =>
        call(`${url}/ops/call/erase`, {
          method: 'POST',
          headers: { origin: url, 'x-console-token': token, ...headers },
          body: ERASE,
        })
      for (const site of ['cross-site', 'same-site', 'none'])
        expect([site, (await erase({ 'sec-fetch-site': site })).status]).toEqual([site, 403])
      expect((await erase({ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' })).status).toBe(
        403,
      )
      expect((await erase({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
      expect((await erase({})).status).toBe(200)
    })

    it('A46 compares the host and the port, and knows the ports that an origin leaves out', async () => {
      const { statusOf } = await stage(framework)
      const cases: [origin: string, host: string, status: number][] = [
        ['https://ops.example', 'ops.example', 200],
        ['https://ops.example', 'OPS.example:443', 200],
        ['http://ops.example', 'ops.example:80', 200],
        ['https://ops.example', 'ops.example:8443', 403],
        ['https://ops.example:8443', 'ops.example:8443', 200],
        ['https://ops.example:8443', 'ops.example', 403],
        ['https://evil.ops.example', 'ops.example', 403],
        ['https://ops.example.evil.example', 'ops.example', 403],
        ['http://[::1]:3000', '[::1]:3000', 200],
      ]
      for (const [origin, host, status] of cases)
        expect([origin, host, await statusOf({ origin, host })]).toEqual([origin, host, status])
    })

    it('A46 behind a proxy believes X-Forwarded-Host only if Express trusts the proxy', async () => {
      const forwarded = {
        origin: 'https://ops.example',
        'x-forwarded-host': 'ops.example, inner:1',
        host: 'app:3000',
      }
      expect(await (await stage(framework)).statusOf(forwarded)).toBe(403)
      const { statusOf } = await stage(framework, 'loopback')
      expect(await statusOf(forwarded)).toBe(200)
      expect(await statusOf({ ...forwarded, origin: 'http://app:3000' })).toBe(403)
      expect(await statusOf({ origin: 'http://app:3000', host: 'app:3000' })).toBe(200)
    })
  },
)

const ERASE = JSON.stringify({ business_uid: 'business-1', typed: 'business-1', reason: 'a test' })

/** A console in an app whose first middleware allows every origin to send and to read everything. */
async function stage(framework: typeof express, trustProxy?: string) {
  const { marketplace, platform } = await createScene()
  platform.install('business-1')
  await platform.settled()
  const app = framework()
  if (trustProxy !== undefined) app.set('trust proxy', trustProxy)
  app.use((req, res, next) => {
    res.set('access-control-allow-origin', req.get('origin') ?? '*')
    res.set('access-control-allow-credentials', 'true')
    next()
  })
  mountConsole(app, marketplace)
  const url = await serve(app)
  const { token } = (await consoleCaller(`${url}/ops`, 'operator').read('session')).body
  const statusOf = async (headers: Record<string, string>) =>
    (await call(`${url}/ops/call/session`, { headers })).status
  return { url, marketplace, token, statusOf }
}

/** A request by `node:http`, since `fetch` does not send some of these headers. */
function call(
  url: string,
  { method = 'GET', headers, body }: { method?: string; headers: Record<string, string>; body?: string },
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: { code?: string } }> {
  const all = { 'x-person': 'operator', 'content-type': 'application/json', ...headers }
  return new Promise((resolve, reject) => {
    const req = request(url, { method, headers: all }, async (res) => {
      const text = (await res.toArray()).join('')
      const isJson = res.headers['content-type']?.includes('json')
      resolve({ status: res.statusCode, headers: res.headers, body: isJson ? JSON.parse(text) : {} })
    })
    req.on('error', reject)
    req.end(method === 'POST' ? body : undefined)
  })
}
