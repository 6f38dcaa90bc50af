import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Clock } from '../clock.js'
import type { DeliveryStyle } from './envelopes.js'

/** The outcome of a delivery: the status of the reply, or why there was none (an error code, never an address). */
export type Outcome = { status: number } | { error: string }

export interface Post {
  done: Promise<Outcome>
  /** Stops at once; `done` resolves. */
  abort(why: string): void
}

/**
 * Sends one delivery over a new connection. A reused connection would lose deliveries to targets that restart, and the
 * platform does not promise to send them again.
 */
export function post(options: {
  target: string
  body: string
  style: DeliveryStyle
  hangUp: boolean
  timeoutMs: number
  clock: Clock
}): Post {
  const { target, body, style, hangUp, timeoutMs, clock } = options
  const { contentType = 'application/json', chunked = false, expectContinue = false } = style
  const request = (target.startsWith('https:') ? httpsRequest : httpRequest)(target, {
    method: 'POST',
    agent: false,
    headers: {
      ...(contentType === null ? {} : { 'Content-Type': contentType }),
      ...(chunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': Buffer.byteLength(body) }),
      ...(expectContinue ? { Expect: '100-continue' } : {}),
    },
  })

  let finish: (outcome: Outcome) => void = () => {}
  const done = new Promise<Outcome>((resolve) => {
    finish = resolve
  })
  const abort = (why: string) => {
    finish({ error: why })
    request.destroy()
  }
  const timer = clock.setTimeout(() => abort('timeout'), timeoutMs)
  request.on('error', (error: NodeJS.ErrnoException) => finish({ error: error.code ?? 'error' }))
  request.on('response', (response) => {
    const { statusCode: status = 0 } = response
    // The status counts even if the connection closes before the rest of the reply.
    response.on('close', () => finish({ status }))
    response.on('error', () => {})
    response.resume()
  })
  if (hangUp) request.on('finish', () => abort('hung up'))
  if (expectContinue) {
    request.flushHeaders()
    request.on('continue', () => request.end(body))
  } else if (chunked) {
    const half = Math.ceil(body.length / 2)
    request.write(body.slice(0, half))
    request.end(body.slice(half))
  } else {
    request.end(body)
  }
  return {
    done: done.finally(() => {
      clock.clearTimeout(timer)
      request.destroy()
    }),
    abort,
  }
}
