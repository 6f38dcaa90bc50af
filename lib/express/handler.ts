import type { IncomingMessage, ServerResponse } from 'node:http'
import { MarketplaceError } from '../errors.js'
import type { BodyRequest } from './body-read-before.js'
import { cutOff, reply } from './reply.js'
import { pathOf, segmentAt } from './request-path.js'
import { createTakeDelivery, type ReceiverOptions } from './take-delivery.js'

/**
 * Where deliveries arrive, and who answers all other requests.
 *
 * @example marketplace.handler({ path: '/webhooks/marketplace', otherwise: app })
 */
export interface HandlerOptions {
  /** The path before the delivery secret, such as `/webhooks/marketplace`. Upper and lower case are different. */
  path: string
  /** Answers every request outside of `path`, and sees it unchanged. Without it they get 404. */
  otherwise?: RequestListener | undefined
}

/** What `createServer` of `node:http`, `node:https` and `node:http2` takes. A rejection counts as an error. */
// biome-ignore lint/suspicious/noExplicitAny: an app of any framework fits, with its own types of requests.
export type RequestListener = (req: any, res: any) => unknown

/**
 * Returns a listener for `createServer` that takes deliveries at `<path>/<secret>` before any framework sees them, and
 * hands every other request to `otherwise`. All that is at or below `path` is its own, as with `app.use(path, router)`: a
 * wrong secret gets its 404 here.
 *
 * An `otherwise` that throws or rejects does not end the process: the request is answered with an empty 500, or cut off
 * where its reply has begun, and `onError` gets the error.
 *
 * Throws `argument_invalid` at once when an option is wrong.
 */
export function createHandler(
  receiver: ReceiverOptions & { onError?: ((error: unknown) => void) | undefined },
  options: HandlerOptions,
): RequestListener {
  const { clock, onError = () => {} } = receiver
  const mount = mountPath(options)
  const { otherwise } = options
  const takeDelivery = createTakeDelivery(receiver)

  return function handleRequest(req: IncomingMessage, res: ServerResponse): void {
    const path = pathOf(req.url)
    if (isBelow(path)) {
      takeDelivery(req as BodyRequest, res, segmentAt(path, mount.length))
    } else if (otherwise === undefined) {
      reply(req, res, 404, '', {}, clock)
    } else {
      callOtherwise(otherwise, req, res)
    }
  }

  function isBelow(path: string): boolean {
    return path.startsWith(mount) && (path.length === mount.length || path[mount.length] === '/')
  }

  function callOtherwise(listener: RequestListener, req: IncomingMessage, res: ServerResponse): void {
    const fail = (error: unknown) => {
      onError(error)
      if (res.headersSent) cutOff(res, req)
      else reply(req, res, 500, '', {}, clock)
    }
    try {
      const result = listener(req, res)
      if (isThenable(result)) Promise.resolve(result).catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

/** Also a promise of another library than the language's own. */
function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof (result as { then?: unknown } | null | undefined)?.then === 'function'
}

/** The path without its trailing slash; '' for `/`. */
function mountPath(options: unknown): string {
  const { path, otherwise } = (options ?? {}) as Record<string, unknown>
  const refuse = (why: string) =>
    new MarketplaceError('argument_invalid', `Cannot create the handler: ${why}`)
  if (typeof path !== 'string' || !path.startsWith('/')) throw refuse('path must begin with /')
  if (/[?#]/.test(path)) throw refuse('path must have no query and no fragment')
  if (!URL.canParse(path, 'http://host') || new URL(path, 'http://host').pathname !== path) {
    // Requests carry paths in this form only, so that another one would never match.
    throw refuse(
      'path must be as it stands in a URL: percent-encoded, without . and .. segments or // in front',
    )
  }
  if (otherwise !== undefined && typeof otherwise !== 'function') {
    throw refuse('otherwise must be a function (req, res)')
  }
  const mount = path.replace(/\/+$/, '')
  if (mount === '' && otherwise) throw refuse('below / there is no request left for otherwise')
  return mount
}
