import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type Body, notUtf8, tooLarge, unreadable } from './envelopes.js'

/**
 * A request of `node:http`. An earlier middleware that reads the request sets `body`. Many apps also store the bytes in
 * `rawBody` (in the `verify` option of their parser), and some hosts do so for every request.
 */
export type BodyRequest = IncomingMessage & { body?: unknown; rawBody?: unknown; _body?: unknown }

/**
 * The body of a request that an earlier middleware has read: the bytes or the text if the middleware left them on the
 * request, otherwise the parsed value. A value that cannot be the JSON of the sender is refused, so it is never recorded.
 *
 * Throws `body_too_large`, `body_not_utf8`, `body_already_read` or `content_type_unsupported`.
 */
export function bodyReadBefore(req: BodyRequest, limitBytes: number, isAnnounced: boolean): Body {
  const { body, rawBody } = req
  if (isWhole(rawBody, req.headers['content-encoding'])) return whole(req, rawBody, limitBytes)
  if (body instanceof Uint8Array || typeof body === 'string') return whole(req, body, limitBytes)
  if (!isAnnounced && (body === undefined || isEmptyObject(body))) return { text: '' }

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
  return { parsed: asJson(body) }
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

function isFormOrXml(contentType = ''): boolean {
  return /^\s*[\w.+-]+\/([\w.-]+\+)?(x-www-form-urlencoded|xml)\s*(;|$)/i.test(contentType)
}

/** Whether the value holds no envelope. An app may have configured its JSON parser to read every content type. */
function isEnvelopeless(body: unknown): boolean {
  const values: unknown[] = Array.isArray(body) ? body : [body]
  return !values.some((value) => typeof (value as { entity_name?: unknown } | null)?.entity_name === 'string')
}

/**
 * The parsed value as plain JSON: a `reviver` or the app's own parser may have replaced text and numbers by dates,
 * bigints or class instances. A value that is circular or nested too deeply is returned unchanged.
 */
function asJson(body: unknown): unknown {
  try {
    const text = JSON.stringify(body, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
    return JSON.parse(text)
  } catch {
    return body
  }
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  )
}
