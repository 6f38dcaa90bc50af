import type { ServerResponse } from 'node:http'
import { MarketplaceError } from '../base/errors.js'
import type { BodyRequest } from './body-read-before.js'
import { createListener, type ListenerOptions, pathOf, segmentAt } from './listener.js'
import { createTakeDelivery, type ReceiverOptions } from './take-delivery.js'

/** A request handler of Express 4 and 5, by shape. */
export type Middleware = (req: BodyRequest, res: ServerResponse, next?: unknown) => void

export type { DeliveryOutcome, ReceiverOptions } from './take-delivery.js'

/**
 * Returns the middleware that takes deliveries at `<mount>/<secret>`; see `createTakeDelivery` for its replies. Mount it
 * with `app.use(path, …)`, or pass it to `node:http` or `node:http2` directly. It answers every request itself, never
 * throws for one, and never calls `next`. Throws `argument_invalid` if it is called without a request. It declares `next` because adapters of other frameworks count parameters: they treat a
 * function with three as Express middleware.
 */
export function createReceiver(options: ReceiverOptions): Middleware {
  const takeDelivery = createTakeDelivery(options)

  return function receiveDelivery(req, res, _next) {
    if (req === undefined)
      throw new MarketplaceError(
        'argument_invalid',
        'Cannot take a delivery: there is no request; pass marketplace.router to app.use, do not call it',
      )
    takeDelivery(req, res, segmentAt(pathOf(req.url), 0))
  }
}

/** The two entrances for deliveries: middleware inside a framework, and a listener in front of it. */
export function createDoors(
  options: ReceiverOptions & {
    /** Called with the error that `otherwise` threw or rejected with. */
    onOtherwiseError?: (error: unknown) => void
  },
) {
  const { onOtherwiseError, ...receiver } = options
  return {
    router: createReceiver(receiver),
    listener: (where: ListenerOptions) => createListener({ ...receiver, onError: onOtherwiseError }, where),
  }
}
