import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, jest } from '@jest/globals'
import type express5 from 'express'
import type { Envelope } from '../../../lib/base/envelope.js'
import { createSecretSearch } from '../../../lib/express/delivery-secret.js'
import { createDoors } from '../../../lib/express/doors.js'
import type { ReceiverOptions } from '../../../lib/express/take-delivery.js'
import { onCleanUp } from '../clean-up.js'
import { RECEIVER_DEFAULTS } from '../defaults.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

const unhandled: unknown[] = []

export const express4 = require('express-4') as typeof express5

export const EVENT = {
  entity_name: 'app_subscription',
  event_type: 'installed',
  data: { business_id: 'b', app_id: 72 },
}

export const logged = (['log', 'info', 'warn', 'error'] as const).map((level) => jest.spyOn(console, level))

process.on('unhandledRejection', (reason) => unhandled.push(reason))

afterEach(() => {
  for (const spy of logged) expect(spy).not.toHaveBeenCalled()
  expect(unhandled).toEqual([])
})

/** A receiver at /hooks that stores into an array and replies when `passed` resolves. */
export function setUp(
  express: typeof express5,
  options: Partial<ReceiverOptions> = {},
  passed: Promise<unknown> = Promise.resolve(),
) {
  const kept: (readonly Envelope[])[] = []
  const outcomes: string[] = []
  const { router: receiver } = createDoors({
    ...RECEIVER_DEFAULTS,
    indexOfSecret: createSecretSearch([SECRET]),
    accept: async (envelopes) => {
      kept.push(envelopes)
      await passed
      return envelopes.map((_envelope, i) => ({ id: `e${i + 1}`, issues: null }))
    },
    count: (outcome) => outcomes.push(outcome),
    ...options,
  })
  const app = express().use('/hooks', receiver)
  return { app, kept, outcomes, receiver }
}

export async function listen(app: express5.Express): Promise<AddressInfo> {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanUp(() => {
    server.close()
    server.closeAllConnections()
  })
  return server.address() as AddressInfo
}

export async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  onCleanUp(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

export function barrier() {
  let settle: (error?: Error) => void = () => {}
  const passed = new Promise<never>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve(undefined as never))
  })
  return { passed, open: (error?: Error) => settle(error) }
}

export async function until(isTrue: () => boolean, deadline = Date.now() + 5_000): Promise<void> {
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error('Not so within 5 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
