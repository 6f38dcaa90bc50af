import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import express from 'express'
import type { Marketplace } from '../../../lib/index.js'
import type { Answer } from './log.js'

/** The doors of an app beside its methods, without a socket: a paid route behind the gate, and the route of a front end. */
export function createDoors(marketplace: Marketplace) {
  const app = express()
  const businessUid = (req: { headers: Record<string, unknown> }) =>
    req.headers['x-business'] as string | undefined
  app.get('/paid', marketplace.requireEntitlement({ businessUid }), (_req, res) => void res.send('in'))
  app.get('/api/entitlement', marketplace.entitlementRoute({ businessUid }))

  return {
    async gate(business: string): Promise<Answer> {
      const { status, text, retryAfter, cacheControl } = await visit(app, '/paid', business)
      const isIn = status === 200 && text === 'in'
      return { entitled: isIn, known: isIn || status === 402, status, retryAfter, cacheControl }
    },
    async route(business: string): Promise<Answer> {
      const { status, text, retryAfter, cacheControl } = await visit(app, '/api/entitlement', business)
      const { entitled = false, known = false, accessUntil = null, items = [] } = JSON.parse(text)
      return { entitled, known, accessUntil, items, status, retryAfter, cacheControl }
    },
  }
}

interface Page {
  status: number
  text: string
  retryAfter: string | undefined
  cacheControl: string | undefined
}

function visit(app: express.Express, url: string, business: string): Promise<Page> {
  const req = new IncomingMessage(new Socket())
  Object.assign(req, { method: 'GET', url, headers: business ? { 'x-business': business } : {} })
  const res = new ServerResponse(req)
  return new Promise((resolve) => {
    res.end = ((chunk: unknown) => {
      const header = (name: string) => {
        const value = res.getHeader(name)
        return value === undefined ? undefined : String(value)
      }
      const text =
        typeof chunk === 'string' || chunk instanceof Uint8Array
          ? Buffer.from(chunk as string).toString()
          : ''
      const { statusCode: status } = res
      resolve({ status, text, retryAfter: header('retry-after'), cacheControl: header('cache-control') })
      return res
    }) as typeof res.end
    app(req as never, res as never)
  })
}
