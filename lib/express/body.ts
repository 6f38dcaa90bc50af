import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { type Clock, SECOND, systemClock } from '../clock.js'
import { type ErrorCode, MarketplaceError } from '../errors.js'

/** A request as Node gives it; `body` is there when an earlier middleware has read the request. */
export type BodyRequest = IncomingMessage & { body?: unknown }

/** The text of the body, or the value an earlier middleware has already made of it. */
export type Body = { text: string } | { parsed: unknown }

export interface BodyOptions {
  /** Most bytes a body may have, before and after decompression. */
  limitBytes?: number | undefined
  /** Time from the call until the last byte must be here. */
  timeoutMs?: number | undefined
  clock?: Clock | undefined
}

/**
 * Reads the body of a delivery. The interface document does not state how deliveries are sent, so any content type
 * (or none) is taken as long as the text is UTF-8.
 *
 * Works behind an app's own body middleware too: what that has read is used, what it has left alone is read here.
 * Express 4's `express.json()` sets `req.body = {}` on requests it does not read, so a body counts as read only when
 * the stream says so.
 *
 * Rejects `content_type_unsupported`, `body_encoding_unsupported`, `body_encoding_broken`, `body_too_large`,
 * `body_timeout`, `body_incomplete`, `body_not_utf8` or `body_already_read`. Messages never hold the body.
 */
export async function readBody(req: BodyRequest, options: BodyOptions = {}): Promise<Body> {
  const { limitBytes = 65_536, timeoutMs = 10 * SECOND, clock = systemClock } = options

  checkContentType(req.headers['content-type'])
  if (Number(req.headers['content-length']) > limitBytes) throw tooLarge(limitBytes)
  if (req.readableDidRead || req.readableEnded) return bodyReadBefore(req, limitBytes)

  const decompress = decompressorFor(req.headers['content-encoding'])
  const bytes = await readBytes(req, limitBytes, timeoutMs, clock)
  return { text: decode(decompress ? await decompressed(decompress, bytes, limitBytes) : bytes) }
}

/** Whether the headers announce a body of at least one byte. */
export function announcesBody(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0
}

function checkContentType(contentType: string | undefined): void {
  if (contentType === undefined || contentType === 'application/json') return
  if (/^\s*multipart\//i.test(contentType)) {
    throw unreadable('content_type_unsupported', 'multipart bodies are not accepted')
  }
  for (const [, charset = ''] of contentType.matchAll(/;\s*charset\s*=\s*["']?([^\s;"']*)/gi)) {
    if (!/^(utf-?8|(us-)?ascii|)$/i.test(charset)) {
      throw unreadable('content_type_unsupported', 'the character set must be utf-8')
    }
  }
}

/** Collects the bytes as they were sent. No stream is piped and a body of one chunk is not copied: this is the hot path. */
function readBytes(
  req: IncomingMessage,
  limitBytes: number,
  timeoutMs: number,
  clock: Clock,
): Promise<Buffer> {
  if (req.destroyed) return Promise.reject(incomplete())

  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    // Arming and clearing costs 0.3 µs, less than finding out whether it is needed.
    const timer = clock.setTimeout(() => {
      stop(unreadable('body_timeout', `it was not complete after ${timeoutMs} ms`))
    }, timeoutMs)

    function stop(error: MarketplaceError): void {
      clock.clearTimeout(timer)
      req.off('data', onData)
      reject(error)
    }

    function onData(data: Buffer | string): void {
      // Text comes only where an earlier middleware has called `setEncoding`.
      const chunk = typeof data === 'string' ? Buffer.from(data, req.readableEncoding ?? 'utf8') : data
      size += chunk.length
      if (size > limitBytes) stop(tooLarge(limitBytes))
      else chunks.push(chunk)
    }

    req.on('data', onData)
    req.on('end', () => {
      clock.clearTimeout(timer)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size))
    })
    // A request without a listener for `error` keeps its errors to itself, and `close` comes after each.
    req.on('close', () => {
      if (!req.readableEnded) stop(incomplete())
    })
    // An earlier middleware may have paused the request, which `on('data')` does not undo.
    if (req.isPaused()) req.resume()
  })
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const DECOMPRESSORS = new Map<string, Decompress | undefined>([
  ['', undefined],
  ['identity', undefined],
  ['gzip', promisify(gunzip) as Decompress],
  ['x-gzip', promisify(gunzip) as Decompress],
  ['deflate', promisify(inflate) as Decompress],
  ['br', promisify(brotliDecompress) as Decompress],
])

/** A list of encodings is refused like an unknown one: each further layer multiplies what a small body can cost. */
function decompressorFor(contentEncoding = ''): Decompress | undefined {
  const name = contentEncoding.trim().toLowerCase()
  if (!DECOMPRESSORS.has(name)) {
    throw unreadable('body_encoding_unsupported', 'its content encoding must be one of gzip, deflate, br')
  }
  return DECOMPRESSORS.get(name)
}

/** zlib works in pieces of 16 KiB and stops at the first that passes the limit. */
async function decompressed(decompress: Decompress, bytes: Buffer, limitBytes: number): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: limitBytes })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes)
    throw unreadable('body_encoding_broken', 'it cannot be decompressed', cause)
  }
}

function bodyReadBefore(req: BodyRequest & { _body?: unknown }, limitBytes: number): Body {
  const { body } = req
  if (body instanceof Uint8Array) {
    if (body.byteLength > limitBytes) throw tooLarge(limitBytes)
    return { text: decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength)) }
  }
  if (typeof body === 'string') {
    if (Buffer.byteLength(body) > limitBytes) throw tooLarge(limitBytes)
    return { text: withoutBom(body) }
  }
  if (!announcesBody(req) && (body === undefined || isEmptyObject(body))) return { text: '' }
  // Express 4's body middleware leaves `{}` where it reads nothing, and marks what it has read with `_body`. A short
  // body may really have been `{}`: no event fits into so few bytes, so none is lost by believing it.
  const isLeftOver = isEmptyObject(body) && !req._body && !(Number(req.headers['content-length']) <= 16)
  if (body === undefined || isLeftOver) {
    throw unreadable(
      'body_already_read',
      'another middleware has read the request and left no req.body; mount the marketplace router before it',
    )
  }
  return { parsed: body }
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  )
}

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw unreadable('body_not_utf8', 'it is not valid UTF-8')
  return withoutBom(bytes.toString('utf8'))
}

function withoutBom(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function tooLarge(limitBytes: number): MarketplaceError {
  return unreadable('body_too_large', `it is larger than ${limitBytes} bytes`)
}

function incomplete(): MarketplaceError {
  return unreadable('body_incomplete', 'the connection ended before the body did')
}

function unreadable(code: ErrorCode, why: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError(code, `Cannot read the body of the delivery: ${why}`, { cause })
}
