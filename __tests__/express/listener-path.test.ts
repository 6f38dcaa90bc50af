import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server } from 'node:net'
import { describe, expect, it, jest } from '@jest/globals'
import { createDoors } from '../../lib/express/doors.js'
import { createRequireEntitlement } from '../../lib/express/require-entitlement.js'
import { quietWarnings } from '../support/output.js'
import { ALLOWED } from '../support/receiving/decisions.js'
import { OPTIONS, seenBy, send, serve } from '../support/receiving/listener-calls.js'
import { SECRET } from '../support/receiving/receivers.js'
import { openMarketplace, startPlatform } from '../support/scene.js'
import { listen } from '../support/serving.js'

const PATH = '/webhooks/marketplace'

const EVENT = { entity_name: 'application', event_type: 'rated' }

describe('the path of the handler', () => {
  it.each([
    ['/webhooks/marketplace', '/webhooks/marketplace'],
    ['/webhooks/marketplace/', '/webhooks/marketplace'],
    ['/webhooks//marketplace', '/webhooks//marketplace'],
    ['/caf%C3%A9', '/caf%C3%A9'],
    ['/', ''],
  ])('A25 %s is where deliveries arrive', async (path, base) => {
    const { port, kept, seen } = await serve({ path, otherwise: path === '/' ? undefined : note })
    const own = [`${base}/${SECRET}`, `${base}/${SECRET}/`, `${base}/${SECRET}?x=/y`]
    own.push(`http://app.example${base}/${SECRET}`, `HTTPS://u@a.example:8443${base}/${SECRET}?a`)
    own.push(`${base}/${SECRET.replace('_', '%5f')}`)
    for (const target of own) expect([target, await send(port, target)]).toEqual([target, 200])
    expect(kept).toHaveLength(own.length)
    expect(seen).toEqual([])
  })

  it('A25 hides every path below it from the app', async () => {
    const { port, kept, seen } = await serve({ path: PATH, otherwise: note })
    for (const rest of [
      '',
      '/',
      '?',
      `?${SECRET}`,
      '/wrong',
      `//${SECRET}`,
      `/${SECRET}//`,
      `/${SECRET}/x`,
      '/%',
      '/..',
    ]) {
      expect([rest, await send(port, `${PATH}${rest}`)]).toEqual([rest, 404])
    }
    expect([kept, seen]).toEqual([[], []])
  })

  it('A25 leaves a similar path to the app, with the request target unchanged', async () => {
    const { port, kept, seen } = await serve({ path: PATH, otherwise: note })
    const targets = [
      ...[
        `${PATH}s/${SECRET}`,
        `${PATH.toUpperCase()}/${SECRET}`,
        `/${PATH}/${SECRET}`,
        '/webhooks',
        '/?',
        '/',
      ],
      ...[`/webhooks/%6darketplace/${SECRET}`, `/x${PATH}/${SECRET}`, `/webhooks/./marketplace/${SECRET}`],
      ...[
        `http://a.example/own?b=${PATH}/${SECRET}`,
        `http://a.example${PATH}s`,
        'http://a.example',
        `/own?${PATH}/`,
      ],
    ]
    for (const target of targets) expect([target, await send(port, target)]).toEqual([target, 204])
    expect(seen).toEqual(targets)
    expect(kept).toEqual([])
  })

  it.each([
    [undefined, 'path must begin with /'],
    [{}, 'path must begin with /'],
    [{ path: '' }, 'path must begin with /'],
    [{ path: 'webhooks' }, 'path must begin with /'],
    [{ path: 7 }, 'path must begin with /'],
    [{ path: ['/a'] }, 'path must begin with /'],
    [{ path: 'https://a.example/hooks' }, 'path must begin with /'],
    [{ path: '/hooks?a=1' }, 'no query'],
    [{ path: '/hooks#a' }, 'no query'],
    [{ path: '//hooks' }, 'written as in a URL'],
    [{ path: '/a/../hooks' }, 'written as in a URL'],
    [{ path: '/a b' }, 'written as in a URL'],
    [{ path: '/café' }, 'written as in a URL'],
    [{ path: '/hooks', otherwise: {} }, 'otherwise must be a function'],
    [{ path: '/hooks', otherwise: null }, 'otherwise must be a function'],
    [{ path: '/', otherwise: () => {} }, 'leaves none for otherwise'],
  ])('is refused at construction if it could never work: %j', (options, why) => {
    expect(() => createDoors(OPTIONS).listener(options as never)).toThrow(
      expect.objectContaining({ code: 'argument_invalid', message: expect.stringContaining(why) }),
    )
  })
})

describe('marketplace.handler', () => {
  it.each([
    ['with a length', (body: string) => body],
    ['in chunks', (body: string) => new Blob([body]).stream()],
  ])(
    'reports no error that may quote the body of a request %s, but its class and its place',
    async (_, bodyOf) => {
      const warnings = quietWarnings()
      const marketplace = openMarketplace(await startPlatform(), { worker: false })
      const otherwise = async (req: AsyncIterable<Buffer>) => {
        let text = ''
        for await (const part of req) text += part
        throw new RangeError(`no account for ${text}`)
      }
      const port = await listen(createServer(marketplace.listener({ path: PATH, otherwise })))
      const init = { method: 'POST', body: bodyOf('buyer-canary'), duplex: 'half' } as RequestInit
      expect((await fetch(`http://127.0.0.1:${port}/wrong`, init)).status).toBe(500)
      const said = warnings.mock.calls.map(String).join()
      expect(said).toMatch(/otherwise_failed|RangeError/)
      expect(said).not.toMatch(/canary|no account/)
    },
  )

  it('receives as the router does, and reports an error of the app in a warning', async () => {
    const warnings = quietWarnings()
    const marketplace = openMarketplace(await startPlatform(), { worker: false })
    let asked = 0
    const otherwise = () => {
      throw new Error(`the app is broken: ${++asked}`)
    }
    const port = await listen(createServer(marketplace.listener({ path: PATH, otherwise })))
    const url = `http://127.0.0.1:${port}`
    const target = marketplace.webhooks.targetUrl(`${url}${PATH}`)
    const reply = await fetch(target, { method: 'POST', body: JSON.stringify(EVENT) })
    expect([reply.status, await reply.json()]).toMatchObject([200, { received: true }])
    expect(await marketplace.journal.list()).toHaveLength(1)
    expect((await fetch(`${url}/own`)).status).toBe(500)
    await fetch(`${url}/own`)
    expect(warnings.mock.calls.filter(([text]) => String(text).includes('the app is broken'))).toEqual([
      [expect.any(String), { type: 'MarketplaceWarning', code: 'otherwise_failed' }],
    ])
    expect(() => marketplace.listener({ path: 'x' })).toThrow(
      expect.objectContaining({ code: 'argument_invalid' }),
    )
  })
})

describe('the number of parameters, which adapters of other frameworks check,', () => {
  it('is three, as for Express middleware', () => {
    const receive = createDoors(OPTIONS).router
    expect([receive.name, receive.length]).toEqual(['receiveDelivery', 3])
    const guard = createRequireEntitlement({ explain: async () => ALLOWED })
    const guarding = guard({ businessUid: () => '1' })
    expect([guarding.name, guarding.length]).toEqual(['requireEntitlementMiddleware', 3])
  })

  it('lets adapters wait for the end of the request, because next is never called', async () => {
    const next = jest.fn()
    const receive = createDoors(OPTIONS).router
    const port = await listen(createServer((req, res) => receive(req, res, next)))
    expect([await send(port, `/${SECRET}`), await send(port, '/wrong')]).toEqual([200, 404])
    expect(next).not.toHaveBeenCalled()
  })
})

/** An app that records the targets of its requests. */
function note(req: IncomingMessage, res: ServerResponse): void {
  const server = (req.socket as unknown as { server: Server }).server
  seenBy.get(server)?.push(req.url ?? '')
  res.writeHead(204).end()
}
