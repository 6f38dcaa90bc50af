import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { dialHttp2, events, exchange } from '../../support/receiving/hostile-server.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

describe.each(['h2c', 'tls'] as const)('A20 HTTP/2 without a framework on %s', (name) => {
  it('gets the same replies as HTTP/1', async () => {
    const session = dialHttp2(name)
    const event = '{"entity_name":"a"}'
    const right = { ':method': 'POST', ':path': `/hooks/${SECRET}` }
    const cases: [headers: Record<string, string>, body: string | undefined, reply: object][] = [
      [right, event, { status: 200, body: '{"received":true,"id":"e1"}' }],
      [{ ...right, 'content-length': String(event.length) }, event, { status: 200 }],
      [{ ...right, ':path': '/hooks/wrong' }, event, { status: 404, body: '' }],
      [{ ...right, ':path': '/hooks/wrong' }, undefined, { status: 404, body: '' }],
      [{ ...right, ':path': '/hooks/wrong' }, 'x'.repeat(200_000), { status: 404, body: '' }],
      [{ ...right, ':method': 'GET' }, undefined, { status: 405, allow: 'POST' }],
      [right, '', { status: 400 }],
      [right, '{', { status: 400 }],
      [right, 'x'.repeat(65_537), { status: 413 }],
      [{ ...right, 'content-length': '65537' }, 'x'.repeat(65_537), { status: 413 }],
      [{ ':path': '/guarded' }, undefined, { status: 401 }],
      [{ ':path': '/guarded', 'x-business': 'out' }, undefined, { status: 503, 'retry-after': '5' }],
      [{ ':path': '/guarded', 'x-business': 'in' }, undefined, { status: 200, body: 'in' }],
    ]
    for (const [headers, body, reply] of cases) {
      expect({ headers, reply: await exchange(session, headers, body) }).toMatchObject({ headers, reply })
    }
    // All requests use one connection: a refused stream does not end the others.
    expect(session.destroyed).toBe(false)
    expect(events).toEqual([])
  })

  it('is cut off if the body does not end', async () => {
    const session = dialHttp2(name)
    for (const [path, part, status] of [
      [`/hooks/${SECRET}`, ' ', 408],
      [`/hooks/${SECRET}`, ' '.repeat(70_000), 413],
      ['/hooks/wrong', ' ', 404],
    ] as const) {
      const stream = session.request({ ':method': 'POST', ':path': path }, { endStream: false })
      stream.on('error', () => {})
      stream.write(part)
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
      expect([path, headers[':status']]).toEqual([path, status])
      stream.resume()
      // The sender has not ended the stream.
      await once(stream, 'close')
    }
    expect(session.destroyed).toBe(false)
    expect(events).toEqual([])
  })
})
