import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, jest } from '@jest/globals'
import express5 from 'express'
import request from 'supertest'
import type { Envelope } from '../../../lib/base/envelope.js'
import { createSecretSearch } from '../../../lib/express/delivery-secret.js'
import { createDoors } from '../../../lib/express/doors.js'
import type { ReceiverOptions } from '../../../lib/express/take-delivery.js'
import { onCleanUp } from '../clean-up.js'
import { RECEIVER_DEFAULTS } from '../defaults.js'
import { listen } from '../serving.js'

export const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

export const express4 = require('express-4') as typeof express5

/** For `describe.each`. */
export const EXPRESSES: [name: string, express: typeof express5][] = [
  ['Express 4', express4],
  ['Express 5', express5],
]

export const EVENT = {
  entity_name: 'application',
  event_type: 'installed',
  data: { business_id: 'b-1', app_code_name: 'café ☕', event_time: '2024-05-01T10:00:00+00:00' },
}

export const TEXT = JSON.stringify(EVENT)

export type Before = express5.RequestHandler

const unhandled: unknown[] = []
const logged = (['log', 'info', 'warn', 'error'] as const).map((level) => jest.spyOn(console, level))

process.on('unhandledRejection', (reason) => unhandled.push(reason))

afterEach(() => {
  for (const spy of logged) expect(spy).not.toHaveBeenCalled()
  expect(unhandled).toEqual([])
})

/** A receiver at /hooks behind the middleware `before`. It stores into arrays, and replies when `passed` resolves. */
export async function receiverOn(
  express: typeof express5,
  given: { before?: readonly Before[]; options?: Partial<ReceiverOptions>; passed?: Promise<unknown> } = {},
) {
  const { before = [], options = {}, passed } = given
  const kept: Envelope[] = []
  const calls: (readonly Envelope[])[] = []
  const outcomes: string[] = []
  const { router: receiver } = createDoors({
    ...RECEIVER_DEFAULTS,
    indexOfSecret: createSecretSearch([SECRET]),
    accept: async (envelopes) => {
      kept.push(...envelopes)
      calls.push(envelopes)
      await passed
      return envelopes.map((_envelope, i) => ({ id: `e${i + 1}`, issues: null }))
    },
    count: (outcome) => outcomes.push(outcome),
    ...options,
  })
  const app = express()
  for (const middleware of before) app.use(middleware)
  app.use('/hooks', receiver)
  const server = createServer(app)
  const port = await listen(server)
  /** Sends a value as JSON, or exactly these bytes. `serialize` prevents supertest from changing them. */
  function post(body: unknown, headers: Record<string, string> = {}, secret = SECRET) {
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    return request(server)
      .post(`/hooks/${secret}`)
      .set({ 'content-type': 'application/json', ...headers })
      .serialize((same) => same as string)
      .send((isRaw ? body : JSON.stringify(body)) as string)
  }
  return { app, receiver, kept, calls, outcomes, port, post }
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

/** All data until the other side closes. */
export async function closed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return text
}
