import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type express5 from 'express'
import request from 'supertest'
import type { Envelope } from '../../../lib/base/envelope.js'
import { createSecretSearch } from '../../../lib/express/delivery-secret.js'
import { createDoors } from '../../../lib/express/doors.js'
import type { ReceiverOptions } from '../../../lib/express/take-delivery.js'
import { onCleanUp } from '../clean-up.js'
import { RECEIVER_DEFAULTS } from '../defaults.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

export const express4 = require('express-4') as typeof express5

export const EVENT = {
  entity_name: 'application',
  event_type: 'installed',
  data: { business_id: 'b-1', app_code_name: 'café ☕', event_time: '2024-05-01T10:00:00+00:00' },
}

export const TEXT = JSON.stringify(EVENT)

export type Before = express5.RequestHandler

export async function serve(
  express: typeof express5,
  { before = [], options = {} }: { before?: readonly Before[]; options?: Partial<ReceiverOptions> } = {},
) {
  const kept: Envelope[] = []
  const app = express()
  for (const middleware of before) app.use(middleware)
  app.use(
    '/hooks',
    createDoors({
      ...RECEIVER_DEFAULTS,
      indexOfSecret: createSecretSearch([SECRET]),
      accept: async (envelopes) => {
        kept.push(...envelopes)
        return envelopes.map((_envelope, i) => ({ id: `e${i}`, issues: null }))
      },
      ...options,
    }).router,
  )
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanUp(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  /** Sends exactly these bytes. `write` and `end` prevent supertest from changing them. */
  function post(body: string | Buffer, headers: Record<string, string> = {}) {
    return request(server)
      .post(`/hooks/${SECRET}`)
      .set({ 'content-type': 'application/json', ...headers })
      .serialize((same) => same as string)
      .send(body as string)
  }
  return { kept, port, post }
}

export function head(headers: Record<string, string | number>): string {
  const lines = Object.entries({ host: 'app.example', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `POST /hooks/${SECRET} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The text as latin1, so that a chunk may end inside a character. */
export function chunked(text: string, size: number): string {
  const bytes = Buffer.from(text)
  let out = ''
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size)
    out += `${part.length.toString(16)}\r\n${part.toString('latin1')}\r\n`
  }
  return `${out}0\r\n\r\n`
}

export async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  onCleanUp(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

export async function exchange(port: number, message: string): Promise<string> {
  const socket = await dial(port)
  socket.write(Buffer.from(message, 'latin1'))
  return received(socket, /^HTTP\/1\.1 (?!100).*\r\n\r\n./s)
}

/** Resolves with the received text as soon as it matches. */
export function received(socket: Socket, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', (data) => {
      text += data
      if (pattern.test(text)) resolve(text)
    })
    socket.on('close', () => reject(new Error(`The connection ended after ${JSON.stringify(text)}`)))
  })
}
