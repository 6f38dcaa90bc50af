import type { IncomingMessage, ServerResponse } from 'node:http'
import { MarketplaceError } from '../errors.js'
import { replyProblem } from './reply.js'

/** What the guard asks: a quick yes or no for every request, the words only for those it denies. */
export interface EntitlementPort {
  isEntitled(businessUid: string): Promise<boolean>
  explain(businessUid: string): Promise<GuardDecision>
}

export interface GuardDecision {
  entitled: boolean
  /** False when nothing can be said yet, or any more, about the business. */
  known: boolean
  /** A stable code. */
  reason: string
  /** The reason in words. */
  explanation: string
}

export interface RequireEntitlementOptions {
  /**
   * The uid of the business the request is made for. Take it from the app's own session or token, never from what
   * the client may choose.
   */
  businessUid(req: AppRequest): BusinessUid | Promise<BusinessUid>
  /** Answers in place of the 402 or 503; `decision.known` tells the two apart. */
  onDenied?: ((req: AppRequest, res: AppResponse, next: Next, decision: GuardDecision) => unknown) | undefined
}

export type BusinessUid = string | number | null | undefined

/** Requests and replies of the app's own Express version, with what its middleware adds to them (`req.user`). */
// biome-ignore lint/suspicious/noExplicitAny: any other type would refuse one of Express 4, Express 5 or the app's own.
type AppRequest = any
// biome-ignore lint/suspicious/noExplicitAny: as above.
type AppResponse = any
type Next = (error?: unknown) => void

/**
 * Gives back `requireEntitlement(options)`, which makes a middleware that lets only entitled businesses through:
 * "the app makes itself available to the business only when purchase_state is purchased" (interface document,
 * Receiver rule).
 *
 * Denied is 402 `not_entitled`, also when the request names no business; not known is 503 `entitlement_unknown` with
 * `Retry-After`. Only an answer of exactly true lets through: whatever fails while asking counts as not known.
 * What the app's own `businessUid` or `onDenied` throws goes to `next`.
 *
 * `requireEntitlement` throws `argument_invalid` when its options are not functions.
 */
export function createRequireEntitlement(port: EntitlementPort) {
  return function requireEntitlement(options: RequireEntitlementOptions) {
    checkOptions(options)
    const { businessUid, onDenied = replyDenied } = options

    return async function requireEntitlementMiddleware(
      req: AppRequest,
      res: AppResponse,
      next: Next,
    ): Promise<void> {
      // Express 4 does not look at the promise of a middleware, so nothing may reject past this point.
      try {
        const decision = await decisionFor(await businessUid(req))
        if (decision) {
          await onDenied(req, res, next, decision)
          return
        }
      } catch (error) {
        next(error)
        return
      }
      next()
    }
  }

  /** Undefined lets through. Never rejects. */
  async function decisionFor(given: unknown): Promise<GuardDecision | undefined> {
    const uid = uidText(given)
    if (uid === undefined) return BUSINESS_MISSING
    try {
      if ((await port.isEntitled(uid)) === true) return undefined
      // Asked a moment later, the answer may have become yes.
      const decision = await port.explain(uid)
      return decision.entitled === true ? undefined : decision
    } catch {
      return NOT_ANSWERED
    }
  }
}

const BUSINESS_MISSING: GuardDecision = Object.freeze({
  entitled: false,
  known: true,
  reason: 'business_missing',
  explanation: 'The request does not say for which business it is made.',
})

const NOT_ANSWERED: GuardDecision = Object.freeze({
  entitled: false,
  known: false,
  reason: 'not_answered',
  explanation: 'What the business has purchased cannot be looked up now.',
})

/** Identifiers may arrive as numbers; anything that is neither text nor a number names no business. */
function uidText(given: unknown): string | undefined {
  if (typeof given === 'number' && Number.isFinite(given)) return String(given)
  return typeof given === 'string' && given !== '' ? given : undefined
}

function replyDenied(req: IncomingMessage, res: ServerResponse, _next: Next, decision: GuardDecision): void {
  const code = decision.known ? 'not_entitled' : 'entitlement_unknown'
  replyProblem(req, res, code, decision.explanation, { more: { reason: decision.reason } })
}

function checkOptions(options: unknown): void {
  const { businessUid, onDenied } = (options ?? {}) as Record<string, unknown>
  if (typeof businessUid !== 'function') {
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot guard a route: businessUid must be a function from the request to the uid of its business',
    )
  }
  if (onDenied !== undefined && typeof onDenied !== 'function') {
    throw new MarketplaceError('argument_invalid', 'Cannot guard a route: onDenied must be a function')
  }
}
