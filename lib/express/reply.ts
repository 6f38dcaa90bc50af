import { type IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, SECOND, systemClock } from '../clock.js'
import { type ErrorCode, problem } from '../errors.js'
import { announcesBody, http2StreamOf } from './body.js'

/** `Retry-After` for causes that are expected to pass by themselves. */
const RETRY_AFTER_SECONDS = '5'
/** How long a refused sender may go on sending before its connection is cut. */
const LINGER_MS = SECOND / 2

type Headers = Readonly<Record<string, string>>

/**
 * Answers with text, once: nothing happens when the reply has begun or the sender has gone. When the request's body has
 * not arrived whole, the connection (over HTTP/2 the stream) is closed behind the reply.
 *
 * Never throws, whatever other middlewares have made of `req` and `res`: a reply that cannot be sent ends the connection.
 */
export function reply(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  text: string,
  headers: Headers = {},
  clock: Clock = systemClock,
): void {
  try {
    if (res.headersSent || res.destroyed) return
    if (!req.complete && announcesBody(req)) {
      setHead(res, status, headers)
      replyBeforeBody(req, res, text, clock)
      return
    }
    if (isUntouched(res)) res.writeHead(status, asList(headers, text))
    else setHead(res, status, headers)
    res.end(text)
  } catch {
    cutOff(res, req)
  }
}

const { writeHead } = ServerResponse.prototype

/**
 * Whether headers may be written as a list, which is quicker than setting one after the other.
 * Middlewares that replace `writeHead` are not all prepared for a list (on-headers before 1.1.0, which compression and
 * express-session use), and HTTP/2 has a class of its own.
 */
function isUntouched(res: ServerResponse): boolean {
  return res.writeHead === writeHead
}

/** Names and values in turn, the length of `text` among them. */
function asList(headers: Headers, text: string): string[] {
  const list = ['Content-Length', String(Buffer.byteLength(text))]
  for (const name in headers) list.push(name, headers[name] as string)
  return list
}

function setHead(res: ServerResponse, status: number, headers: Headers): void {
  res.statusCode = status
  for (const name in headers) res.setHeader(name, headers[name] as string)
}

/** An error reply as application/problem+json; see `errorHeaders`. */
export function replyProblem(
  req: IncomingMessage,
  res: ServerResponse,
  code: ErrorCode,
  detail: string,
  options: { headers?: Headers; clock?: Clock } = {},
): void {
  const { headers, clock } = options
  const body = problem(code, detail)
  const head = { ...errorHeaders(body.status, 'application/problem+json'), ...headers }
  reply(req, res, body.status, JSON.stringify(body), head, clock)
}

/** No cache may store an error; `Retry-After` is set on what may pass by itself (503). */
export function errorHeaders(status: number, contentType: string): Headers {
  return {
    'Content-Type': contentType,
    'Cache-Control': 'no-store',
    ...(status === 503 ? { 'Retry-After': RETRY_AFTER_SECONDS } : {}),
  }
}

function replyBeforeBody(req: IncomingMessage, res: ServerResponse, text: string, clock: Clock): void {
  if (http2StreamOf(req)) {
    res.end(text)
  } else {
    res.setHeader('Connection', 'close')
    res.setHeader('Content-Length', Buffer.byteLength(text))
    if (text === '') res.flushHeaders()
    else res.write(text)
  }
  endAfterBody(req, res, clock)
}

/**
 * Ends a reply that is already written, when the rest of the body has come or LINGER_MS are over. Closing a socket
 * with unread bytes in it resets the connection, and a sender that is still writing would lose the reply.
 */
function endAfterBody(req: IncomingMessage, res: ServerResponse, clock: Clock): void {
  const timer = clock.setTimeout(() => {
    end()
    // Only here: Node 20 aborts the process when a stream that ends by itself is closed in the same turn.
    endStream(req, res)
  }, LINGER_MS)
  function end(): void {
    clock.clearTimeout(timer)
    // What is thrown in a timer or a listener ends the process.
    try {
      res.end()
    } catch {
      cutOff(res, req)
    }
  }
  req.on('end', end).on('close', end)
  req.resume()
}

/** RFC 9113, 8.1: after a complete reply, NO_ERROR asks the sender to stop sending. */
function endStream(req: IncomingMessage, res: ServerResponse): void {
  try {
    http2StreamOf(req)?.close(0)
  } catch {
    cutOff(res, req)
  }
}

/** Ends the connection, over HTTP/2 the stream. Never throws. */
export function cutOff(res: ServerResponse, req: IncomingMessage): void {
  for (const streamOf of [() => res, () => http2StreamOf(req) ?? req.socket]) {
    try {
      streamOf().destroy()
      return
    } catch {
      // A middleware has replaced its methods.
    }
  }
}
