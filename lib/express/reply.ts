import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, SECOND, systemClock } from '../clock.js'
import { type ErrorCode, problem } from '../errors.js'
import { announcesBody } from './body.js'

/** What `Retry-After` asks for when the cause is expected to pass by itself. */
const RETRY_AFTER_SECONDS = '5'
/** How long a refused sender may go on sending before its connection is cut. */
const LINGER_MS = SECOND / 2

type Headers = Readonly<Record<string, string>>

/**
 * Answers with text and its length, once: nothing happens when the reply has begun or the sender has gone.
 * When the request's body has not arrived whole, the connection is closed behind the reply.
 */
export function reply(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  text: string,
  headers: Headers = {},
  clock: Clock = systemClock,
): void {
  if (res.headersSent || res.destroyed) return
  res.statusCode = status
  for (const name in headers) res.setHeader(name, headers[name] as string)
  if (req.complete || !announcesBody(req)) {
    res.end(text)
    return
  }
  res.setHeader('Connection', 'close').setHeader('Content-Length', Buffer.byteLength(text))
  if (text === '') res.flushHeaders()
  else res.write(text)
  endAfterBody(req, res, clock)
}

/**
 * An error reply as application/problem+json. `Retry-After` is set on what may pass by itself (503).
 * `more` adds members beside those of RFC 9457.
 */
export function replyProblem(
  req: IncomingMessage,
  res: ServerResponse,
  code: ErrorCode,
  detail: string,
  options: { headers?: Headers; more?: Record<string, unknown>; clock?: Clock } = {},
): void {
  const { headers, more, clock } = options
  const body = { ...problem(code, detail), ...more }
  const head: Headers = {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    ...(body.status === 503 ? { 'Retry-After': RETRY_AFTER_SECONDS } : {}),
    ...headers,
  }
  reply(req, res, body.status, JSON.stringify(body), head, clock)
}

/**
 * Ends a reply that is already written, when the rest of the body has come or LINGER_MS are over. Closing a socket
 * with unread bytes in it resets the connection, and a sender that is still writing would lose the reply.
 */
function endAfterBody(req: IncomingMessage, res: ServerResponse, clock: Clock): void {
  const timer = clock.setTimeout(end, LINGER_MS)
  function end(): void {
    clock.clearTimeout(timer)
    res.end()
  }
  req.on('end', end).on('close', end)
  req.resume()
}
