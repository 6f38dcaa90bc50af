import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import express5 from 'express'
import { createDoors } from '../../../lib/express/doors.js'
import { createRequireEntitlement } from '../../../lib/express/require-entitlement.js'
import { RECEIVER_DEFAULTS } from '../defaults.js'
import { CERTIFICATE, KEY } from '../processes/certificate.js'
import { ALLOWED, UNKNOWN } from './decisions.js'

/**
 * A process that serves the router at /hooks/<SECRET> and a guarded route at /guarded on every kind of server. It sends
 * its parent every error that would have ended the process.
 */

const express4 = require('express-4') as typeof express5

export const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'

type Handle = (req: IncomingMessage, res: ServerResponse) => void

const { router: receive } = createDoors({
  ...RECEIVER_DEFAULTS,
  indexOfSecret: (presented) => [SECRET].indexOf(presented),
  // This wait is long enough for a sender to disconnect.
  accept: async (envelopes) => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return envelopes.map(() => ({ id: 'e1', issues: null }))
  },
  bodyTimeoutMs: 300,
  count: (_outcome, error) => {
    if (error?.cause instanceof Error && error.cause.message === 'break the count') throw error.cause
  },
})
const guard = createRequireEntitlement({
  explain: (uid) => new Promise((resolve) => setTimeout(resolve, 20, uid === 'in' ? ALLOWED : UNKNOWN)),
})({ businessUid: (req) => req.headers['x-business'] })

/** Serves as an app without a framework does. */
const bare: Handle = (req, res) => {
  const { 'x-break': broken } = req.headers
  breakMethods(req, res)
  const url = req.url ?? ''
  if (!url.startsWith('/guarded')) {
    const isUrlBroken = broken === 'url'
    Object.assign(req, { url: isUrlBroken ? { toString: () => url } : url.replace('/hooks', '') })
    receive(req, res)
    return
  }
  void guard(req, res, (error) => {
    if (broken === 'next') throw new Error('next is broken')
    res.statusCode = error ? 500 : 200
    res.end(error ? 'error' : 'in')
  })
}

/** `x-break: end,setHeader` makes these methods of the response throw, as a faulty middleware does. */
function breakMethods(req: IncomingMessage, res: ServerResponse) {
  const names = String(req.headers['x-break'] ?? '').split(',')
  for (const name of names.filter((each) => each.startsWith('res.'))) {
    Object.defineProperty(res, name.slice(4), {
      get: () => () => {
        throw new Error(`${name} is broken`)
      },
      set: () => {},
    })
  }
  if (names.includes('headers')) {
    Object.defineProperty(req, 'headers', {
      get: () => {
        throw new Error('headers are broken')
      },
    })
  }
  if (names.includes('objects')) {
    setImmediate(() => req.emit('data', { an: 'object' }))
  }
}

function onExpress(express: typeof express5): Handle {
  const app = express()
  app.use('/hooks', receive)
  app.get('/guarded', guard, (_req, res) => void res.send('in'))
  return app as unknown as Handle
}

const servers: Record<string, Server> = {
  http: createServer(bare),
  express4: createServer(onExpress(express4)),
  express5: createServer(onExpress(express5)),
  h2c: createHttp2Server(bare as never),
  tls: createSecureServer({ allowHTTP1: true, key: KEY, cert: CERTIFICATE }, bare as never),
}

for (const event of ['uncaughtException', 'unhandledRejection', 'warning'] as const) {
  process.on(event, (error: Error) => {
    process.send?.({ is: 'event', event, text: error?.stack ?? String(error) })
  })
}

async function listen() {
  const ports: Record<string, number> = {}
  for (const [name, server] of Object.entries(servers)) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ports[name] = (server.address() as AddressInfo).port
  }
  process.send?.({ is: 'listening', ports })
}

if (process.send) {
  process.on('disconnect', () => process.exit())
  void listen()
}
