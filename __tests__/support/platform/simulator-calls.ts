import { createServer, type IncomingHttpHeaders } from 'node:http'
import { EVENTS, type EventName } from '../../../lib/events/registry.js'
import {
  createSimulator,
  type FullSubscription,
  type Simulator,
  type SimulatorOptions,
} from '../../../lib/testing/index.js'
import { onCleanUp } from '../clean-up.js'
import { close, listen } from '../serving.js'

export const NAMES = Object.keys(EVENTS) as EventName[]

export interface Target {
  url: string
  bodies: string[]
  headers: IncomingHttpHeaders[]
  /** The status of each reply; 0 never replies. */
  status: number
  close(): Promise<void>
}

export async function startTarget(): Promise<Target> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    target.bodies.push(Buffer.concat(chunks).toString())
    target.headers.push(request.headers)
    if (target.status > 0) response.writeHead(target.status).end()
  })
  const target: Target = {
    url: `http://127.0.0.1:${await listen(server)}/webhooks`,
    bodies: [],
    headers: [],
    status: 200,
    close: () => close(server),
  }
  return target
}

export async function start(
  options: Partial<SimulatorOptions> = {},
): Promise<{ platform: Simulator; target: Target }> {
  const platform = createSimulator({ clientId: 'the-client', clientSecret: 'the-client-secret', ...options })
  onCleanUp(() => platform.close())
  await platform.start()
  return { platform, target: await startTarget() }
}

export function tokenQuery(business_uid: string, over: Record<string, string> = {}) {
  const client = { client_id: 'the-client', client_secret: 'the-client-secret' }
  return { ...client, grant_type: 'assertion', type: 'token', business_uid, ...over }
}

export async function tokenReply(
  platform: Simulator,
  business_uid: string,
  over: Record<string, string> = {},
) {
  const query = new URLSearchParams(tokenQuery(business_uid, over))
  const reply = await fetch(`${platform.authUrl}/oauth/token?${query}`, { method: 'POST' })
  return { status: reply.status, json: (await reply.json()) as Record<string, unknown> }
}

export async function accessToken(platform: Simulator, business_uid: string): Promise<string> {
  return String((await tokenReply(platform, business_uid)).json.access_token)
}

export function readReply(
  platform: Simulator,
  uid: string,
  token: string,
  signal: AbortSignal | null = null,
) {
  const query = new URLSearchParams({ 'filter[uid]': uid })
  return fetch(`${platform.baseUrl}/business/subscriptionsmng/v1/subscriptions?${query}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    signal,
  })
}

export async function read(platform: Simulator, uid: string, token = platform.appToken('b1')) {
  const reply = await readReply(platform, uid, token)
  const json = (await reply.json()) as { data?: { subscriptions: FullSubscription[] } }
  return { status: reply.status, records: json.data?.subscriptions ?? [] }
}

export async function registerOverHttp(
  platform: Simulator,
  event: string,
  target_url: string,
  token: string,
) {
  const reply = await fetch(`${platform.baseUrl}/platform/v1/webhook/subscribe`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event, target_url }),
  })
  return reply.status
}
