import { type Clock, systemClock } from '../base/clock.js'
import { type AppRequest, type AppResponse, asError, callNext, type Next } from './call-next.js'
import {
  createDecisionForRequest,
  type DecisionPort,
  type EntitlementRouteOptions,
  isDecision,
} from './decision-for-request.js'
import { RETRY_LATER, reply, replyProblem } from './reply.js'
import { replyDenied } from './reply-denied.js'

/** A handler that gives the decision to a front end, for Express 4 and 5. */
export type EntitlementRoute = (req: AppRequest, res: AppResponse, next: Next) => Promise<void>

/**
 * Returns `entitlementRoute(options)`, which makes a handler that gives the decision to the app's own front end: 200 with
 * `{ entitled, known, accessUntil, items }`, also without access. While the answer is not known, `Retry-After` says when to
 * ask again. No cache may store it.
 *
 * A request without a business gets 401 `business_missing`, and a method other than GET and HEAD 405
 * `method_not_allowed`. A failed lookup counts as not known. An error of the app's own `businessUid` goes to `next`.
 *
 * `entitlementRoute` throws `argument_invalid` when its options are not functions, name an item of another app, or are unknown.
 */
export function createEntitlementRoute(port: DecisionPort & { clock?: Clock }) {
  const { clock = systemClock } = port

  return function entitlementRoute(options: EntitlementRouteOptions): EntitlementRoute {
    const { askerOf, decisionFor } = createDecisionForRequest(port, options, { task: TASK })

    return async function answerEntitlement(req, res, next) {
      // Express 4 ignores the promise of a handler, so a rejection would end the process.
      try {
        if (req.method !== 'GET' && req.method !== 'HEAD') {
          const headers = { Allow: 'GET, HEAD' }
          replyProblem(req, res, 'method_not_allowed', 'Only GET and HEAD are answered.', { headers, clock })
          return
        }
        const decision = await decisionFor(await askerOf(req))
        if (decision.reason === 'business_missing') {
          replyDenied(req, res, 'business_missing', { clock })
          return
        }
        const { entitled, known } = decision
        const { accessUntil, entitledItems: items } = isDecision(decision) ? decision : NOTHING
        const headers = { ...JSON_HEADERS, ...(known ? {} : RETRY_LATER) }
        reply(req, res, 200, JSON.stringify({ entitled, known, accessUntil, items }), headers, clock)
      } catch (error) {
        callNext(req, res, next, asError(error, TASK))
      }
    }
  }
}

const TASK = 'answer whether a business may use the app'
const NOTHING = { accessUntil: null, entitledItems: [] }
const JSON_HEADERS = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
