import { type Clock, HOUR, SECOND } from '../base/clock.js'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'
import { orAborted, withDeadline } from '../base/waiting.js'
import { untraced } from '../telemetry/spans.js'

interface HttpRequest {
  method: 'GET' | 'POST'
  url: URL
  headers?: Record<string, string>
  body?: string
  signal?: AbortSignal | undefined
  /** The address contains a secret, so it must not appear in a trace. */
  isSecretInUrl?: boolean
}

export interface HttpReply {
  status: number
  retryAfter: string | null
  contentType: string | null
  /** The body as JSON; undefined when it is not JSON. */
  json: unknown
  /** The body is a page (HTML or XML): an error with every status. */
  isPage: boolean
}

export type PlatformCall = 'read' | 'token'

/** For the report on the platform. */
export interface PlatformNotes {
  /** A reply to a call has neither the record nor the token that was asked for. It may repeat what was `sent`. */
  noteRefusal(call: PlatformCall, reply: HttpReply, sent: readonly string[]): void
  /** A reply has a token, with this lifetime as the platform sent it. */
  noteToken(expiresIn: unknown): void
}

export interface Http {
  send(request: HttpRequest): Promise<HttpReply>
  /** Aborts all calls, which would keep the process alive until their deadline, and every later one. */
  close(): void
}

/**
 * The only place that calls the platform. One deadline covers connecting, headers and body. The decoded body has a
 * maximum size. Redirects are refused, so that no header or query reaches another server.
 *
 * `send` rejects only with a new `MarketplaceError`: an error of fetch can contain the address, and with it a secret.
 */
export function createHttp(options: {
  fetch?: typeof globalThis.fetch | undefined
  timeoutMs: number
  maxReplyBytes?: number | undefined
  clock: Clock
}): Http {
  const { fetch = globalThis.fetch, timeoutMs, maxReplyBytes = 1024 * 1024, clock } = options
  const underWay = new Set<AbortController>()
  let isClosed = false

  async function send(request: HttpRequest): Promise<HttpReply> {
    const { method, url, headers = {}, body, signal, isSecretInUrl = false } = request
    const controller = new AbortController()
    underWay.add(controller)
    const onAbort = () => controller.abort()
    if (isClosed || signal?.aborted) controller.abort()
    signal?.addEventListener('abort', onAbort, { once: true })

    async function exchange(): Promise<HttpReply> {
      const call = () =>
        fetch(url, {
          method,
          headers,
          redirect: 'manual',
          signal: controller.signal,
          ...(body === undefined ? {} : { body }),
        })
      const response = await (isSecretInUrl ? untraced(call) : call())
      const isRedirect = response.status >= 300 && response.status < 400
      // A fetch of the app's own may hide the redirect (status 0), or follow it although it should not.
      if (isRedirect || response.type === 'opaqueredirect' || response.redirected) {
        response.body?.cancel().catch(() => {})
        throw failure('platform_redirected', 'it answered with a redirect, and redirects are not followed')
      }
      const text = await readText(response, maxReplyBytes)
      return {
        status: response.status,
        retryAfter: response.headers.get('retry-after'),
        contentType: response.headers.get('content-type'),
        json: parse(text),
        isPage: text.trimStart().startsWith('<'),
      }
    }

    try {
      // The exchange races with the signal, because a fetch of the app's own may ignore it.
      const reply = orAborted(exchange(), controller.signal)
      return await withDeadline(reply, timeoutMs, clock, () => {
        controller.abort()
        return failure('platform_timeout', `no complete answer within ${timeoutMs} ms`)
      })
    } catch (error) {
      if (error instanceof MarketplaceError) throw error
      if (isClosed || signal?.aborted) throw failure('platform_unreachable', 'the call was aborted')
      throw failure('platform_unreachable', `the connection failed (${networkCode(error)})`)
    } finally {
      signal?.removeEventListener('abort', onAbort)
      underWay.delete(controller)
    }
  }

  return {
    send,
    close() {
      isClosed = true
      for (const controller of underWay) controller.abort()
    },
  }
}

/** The URL of `path` below the address `base`. Throws `config_invalid` for an address that is not an absolute URL. */
export function platformUrl(base: string, path: string, query: Record<string, string> = {}): URL {
  // The address is checked first, because the error of `new URL` contains its input.
  if (!URL.canParse(base)) {
    throw new MarketplaceError(
      'config_invalid',
      'Cannot call the platform: its address is not an absolute URL. Correct platform.baseUrl and platform.authUrl',
    )
  }
  const url = new URL(base)
  url.pathname = url.pathname.replace(/(?<!\/)\/+$/, '') + path
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}

/**
 * A Retry-After header in ms from now, clamped to [1 s, 1 h]; undefined when it is missing or unreadable.
 * Reads both forms of RFC 9110: seconds and an HTTP date.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  if (!header) return undefined
  const text = header.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(HOUR, Math.max(SECOND, ms))
}

/** A `fetch` for calls that a function of the app makes, and the limit (429) that the last limited reply to it has shown. */
export function watchLimit(fetch: typeof globalThis.fetch, clock: Pick<Clock, 'now'>) {
  let limit: { retryAfterMs?: number } | undefined
  const watched: typeof fetch = async (...call) => {
    const reply = await fetch(...call)
    if (reply.status === 429) {
      const waitMs = retryAfterMs(reply.headers.get('retry-after'), clock.now())
      limit = waitMs === undefined ? {} : { retryAfterMs: waitMs }
    }
    return reply
  }
  return { fetch: watched, limit: () => limit }
}

/** Counts decoded bytes: a small compressed reply can be huge. */
async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    // The decoder drops a byte order mark, which JSON.parse would refuse.
    if (done) return new TextDecoder().decode(Buffer.concat(chunks))
    bytes += value.byteLength
    if (bytes > maxBytes) {
      reader.cancel().catch(() => {})
      throw failure('platform_reply_too_large', `its answer is larger than ${maxBytes} bytes`)
    }
    chunks.push(value)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function failure(code: ErrorCode, why: string): MarketplaceError {
  return new MarketplaceError(code, `Cannot call the platform: ${why}`)
}

/** The system's code of a network error, such as ECONNREFUSED. Its message is not used: it can quote the address. */
function networkCode(error: unknown): string {
  let cause = error as { code?: unknown; cause?: unknown } | null | undefined
  for (let depth = 0; typeof cause === 'object' && cause !== null && depth < 5; depth++) {
    if (typeof cause.code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(cause.code)) return cause.code
    cause = cause.cause as typeof cause
  }
  return 'no further reason'
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether the body of a reply is an error, also with a good status. Error replies seen so far:
 * `{"success":false,"errors":[{"code","message"}]}`, `{"error":"…"}`, `{"message","status":"Error"}`, or an HTML page, with
 * 4xx, 5xx and at times with 200. An `error` of null, `""` or false is not one.
 */
export function isError({ json, isPage }: HttpReply): boolean {
  if (!isObject(json)) return isPage
  return json.success === false || Boolean(json.error) || json.status === 'Error'
}

/** Every code and message of an error reply as one text. It can quote the request, and be as long as a reply. */
export function errorText({ json }: HttpReply): string {
  return errorsOf(json)
    .flatMap((part) =>
      isObject(part) ? [part.code, part.error, part.error_description, part.message] : [part],
    )
    .filter((part, at, all): part is string => typeof part === 'string' && all.indexOf(part) === at)
    .join(' ')
}

/** Whether an error reply has this code. A message that quotes the request, such as a made-up business, has none. */
export function hasErrorCode({ json }: HttpReply, code: string): boolean {
  return errorsOf(json).some(
    (part) => part === code || (isObject(part) && (part.code === code || part.error === code)),
  )
}

function errorsOf(json: unknown): unknown[] {
  if (!isObject(json)) return []
  return [json, json.error, ...(Array.isArray(json.errors) ? json.errors.slice(0, 5) : [])]
}
