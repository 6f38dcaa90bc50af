import { type IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, SECOND } from '../base/clock.js'
import { type ErrorCode, problem } from '../base/errors.js'
import { announcesBody, http2StreamOf } from './body.js'

/** The header for temporary causes, in seconds. */
export const RETRY_LATER = { 'Retry-After': '5' }
/** How long a refused sender may continue to send before its connection is closed. */
const LINGER_MS = SECOND / 2

type Headers = Readonly<Record<string, string>>

/**
 * Answers with text, once: does nothing when the reply has begun or the sender has disconnected. If the request's body
 * has not arrived completely, closes the connection (over HTTP/2 the stream) after the reply.
 *
 * Never throws, even if other middleware has changed `req` and `res`: a reply that cannot be sent closes the connection.
 */
export function reply(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  text: string,
  headers: Headers,
  clock: Clock,
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
 * Whether headers may be written as a list, which is faster than setting them one by one.
 * Not all middleware that replaces `writeHead` accepts a list (on-headers before 1.1.0, which compression and
 * express-session use), and HTTP/2 has another response class.
 */
function isUntouched(res: ServerResponse): boolean {
  return res.writeHead === writeHead
}

/** Header names and values in turn, including the length of `text`. */
function asList(headers: Headers, text: string): string[] {
  const list = ['Content-Length', String(Buffer.byteLength(text))]
  for (const name in headers) list.push(name, headers[name] as string)
  return list
}

function setHead(res: ServerResponse, status: number, headers: Headers): void {
  res.statusCode = status
  for (const name in headers) res.setHeader(name, headers[name] as string)
}

/** An error reply as application/problem+json with the members of `extension`; see `errorHeaders`. */
export function replyProblem(
  req: IncomingMessage,
  res: ServerResponse,
  code: ErrorCode,
  detail: string,
  options: { headers?: Headers; extension?: object; clock: Clock },
): void {
  const { headers, extension, clock } = options
  const body = { ...problem(code, detail), ...extension }
  const head = { ...errorHeaders(body.status, 'application/problem+json'), ...headers }
  reply(req, res, body.status, JSON.stringify(body), head, clock)
}

/** No cache may store an error. A 503 is temporary, so it carries `Retry-After`. */
export function errorHeaders(status: number, contentType: string): Headers {
  return {
    'Content-Type': contentType,
    'Cache-Control': 'no-store',
    ...(status === 503 ? RETRY_LATER : {}),
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
 * Ends a written reply once the rest of the body has arrived, or after LINGER_MS. Closing a socket with unread bytes
 * resets the connection, and a sender that is still writing would lose the reply.
 */
function endAfterBody(req: IncomingMessage, res: ServerResponse, clock: Clock): void {
  const timer = clock.setTimeout(() => {
    end()
    // The stream is closed here and not earlier: Node 20 aborts the process when a stream is closed in the turn in
    // which it ends by itself.
    endStream(req, res)
  }, LINGER_MS)
  function end(): void {
    clock.clearTimeout(timer)
    // An error thrown in a timer or a listener ends the process.
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

/** Closes the connection, over HTTP/2 the stream. Never throws. */
export function cutOff(res: ServerResponse, req: IncomingMessage): void {
  for (const streamOf of [() => res, () => http2StreamOf(req) ?? req.socket]) {
    try {
      streamOf().destroy()
      return
    } catch {
      // Another middleware has replaced the methods.
    }
  }
}
