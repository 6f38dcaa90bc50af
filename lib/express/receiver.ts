import type { ServerResponse } from 'node:http'
import type { BodyRequest } from './body-read-before.js'
import { pathOf, segmentAt } from './request-path.js'
import { createTakeDelivery, type ReceiverOptions } from './take-delivery.js'

/** A request handler of Express 4 and 5, by shape. */
export type Middleware = (req: BodyRequest, res: ServerResponse, next?: unknown) => void

export type { DeliveryOutcome, Envelope, Receipt, ReceiverOptions, VerifyDelivery } from './take-delivery.js'

/**
 * Returns the middleware that takes deliveries at `<mount>/<secret>`; see `createTakeDelivery` for its replies. Mount it
 * with `app.use(path, …)`, or give it to `node:http` or `node:http2` as it is. It answers every request itself, and
 * never throws. It never calls `next`, and declares it because adapters of other frameworks look at the number of parameters:
 * with three they take it for middleware in the form of Express.
 *
 * Throws `argument_invalid` at once when an option is out of bounds.
 */
export function createReceiver(options: ReceiverOptions): Middleware {
  const takeDelivery = createTakeDelivery(options)

  return function receiveDelivery(req, res, _next) {
    takeDelivery(req, res, segmentAt(pathOf(req.url), 0))
  }
}
