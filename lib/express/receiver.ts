import type { ServerResponse } from 'node:http'
import type { BodyRequest } from './body-read-before.js'
import { pathOf, segmentAt } from './request-path.js'
import { createTakeDelivery, type ReceiverOptions } from './take-delivery.js'

export type { DeliveryOutcome, ReceiverOptions } from './take-delivery.js'

/**
 * Returns the middleware that takes deliveries at `<mount>/<secret>`; see `createTakeDelivery` for its replies. Mount it
 * with `app.use(path, …)`, or give it to `node:http` or `node:http2` as it is. It answers every request itself, and
 * never throws. It never calls `next`, and declares it because adapters of other frameworks look at the number of parameters:
 * with three they take it for middleware in the form of Express.
 */
export function createReceiver(options: ReceiverOptions) {
  const takeDelivery = createTakeDelivery(options)

  return function receiveDelivery(req: BodyRequest, res: ServerResponse, _next?: unknown): void {
    takeDelivery(req, res, segmentAt(pathOf(req.url), 0))
  }
}
