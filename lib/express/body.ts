import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { Clock } from '../base/clock.js'
import { createDeadlines } from '../base/deadlines.js'
import { type Body, jsonOf, notUtf8, tooLarge, unreadable } from './envelopes.js'
import { createOpenBodies } from './open-bodies.js'

/**
 * A request of `node:http`. An earlier middleware that reads the request sets `body`. Many apps also store the bytes in
 * `rawBody` (in the `verify` option of their parser), and some hosts do so for every request.
 */
export type BodyRequest = IncomingMessage & {
  /** What an earlier middleware has read, parsed or not. */
  body?: unknown
  /** The bytes that it has read. */
  rawBody?: unknown
  /** The parsers of Express set it when they have read the request. */
  _body?: unknown
}

interface BodyOptions {
  /** Most bytes a body may have, before and after decompression. */
  limitBytes: number
  /** Time from the call until the last byte must have arrived. One timer serves all bodies. */
  timeoutMs: number
  /** Most bytes of memory for all bodies under way; the default is that of `createOpenBodies`. */
  openBodiesBytes?: number | undefined
  clock: Clock
}

/**
 * Returns `readBody(req, take, refuse)`, which reads the body of a delivery and then calls either `take` with the body
 * or `refuse` with the reason, once. It throws at once when the headers already show the reason. An error that `take`
 * throws goes to `refuse` too, or is thrown if the body was read before.
 *
 * Any content type but multipart is accepted, as long as the text is UTF-8. A body that the app's own middleware has read
 * comes from the request, any other is read here; see docs/decisions/bodies-read-before.md.
 *
 * Reasons are `content_type_unsupported`, `body_encoding_unsupported`, `body_encoding_broken`, `body_not_utf8`,
 * `body_too_large`, `body_timeout`, `body_incomplete` or `body_already_read`. Messages never contain the body.
 */
export function createBodyReader({ limitBytes, timeoutMs, openBodiesBytes, clock }: BodyOptions) {
  const deadlines = createDeadlines(timeoutMs, clock)
  const openBody = createOpenBodies(limitBytes, openBodiesBytes)

  return function readBody(req: BodyRequest, take: (body: Body) => void, refuse: Refuse): void {
    checkContentType(req.headers['content-type'])
    if (Number(req.headers['content-length']) > limitBytes) throw tooLarge(limitBytes)
    if (req.readableDidRead || req.readableEnded) {
      take({ ...bodyReadBefore(req, limitBytes), sent: sentBytes(req) })
      return
    }
    const decompress = decompressorFor(req.headers['content-encoding'])
    const takeBytes = (bytes: Buffer) => {
      // A middleware that calls `setEncoding` decodes the chunks, and not every encoding can be undone.
      const sent = req.readableEncoding === null ? bytes : undefined
      take({ bytes: decompress ? decompressed(decompress, bytes, limitBytes) : bytes, sent })
    }
    if (req.destroyed) takeBytes(bytesLeft(req, limitBytes))
    else readBytes(req, refuse, takeBytes)
  }

  /** Collects the bytes. This is the hot path, so it pipes no stream. */
  function readBytes(req: IncomingMessage, refuse: Refuse, take: (bytes: Buffer) => void): void {
    const collected = openBody(stop)
    let isOpen = true
    let cancelDeadline = () => {}

    function stop(error: unknown): void {
      if (!isOpen) return
      isOpen = false
      cancelDeadline()
      collected.close()
      req.off('data', onData)
      refuse(error)
    }

    function onData(data: Buffer | string): void {
      const chunk = asBytes(req, data)
      if (chunk instanceof Uint8Array) collected.add(chunk)
      // The error is not thrown, because one that is thrown in a listener ends the process.
      else stop(new TypeError('the request does not consist of bytes'))
    }

    function onEnd(): void {
      if (!isOpen) return
      isOpen = false
      cancelDeadline()
      const bytes = collected.close()
      try {
        // An HTTP/2 stream also emits `end` when its sender resets it.
        if (http2StreamOf(req)?.aborted) throw incomplete()
        take(bytes)
      } catch (error) {
        refuse(error)
      }
    }

    req.on('data', onData)
    req.on('end', onEnd)
    // A request without an `error` listener emits no error, and `close` follows each one.
    req.on('close', () => {
      if (!req.readableEnded) stop(incomplete())
    })
    // An earlier middleware may have paused the request, which `on('data')` does not undo.
    if (req.isPaused()) req.resume()
    // The deadline is set last: a method that another middleware has replaced may throw, and then the request is
    // refused already.
    cancelDeadline = deadlines.set(() =>
      stop(unreadable('body_timeout', `it was not complete after ${timeoutMs} ms`)),
    )
  }
}

type Refuse = (reason: unknown) => void

/**
 * The body of a request that was destroyed before anybody read it: its sender has closed the connection while an earlier
 * middleware waited. If all of it had arrived, Node still has it. Over HTTP/2 `complete` is true after a reset too.
 *
 * Throws `body_incomplete` or `body_too_large`.
 */
function bytesLeft(req: IncomingMessage, limitBytes: number): Buffer {
  const left: unknown = req.complete && !http2StreamOf(req) ? req.read() : null
  if (typeof left !== 'string' && !(left instanceof Uint8Array)) throw incomplete()
  const bytes = asBytes(req, left as Buffer | string)
  if (bytes.length > limitBytes) throw tooLarge(limitBytes)
  return bytes
}

/** What a request emits or returns is text only if an earlier middleware called `setEncoding`. */
function asBytes(req: IncomingMessage, data: Buffer | string): Buffer {
  return typeof data === 'string' ? Buffer.from(data, req.readableEncoding ?? 'utf8') : data
}

/** Whether the headers announce a body of at least one byte. Over HTTP/2, also a stream that continues after the headers. */
export function announcesBody(req: IncomingMessage): boolean {
  const { headers } = req
  return (
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length'] ?? 0) > 0 ||
    http2StreamOf(req)?.endAfterHeaders === false
  )
}

/** The stream of a request over HTTP/2, by the compatibility API of `node:http2`; undefined over HTTP/1. */
export function http2StreamOf(req: IncomingMessage): Http2Stream | undefined {
  return req.httpVersionMajor >= 2 ? (req as { stream?: Http2Stream }).stream : undefined
}

interface Http2Stream {
  readonly endAfterHeaders?: boolean
  readonly aborted?: boolean
  close(code?: number): void
  destroy(): unknown
}

function checkContentType(contentType: string | undefined): void {
  if (contentType === undefined || contentType === 'application/json') return
  if (isMultipart(contentType)) {
    throw unreadable('content_type_unsupported', 'multipart bodies are not accepted')
  }
  for (const [, charset = ''] of contentType.matchAll(/;\s*charset\s*=\s*["']?([^\s;"']*)/gi)) {
    if (!/^(utf-?8|(us-)?ascii|)$/i.test(charset)) {
      throw unreadable('content_type_unsupported', 'the character set must be utf-8')
    }
  }
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer

const DECOMPRESSORS = new Map<string, Decompress | undefined>([
  ['', undefined],
  ['identity', undefined],
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
])

/** A list of encodings is refused like an unknown one: each layer multiplies the cost of decompressing a small body. */
function decompressorFor(contentEncoding = ''): Decompress | undefined {
  const name = contentEncoding.trim().toLowerCase()
  if (!DECOMPRESSORS.has(name)) {
    throw unreadable('body_encoding_unsupported', 'its content encoding must be one of gzip, deflate, br')
  }
  return DECOMPRESSORS.get(name)
}

/**
 * zlib decompresses in chunks of 16 KiB and stops at the first chunk that exceeds the limit. It is not left to zlib's threads:
 * 64 KiB take less time than the JSON of them, and thousands of bodies that wait for a thread take 120 kB each.
 */
function decompressed(decompress: Decompress, bytes: Buffer, limitBytes: number): Buffer {
  try {
    return decompress(bytes, { maxOutputLength: limitBytes })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes)
    // Without the cause: the log would show it as a fault of the app.
    throw unreadable('body_encoding_broken', 'it cannot be decompressed')
  }
}

function incomplete(): Error {
  return unreadable('body_incomplete', 'the connection closed before the whole body had arrived')
}

/**
 * The body of a request that an earlier middleware has read: the bytes or the text if the middleware left them on the
 * request, otherwise the parsed value. A value that cannot be the JSON of the sender is refused, so it is never recorded.
 *
 * Throws `body_too_large`, `body_not_utf8`, `body_already_read` or `content_type_unsupported`.
 */
function bodyReadBefore(req: BodyRequest, limitBytes: number): Body {
  const { body, rawBody } = req
  if (isWhole(rawBody, req.headers['content-encoding'])) return whole(req, rawBody, limitBytes)
  if (body instanceof Uint8Array || typeof body === 'string') return whole(req, body, limitBytes)
  if ((body === undefined || isEmptyObject(body)) && !announcesBody(req)) return { text: '' }

  // Express 4's body middleware sets `{}` when it reads nothing, and sets `_body` on a request it has read. A short
  // body may really be `{}`. No event fits into 16 bytes, so accepting it loses none.
  const isLeftOver = isEmptyObject(body) && !req._body && !(Number(req.headers['content-length']) <= 16)
  if (body === undefined || isLeftOver) {
    throw unreadable(
      'body_already_read',
      'another middleware has read the request and left no req.body; mount the marketplace router before it',
    )
  }
  if (isForm(body) || (isEnvelopeless(body) && isFormOrXml(req.headers['content-type']))) {
    throw unreadable(
      'content_type_unsupported',
      'another middleware has parsed it as a form or as XML, not as JSON; mount the marketplace router before it, or send application/json',
    )
  }
  return { json: jsonOf(body) }
}

/** The bytes as they were sent, if the middleware left them. Most middleware leaves those that it has decompressed. */
function sentBytes(req: BodyRequest): Buffer | undefined {
  const left = req.rawBody instanceof Uint8Array ? req.rawBody : req.body
  if (!(left instanceof Uint8Array) || left.length === 0) return undefined
  if (sentValues(req, 'content-length').some((length) => Number(length) !== left.length)) return undefined
  const isEncoded = sentValues(req, 'content-encoding').some((name) => !/^(identity)?$/i.test(name))
  if (isEncoded && isUtf8(left)) return undefined
  return Buffer.from(left.buffer, left.byteOffset, left.byteLength)
}

/**
 * The values of a header as they were sent. Middleware that decompresses a body deletes or changes some in `headers`;
 * hosts that make requests of their own may set only `headers`.
 */
function sentValues({ rawHeaders = [], headers }: IncomingMessage, name: string): string[] {
  const sent = rawHeaders.filter((_value, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
  const present = headers[name]
  return sent.length > 0 || present === undefined ? sent : [present].flat()
}

/** Whether `rawBody` can be used: some apps store the compressed bytes. */
function isWhole(rawBody: unknown, contentEncoding: string | undefined): rawBody is Uint8Array | string {
  if (typeof rawBody === 'string') return rawBody !== ''
  return rawBody instanceof Uint8Array && rawBody.length > 0 && (!contentEncoding || isUtf8(rawBody))
}

function whole(req: IncomingMessage, body: Uint8Array | string, limitBytes: number): Body {
  if (typeof body !== 'string') {
    if (body.byteLength > limitBytes) throw tooLarge(limitBytes)
    return { bytes: Buffer.from(body.buffer, body.byteOffset, body.byteLength) }
  }
  const size = Buffer.byteLength(body)
  if (size > limitBytes) throw tooLarge(limitBytes)
  // Parsers replace bytes that are not UTF-8 by U+FFFD, so the text becomes larger than the announced body.
  const announced = req.headers['content-encoding'] ? Number.NaN : Number(req.headers['content-length'])
  if (size > announced && body.includes('\ufffd')) throw notUtf8()
  return { text: body }
}

/**
 * Whether a form parser has parsed JSON. It reads the text up to the first `=`, `&` or bracket as the name of a field,
 * so the first name begins with `{` or `[`. The content type may be any: `urlencoded({ type: '*' + '/*' })`.
 */
function isForm(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  for (const name in body) return /^\s*[{[]/.test(name)
  return false
}

export function isMultipart(contentType = ''): boolean {
  return /^\s*multipart\//i.test(contentType)
}

/** A form that is not multipart, or XML. */
export function isFormOrXml(contentType = ''): boolean {
  return /^\s*[\w.+-]+\/([\w.-]+\+)?(x-www-form-urlencoded|xml)\s*(;|$)/i.test(contentType)
}

/** Whether the value holds no envelope. An app may have configured its JSON parser to read every content type. */
function isEnvelopeless(body: unknown): boolean {
  const values: unknown[] = Array.isArray(body) ? body : [body]
  return !values.some((value) => typeof (value as { entity_name?: unknown } | null)?.entity_name === 'string')
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  )
}
