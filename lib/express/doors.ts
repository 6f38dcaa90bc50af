import type { IncomingMessage, ServerResponse } from 'node:http'
import { MarketplaceError } from '../base/errors.js'
import { isThenable } from '../base/waiting.js'
import type { BodyRequest } from './body.js'
import { type Given, givenWith } from './given.js'
import { cutOff, reply } from './reply.js'
import { createTakeDelivery, type ReceiverOptions } from './take-delivery.js'

/** A request handler of Express 4 and 5, by shape. */
export type Middleware = (req: BodyRequest, res: ServerResponse, next?: unknown) => void

/**
 * Where deliveries arrive, and which listener answers all other requests.
 *
 * @example marketplace.listener({ path: '/webhooks/marketplace', otherwise: app })
 */
export interface ListenerOptions {
  /** The path before the delivery secret, such as `/webhooks/marketplace`. It is case-sensitive. */
  path: string
  /** Answers every request outside of `path`, and receives it unchanged. Without it they get 404. */
  otherwise?: RequestListener | undefined
}

/** A listener for `createServer` of `node:http`, `node:https` and `node:http2`. A rejection counts as an error. */
// biome-ignore lint/suspicious/noExplicitAny: an app of any framework fits, with its own types of requests.
export type RequestListener = (req: any, res: any) => unknown

/** The two entrances for deliveries, middleware and a listener; see `createTakeDelivery` for their replies. */
export function createDoors(
  options: ReceiverOptions & {
    /** Called with the error that `otherwise` threw or rejected with, and with what returns what it was given. */
    onOtherwiseError?: (error: unknown, given: () => Given) => void
  },
) {
  const { clock, onOtherwiseError = () => {} } = options
  const takeDelivery = createTakeDelivery(options)

  function callOtherwise(otherwise: RequestListener, req: IncomingMessage, res: ServerResponse): void {
    const fail = (error: unknown) => {
      // Express cuts the path of a mount off `url`.
      const { url, originalUrl } = req as BodyRequest & { originalUrl?: unknown }
      onOtherwiseError(error, () => givenWith(req, [url, originalUrl], hasBody(req) ? undefined : ''))
      if (res.headersSent) cutOff(res, req)
      else reply(req, res, 500, '', {}, clock)
    }
    try {
      const result = otherwise(req, res)
      if (isThenable(result)) Promise.resolve(result).catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  return {
    /**
     * The middleware that takes deliveries at `<mount>/<secret>`. It answers every request itself, never throws for one, and
     * never calls `next`. Throws `argument_invalid` if it is called without a request. It declares `next` because adapters
     * of other frameworks count parameters: they treat a function with three as Express middleware.
     */
    router: function receiveDelivery(req, res, _next) {
      if (req === undefined)
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot take a delivery: there is no request; pass marketplace.router to app.use, do not call it',
        )
      takeDelivery(req, res, segmentAt(pathOf(req.url), 0))
    } satisfies Middleware as Middleware,

    /**
     * Returns a listener for `createServer` that takes deliveries at `<path>/<secret>` before a framework sees them, and
     * passes every other request to `otherwise`. It answers every request at or below `path`, as `app.use(path, router)`
     * does: a wrong secret gets its 404 here.
     *
     * When `otherwise` throws or rejects, the process continues: the request gets an empty 500, or its connection is closed
     * if the reply has begun.
     *
     * Throws `argument_invalid` at once when an option is wrong.
     */
    listener(where: ListenerOptions): RequestListener {
      const mount = mountPath(where)
      const { otherwise } = where

      return function handleRequest(req: IncomingMessage, res: ServerResponse): void {
        const path = pathOf(req.url)
        if (path.startsWith(mount) && (path.length === mount.length || path[mount.length] === '/')) {
          takeDelivery(req as BodyRequest, res, segmentAt(path, mount.length))
        } else if (otherwise === undefined) {
          reply(req, res, 404, '', {}, clock)
        } else {
          callOtherwise(otherwise, req, res)
        }
      }
    },
  }
}

/** Whether a request has a body (RFC 9112, 6.3). Over HTTP/2 a body needs neither header. */
function hasBody({ headers, httpVersionMajor, method }: IncomingMessage): boolean {
  const isFramed = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  return isFramed || (httpVersionMajor > 1 && method !== 'GET' && method !== 'HEAD')
}

/** The path without its trailing slash; '' for `/`. */
function mountPath(options: unknown): string {
  const { path, otherwise } = (options ?? {}) as Record<string, unknown>
  const refuse = (why: string) =>
    new MarketplaceError('argument_invalid', `Cannot create the listener: ${why}`)
  if (typeof path !== 'string' || !path.startsWith('/')) throw refuse('path must begin with /')
  if (/[?#]/.test(path)) throw refuse('path must have no query and no fragment')
  if (!URL.canParse(path, 'http://host') || new URL(path, 'http://host').pathname !== path) {
    // Requests carry paths in this form only, so another form would never match.
    throw refuse(
      'path must be written as in a URL: percent-encoded, without . and .. segments, not beginning with //',
    )
  }
  if (otherwise !== undefined && typeof otherwise !== 'function') {
    throw refuse('otherwise must be a function (req, res)')
  }
  const mount = path.replace(/(?<!\/)\/+$/, '')
  if (mount === '' && otherwise)
    throw refuse('the path / covers every request and leaves none for otherwise; choose a longer path')
  return mount
}

/** Scheme and host of a request target in absolute form, as some proxies send it (RFC 9112, 3.2.2). */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i
const SLASH = 47

/** The path of a request target, without origin and query, not decoded; '' when the target has none. */
function pathOf(url: unknown): string {
  if (typeof url !== 'string') return ''
  const target = url.charCodeAt(0) === SLASH ? url : url.replace(ORIGIN, '')
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** The path after the slash at `start`, decoded, without a trailing slash; '' when it cannot be decoded. */
function segmentAt(path: string, start: number): string {
  const end = path.length - 1
  const presented = path.slice(start + 1, path.charCodeAt(end) === SLASH ? end : undefined)
  if (!presented.includes('%')) return presented
  try {
    return decodeURIComponent(presented)
  } catch {
    return ''
  }
}
