import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { describe, expect, it } from '@jest/globals'
import { onCleanUp } from '../../support/clean-up.js'
import {
  dialHttp2,
  events,
  exchange,
  ports,
  type ServerName,
} from '../../support/receiving/hostile-server.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

/** Every server of `node:http2` ends with SIGABRT in these versions, even one without a handler: nodejs/node#64850. */
const HTTP2_ABORTS = process.version.startsWith('v22.23.')

const PATHS = [`/hooks/${SECRET}`, '/hooks/wrong', '/guarded']

const WAYS = {
  reset: (socket: Socket) => {
    if (socket instanceof TLSSocket) socket.destroy()
    else socket.resetAndDestroy()
  },
  destroy: (socket: Socket) => void socket.destroy(),
  end: (socket: Socket) => void socket.end(),
}

describe('senders that disconnect at any moment', () => {
  it.each(['http', 'express4', 'express5', 'tls'] as const)(
    'A21 over HTTP/1 on %s end only their own request',
    async (name) => {
      const runs: Promise<void>[] = []
      for (const path of PATHS) {
        for (const method of ['POST', 'GET']) {
          for (const leave of Object.values(WAYS)) {
            const head = `${method} ${path} HTTP/1.1\r\nhost: a\r\nx-business: out\r\n`
            const parts = [head, 'content-length: 11\r\n', '\r\n', '{"a":', '[1,2]}', '']
            for (let sent = 0; sent <= parts.length; sent++) {
              runs.push(sendAndLeave(name, parts.slice(0, sent), leave))
            }
            // They leave while the reply is due, and after it has begun.
            runs.push(sendAndLeave(name, parts, leave, 'wait'), sendAndLeave(name, parts, leave, 'reply'))
            runs.push(sendAndLeave(name, [head, '\r\n'], leave, 'wait'))
          }
        }
      }
      await Promise.all(runs)
      await expectAllServe()
    },
  )

  const whereNodeSurvives = HTTP2_ABORTS ? it.skip : it
  whereNodeSurvives.each(['h2c', 'tls'] as const)(
    'A21, A20 over HTTP/2 on %s end only their own request',
    async (name) => {
      const ways: ((stream: ClientHttp2Stream, session: ClientHttp2Session) => void)[] = [
        (stream) => stream.close(8),
        (stream) => stream.close(0),
        (stream) => stream.destroy(),
        (_stream, session) => session.destroy(),
        (_stream, session) => session.close(),
        (_stream, session) => session.goaway(1),
      ]
      const runs: Promise<unknown>[] = []
      for (const path of PATHS) {
        for (const method of ['POST']) {
          for (const leave of ways) {
            for (const stage of ['headers', 'part', 'body', 'wait', 'reply', 'after'] as const) {
              // A window of zero prevents the reply from being sent.
              for (const initialWindowSize of [65_535, 0]) {
                runs.push(streamAndLeave(name, { method, path, stage, initialWindowSize, leave }))
              }
            }
          }
        }
      }
      await Promise.all(runs)
      await expectAllServe()
    },
  )
})

describe("a middleware that has replaced members of Node's objects", () => {
  it.each([
    'res.setHeader',
    'res.end',
    'res.write',
    'res.flushHeaders',
    'res.end,res.destroy',
    'res.setHeader,res.destroy,res.end,res.write',
    'headers',
    'url',
    'objects',
    'next',
  ])('A22 ends only the one request if %s fails', async (broken) => {
    for (const path of PATHS) {
      for (const business of ['in', 'out']) {
        for (const body of ['{"a":1}', ' '.repeat(70_000)]) {
          const socket = await dial('http')
          socket.write(
            `POST ${path} HTTP/1.1\r\nhost: a\r\nx-business: ${business}\r\nx-break: ${broken}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
          )
          // Either a reply, or the end of the connection.
          await firstData(socket)
          socket.destroy()
        }
      }
    }
    await expectAllServe()
  })
})

describe('a request target', () => {
  it.each(['http', 'express4', 'express5', 'tls'] as const)(
    'A23 in absolute form, as proxies send it, reaches the router on %s',
    async (name) => {
      const origin = name === 'http' || name === 'tls' ? '' : '/hooks'
      for (const [target, status] of [
        [`http://app.example${origin}/${SECRET}`, 200],
        [`HTTPS://user@app.example:8443${origin}/${SECRET}?a=1`, 200],
        [`http://app.example${origin}/${SECRET}/`, 200],
        [`http://${SECRET}`, 404],
        [`http://app.example${origin}/wrong`, 404],
        [`http://app.example${origin}`, 404],
        [`http://app.example?${SECRET}`, 404],
        ['http://', 404],
        ['x:y', 404],
        ['*', 404],
        [`//${SECRET}`, 404],
        [`${SECRET}`, 404],
      ] as const) {
        const socket = await dial(name)
        socket.write(`POST ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`)
        const data = await firstData(socket)
        const got = Number(/^HTTP\/1\.1 (\d+)/.exec(data)?.[1] ?? 400)
        // Node itself replies 400 to an invalid request target.
        expect([target, got === 400 ? 404 : got]).toEqual([target, status])
      }
      await expectAllServe()
    },
  )
})

/** Makes a correct delivery and requests a guarded page on each server. No event may have ended the process. */
async function expectAllServe() {
  expect(events).toEqual([])
  for (const name of ['http', 'express4', 'express5'] as const) {
    const origin = `http://127.0.0.1:${ports[name]}`
    const reply = await fetch(`${origin}/hooks/${SECRET}`, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(5_000),
    })
    expect([name, reply.status]).toEqual([name, 200])
    const page = await fetch(`${origin}/guarded`, { headers: { 'x-business': 'in' } })
    expect([name, page.status]).toEqual([name, 200])
  }
  for (const name of ['h2c', 'tls'] as const) {
    const headers = { ':method': 'POST', ':path': `/hooks/${SECRET}` }
    expect(await exchange(dialHttp2(name), headers, '{}')).toMatchObject({ status: 200 })
  }
  expect(events).toEqual([])
}

async function dial(name: ServerName): Promise<Socket> {
  const port = ports[name]
  const socket =
    name === 'tls'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
      : connect(port, '127.0.0.1')
  socket.on('error', () => {})
  onCleanUp(() => socket.destroy())
  await once(socket, name === 'tls' ? 'secureConnect' : 'connect')
  return socket
}

/** The first data; '' if the connection ends or fails before any. */
function firstData(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('neither a reply nor the end came')), 5_000)
    socket.once('close', () => clearTimeout(timer)).once('data', () => clearTimeout(timer))
    socket.once('data', (data) => resolve(String(data)))
    socket.once('close', () => resolve(''))
  })
}

async function sendAndLeave(
  name: ServerName,
  parts: readonly string[],
  leave: (socket: Socket) => void,
  when?: 'wait' | 'reply',
): Promise<void> {
  const socket = await dial(name)
  for (const part of parts) await new Promise((resolve) => socket.write(part, resolve))
  if (when === 'wait') await new Promise((resolve) => setTimeout(resolve, 10))
  if (when === 'reply') await firstData(socket)
  leave(socket)
  socket.resume()
  await Promise.race([once(socket, 'close'), new Promise((resolve) => setTimeout(resolve, 1_000))])
  socket.destroy()
}

async function streamAndLeave(
  name: ServerName,
  options: {
    method: string
    path: string
    stage: 'headers' | 'part' | 'body' | 'wait' | 'reply' | 'after'
    initialWindowSize: number
    leave(stream: ClientHttp2Stream, session: ClientHttp2Session): void
  },
): Promise<void> {
  const { method, path, stage, initialWindowSize, leave } = options
  const session = dialHttp2(name, { initialWindowSize })
  const headers = { ':method': method, ':path': path, 'x-business': 'out', 'content-length': 7 }
  const stream = session.request(headers, { endStream: false })
  stream.on('error', () => {})
  const closed = new Promise((resolve) => stream.once('close', resolve))
  await Promise.race([once(session, 'connect'), closed])
  if (stage !== 'headers') stream.write('{"a":')
  if (stage !== 'headers' && stage !== 'part') stream.end('1}')
  if (stage === 'wait') await new Promise((resolve) => setTimeout(resolve, 10))
  if (stage === 'reply') await Promise.race([once(stream, 'response').catch(() => {}), closed])
  if (stage === 'after') {
    stream.resume()
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 100))])
  }
  if (!session.destroyed) leave(stream, session)
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 1_000))])
  session.destroy()
}
