import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { decode, notUtf8, tooLarge, unreadable, withoutBom } from './body-text.js'

/**
 * A request as Node gives it. `body` is set when an earlier middleware has read the request; `rawBody` where the app
 * stores the bytes too, as many do in the `verify` option of their parser, and some hosts for every request.
 */
export type BodyRequest = IncomingMessage & { body?: unknown; rawBody?: unknown; _body?: unknown }

/** The text of the body, or the value that an earlier middleware has parsed it into. */
export type Body = { text: string } | { parsed: unknown }

/**
 * The body of a request that an earlier middleware has read: the bytes or the text where it has left them, else the
 * value that it has parsed. A value that cannot be the JSON that was sent is refused, not recorded as if it were.
 *
 * Throws `body_too_large`, `body_not_utf8`, `body_already_read` or `content_type_unsupported`.
 */
export function bodyReadBefore(req: BodyRequest, limitBytes: number, isAnnounced: boolean): Body {
  const { body, rawBody } = req
  if (isWhole(rawBody, req.headers['content-encoding'])) return { text: textOf(req, rawBody, limitBytes) }
  if (body instanceof Uint8Array || typeof body === 'string') return { text: textOf(req, body, limitBytes) }
  if (!isAnnounced && (body === undefined || isEmptyObject(body))) return { text: '' }

  // Express 4's body middleware leaves `{}` where it reads nothing, and marks what it has read with `_body`. A short
  // body may really have been `{}`: no event fits into so few bytes, so none is lost by believing it.
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

/** Some apps store the bytes before they are decompressed; those are of no use. */
function isWhole(rawBody: unknown, contentEncoding: string | undefined): rawBody is Uint8Array | string {
  if (typeof rawBody === 'string') return rawBody !== ''
  return rawBody instanceof Uint8Array && rawBody.length > 0 && (!contentEncoding || isUtf8(rawBody))
}

function textOf(req: IncomingMessage, body: Uint8Array | string, limitBytes: number): string {
  if (typeof body !== 'string') {
    if (body.byteLength > limitBytes) throw tooLarge(limitBytes)
    return decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
  }
  const size = Buffer.byteLength(body)
  if (size > limitBytes) throw tooLarge(limitBytes)
  // Parsers put U+FFFD in place of bytes that are not UTF-8, and then the size is no longer the one that was announced.
  const announced = req.headers['content-encoding'] ? Number.NaN : Number(req.headers['content-length'])
  if (size > announced && body.includes('\ufffd')) throw notUtf8()
  return withoutBom(body)
}

/**
 * Whether a parser of forms was given JSON: it takes the text up to the first `=`, `&` or bracket for the name of a
 * field, so the first name begins as only JSON does. The content type may be any: `urlencoded({ type: '*' + '/*' })`.
 */
function isForm(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  for (const name in body) return /^\s*[{[]/.test(name)
  return false
}

function isFormOrXml(contentType = ''): boolean {
  return /^\s*[\w.+-]+\/([\w.-]+\+)?(x-www-form-urlencoded|xml)\s*(;|$)/i.test(contentType)
}

/** True for a value that holds no envelope; a parser for JSON may have been told to read bodies of every content type. */
function isEnvelopeless(body: unknown): boolean {
  const values: unknown[] = Array.isArray(body) ? body : [body]
  return !values.some((value) => typeof (value as { entity_name?: unknown } | null)?.entity_name === 'string')
}

/**
 * A parsed value as JSON has it: a `reviver` or a parser of the app's own may have put dates, bigints or objects of
 * classes in place of text and numbers. A value that is nested too deeply, or in a circle, is left as it is.
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
