import type { IncomingMessage, ServerResponse } from 'node:http'
import { systemClock } from '../../../lib/base/clock.js'
import { createPlatformClient } from '../../../lib/platform/client.js'
import { serve } from '../serving.js'

export const RECORD = {
  uid: 's1',
  business_uid: 'b1',
  purchasable_uid: 'p1',
  purchase_state: 'purchased',
  updated_at: '2026-01-01T00:00:00.000Z',
}

export type Answer = (req: IncomingMessage, res: ServerResponse) => unknown

/** A platform with these answers, and a client for it. */
export async function start(
  options: {
    token?: Answer
    read?: Answer
    register?: Answer
    base?: string
    auth?: string
    timeoutMs?: number
  } = {},
) {
  const requests: object[] = []
  const bodies: string[] = []
  let tokens = 0
  const origin = await serve(async (req, res) => {
    const url = new URL(req.url as string, 'http://platform')
    const { authorization, 'content-type': contentType } = req.headers
    const query = Object.fromEntries(url.searchParams)
    requests.push({ method: req.method, path: url.pathname, query, authorization, contentType })
    if (req.method === 'POST') {
      let body = ''
      for await (const chunk of req) body += chunk
      bodies.push(body)
    }
    if (url.pathname.endsWith('/oauth/token')) {
      return (options.token ?? json(200, { access_token: `token-${++tokens}`, expires_in: 3600 }))(req, res)
    }
    if (req.method === 'GET') return (options.read ?? records(RECORD))(req, res)
    return (options.register ?? json(201, {}))(req, res)
  })
  const client = createPlatformClient({
    baseUrl: origin + (options.base ?? ''),
    authUrl: origin + (options.auth ?? ''),
    clientId: 'client',
    clientSecret: 'client-secret',
    timeoutMs: options.timeoutMs ?? 5_000,
    concurrency: 4,
    clock: systemClock,
  })
  return { client, requests: requests as Record<string, unknown>[], bodies, origin }
}

export function read(client: ReturnType<typeof createPlatformClient>) {
  return client.readSubscription({ subscriptionUid: 's1', businessUid: 'b1' })
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_req, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers })
    res.end(body === undefined ? undefined : JSON.stringify(body))
  }
}

export function records(...subscriptions: object[]): Answer {
  return json(200, reply(...subscriptions))
}

export function reply(...subscriptions: object[]) {
  return { data: { subscriptions } }
}

export function html(status: number): Answer {
  return (_req, res) =>
    res.writeHead(status, { 'content-type': 'text/html' }).end('<html><body>Oops</body></html>')
}

export function found() {
  return { kind: 'found', record: RECORD }
}

export function outage(code: string) {
  return { kind: 'outage', code: `platform_${code}` }
}
