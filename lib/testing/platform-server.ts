import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Clock } from '../base/clock.js'
import { type Answerer, type Call, ENDPOINTS, type Reply, refusal } from './endpoints.js'
import type { ActiveFault, Endpoint, FaultKind, FaultRules, Subject } from './faults.js'

/** One request to the platform, without secrets. */
export interface PlatformRequest {
  /** `unknown` for a method or path that is not in the interface document. */
  endpoint: Endpoint | 'unknown'
  /** The status of the reply; undefined when a fault prevented a reply. */
  status?: number
  /** The business of its token, or of the token that it asks for. */
  business_uid?: string
  /** For the read call: the subscription. */
  subscription_uid?: string
  /** For the register call: the event. */
  event?: string
  /** The faults that struck it. */
  faults: readonly FaultKind[]
  /** Requests to this endpoint under way when it arrived, including itself. */
  inFlight: number
  /** When it arrived: milliseconds since 1970. */
  at: number
}

export interface PlatformServerOptions {
  /** Which endpoints this address serves. */
  under: 'base' | 'auth'
  answerers: Record<Endpoint, Answerer>
  faults: FaultRules
  clock: Clock
  onRequest: (request: PlatformRequest) => void
}

/** Larger bodies of the register call are refused with 413. The two documented fields need far less. */
const BODY_LIMIT_BYTES = 64 * 1024

/** One address of the platform: an HTTP server on 127.0.0.1. */
export class PlatformServer {
  readonly #options: PlatformServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #timers = new Set<unknown>()
  readonly #underWay = new Map<string, number>()
  readonly #endpoints: readonly Endpoint[]

  constructor(options: PlatformServerOptions) {
    this.#options = options
    this.#endpoints = (Object.keys(ENDPOINTS) as Endpoint[]).filter(
      (name) => ENDPOINTS[name].under === options.under,
    )
    this.#server = createServer((request, response) => {
      // For example a request line without a valid address, which no regular client sends.
      this.#handle(request, response).catch(() => request.socket.destroy())
    })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      this.cutIfDown()
    })
  }

  /** Listens, and resolves to the address without a trailing slash. Rejects with the error of `listen`. */
  async start(port: number): Promise<string> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Destroys every connection while a `down` fault covers all of this address. */
  cutIfDown(): void {
    if (!this.#options.faults.isDown(this.#endpoints)) return
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Closes at once, also with requests under way. */
  async close(): Promise<void> {
    for (const timer of this.#timers) this.#options.clock.clearTimeout(timer)
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, answerers, faults, onRequest } = this.#options
    const at = clock.now()
    const url = new URL(request.url ?? '/', 'http://platform')
    const endpoint = this.#endpoints.find((name) => ENDPOINTS[name].path === url.pathname)
    const inFlight = this.#count(endpoint ?? 'unknown', response)
    const body = await readBody(request)
    if (body === undefined) return
    if (endpoint === undefined || ENDPOINTS[endpoint].method !== request.method) {
      const status = endpoint ? 405 : 404
      onRequest({ endpoint: 'unknown', status, faults: [], inFlight, at })
      return send(response, refusal(status, 'not_found', 'The call does not exist'))
    }

    const call: Call = {
      query: url.searchParams,
      authorization: request.headers.authorization,
      contentType: request.headers['content-type'],
      body,
    }
    const answerer = answerers[endpoint]
    const subject = answerer.subjectOf(call)
    const strike = faults.strike(endpoint, subject)
    await this.#pause(strike.delayMs)
    const reply = this.#replyTo(call, answerer, body.length, strike.what, strike.end)
    onRequest({
      endpoint,
      ...(reply ? { status: reply.status } : {}),
      ...named(subject),
      faults: strike.kinds,
      inFlight,
      at,
    })
    switch (strike.end?.kind) {
      case 'hang':
        return
      case 'reset':
        request.socket.resetAndDestroy()
        return
      case 'down':
        request.socket.destroy()
        return
      default:
        if (reply) send(response, reply, strike.end?.kind === 'truncate')
    }
  }

  /** Undefined when a fault prevents the reply. In that case the request is not handled either. */
  #replyTo(
    call: Call,
    answerer: Answerer,
    size: number,
    what?: ActiveFault,
    end?: ActiveFault,
  ): Reply | undefined {
    switch (end?.kind) {
      case 'hang':
      case 'reset':
      case 'down':
        return undefined
      case 'status': {
        const { status, retryAfter, headers, body = refusal(status, 'fault', 'A simulated fault').body } = end
        const retry = retryAfter === undefined ? {} : { 'Retry-After': `${retryAfter}` }
        return { status, body, headers: { ...headers, ...retry } }
      }
      case 'html':
        return { status: end.status ?? 200, body: '<!doctype html><title>Platform</title><h1>Back soon</h1>' }
      default:
        if (size > BODY_LIMIT_BYTES) return refusal(413, 'too_large', 'The body is too large')
        return answerer.answer(call, what)
    }
  }

  #count(endpoint: string, response: ServerResponse): number {
    const inFlight = (this.#underWay.get(endpoint) ?? 0) + 1
    this.#underWay.set(endpoint, inFlight)
    response.on('close', () => this.#underWay.set(endpoint, (this.#underWay.get(endpoint) ?? 1) - 1))
    return inFlight
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0) return
    const { clock } = this.#options
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(() => {
        this.#timers.delete(timer)
        resolve()
      }, ms)
      this.#timers.add(timer)
    })
  }
}

/** The body as text, cut after the limit; undefined when the client disconnected before its end. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request) {
      if (size <= BODY_LIMIT_BYTES) chunks.push(chunk)
      size += chunk.length
    }
    return Buffer.concat(chunks).toString()
  } catch {
    return undefined
  }
}

function send(response: ServerResponse, { status, body, headers }: Reply, truncated = false): void {
  const html = typeof body === 'string'
  const bytes = Buffer.from(html ? body : JSON.stringify(body))
  response.writeHead(status, {
    'Content-Type': html ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'Content-Length': bytes.length,
    ...headers,
  })
  if (!truncated) {
    response.end(bytes)
    return
  }
  // The half must be sent before the connection closes, or the client sees a reset and no reply.
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy())
}

function named({ businessUid, subscriptionUid, event }: Subject) {
  return {
    ...(businessUid === undefined ? {} : { business_uid: businessUid }),
    ...(subscriptionUid === undefined ? {} : { subscription_uid: subscriptionUid }),
    ...(event === undefined ? {} : { event }),
  }
}
