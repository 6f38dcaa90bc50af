import { type Clock, SECOND, systemClock } from '../base/clock.js'
import { classOf, MarketplaceError } from '../base/errors.js'
import { withDeadline } from '../base/waiting.js'
import type { Decision } from '../entitlement/decide.js'
import { type AppRequest, type AppResponse, asError, callNext, type Next } from './call-next.js'
import {
  createDecisionForRequest,
  type DecisionPort,
  type EntitlementRouteOptions,
  isDecision,
  type NoDecision,
} from './decision-for-request.js'
import { replyDenied } from './reply-denied.js'

/** What the guard needs: a decision for every request. */
export interface EntitlementPort extends DecisionPort {
  /** Called at the beginning of each check. The function it returns is called with the outcome. */
  measure?(): ((outcome: 'allowed' | 'denied' | 'unknown' | 'business_missing') => void) | undefined
  /** Called with every decision that denies a request. */
  onDenied?(decision: GuardDecision): void
  /** Called when the function `purchaseUrl` gives no address: with what it did, the class of that, and what it threw. */
  onPurchaseUrlFailed?(failure: string, kind: string, thrown?: { error: unknown }): void
  /** Default: the system's. */
  clock?: Clock
}

/** Why a guard keeps a request out. */
export interface GuardDecision {
  /** Always false. */
  entitled: boolean
  /** False when the answer has not arrived yet, or is too old. */
  known: boolean
  /** A stable code. */
  reason: string
  /** The reason as a sentence, with identifiers of subscriptions: for the app's operators, not for its visitors. */
  explanation: string
}

/**
 * Which business a request is made for, what may let it in, and what a denied visitor gets.
 *
 * @example
 * marketplace.requireEntitlement({
 *   businessUid: (req) => req.user?.business_uid,
 *   purchasableUid: 'pro',
 *   purchaseUrl: 'https://marketplace.example/apps/my-app',
 * })
 * marketplace.requireEntitlement({
 *   businessUid: (req) => req.user?.business_uid,
 *   onDenied: (req, res, _next, { known }) => res.status(known ? 402 : 503).render('buy'),
 * })
 */
export interface RequireEntitlementOptions extends EntitlementRouteOptions {
  /**
   * Where a business can buy the app: an absolute http(s) address, or a path that begins with one `/`. The 402 has it as a
   * link on its page, and as `purchase_url` in its problem. A function may return none. If it throws, takes longer
   * than 5 s or returns anything else, the reply has no link, and a process warning says so. `onDenied` replies without it.
   */
  purchaseUrl?: string | ((req: AppRequest) => PurchaseUrl | Promise<PurchaseUrl>) | undefined
  /**
   * Answers instead of the 401, 402 or 503. `decision.reason` is `business_missing` if the reply would be 401, and
   * `decision.known` is false if it would be 503. Do not send `decision.explanation` to visitors.
   */
  onDenied?: ((req: AppRequest, res: AppResponse, next: Next, decision: GuardDecision) => unknown) | undefined
}

/** An address, or none. */
type PurchaseUrl = string | null | undefined

/** Middleware that lets only entitled businesses through, for Express 4 and 5. */
export type Guard = (req: AppRequest, res: AppResponse, next: Next) => Promise<void>

declare global {
  namespace Express {
    interface Locals {
      /** The decision of the last `requireEntitlement` that the request has passed. */
      entitlement?: Decision
    }
  }
}

/**
 * Returns `requireEntitlement(options)`, which makes a middleware that gives access to entitled businesses only:
 * "the app makes itself available to the business only when purchase_state is purchased" (interface document,
 * Receiver rule).
 *
 * A request without a business gets 401 `business_missing`; a denied one 402 `not_entitled`; one without a known answer
 * 503 `entitlement_unknown` with `Retry-After`. Only an answer of exactly true gives access; a failed lookup counts as
 * not known. An error of the app's own `businessUid` or `onDenied` goes to `next`. The routes behind the gate find the
 * decision in `res.locals.entitlement`.
 *
 * `requireEntitlement` throws `argument_invalid` when its options are not functions, name an item of another app, are unknown, or
 * have a `purchaseUrl` that no link may have.
 */
export function createRequireEntitlement(port: EntitlementPort) {
  const { clock = systemClock } = port

  return function requireEntitlement(options: RequireEntitlementOptions): Guard {
    const { askerOf, decisionFor } = createDecisionForRequest(port, options, {
      task: TASK,
      more: ['purchaseUrl', 'onDenied'],
    })
    const purchaseUrlFor = purchaseUrlOfOptions(options, { ...port, clock })
    const { onDenied = replyBriefly } = options
    if (typeof onDenied !== 'function') throw refusal('onDenied must be a function')

    async function replyBriefly(req: AppRequest, res: AppResponse, _next: Next, decision: GuardDecision) {
      if (decision.reason === 'business_missing') replyDenied(req, res, 'business_missing', { clock })
      else if (decision.known === false) replyDenied(req, res, 'entitlement_unknown', { clock })
      else replyDenied(req, res, 'not_entitled', { clock, purchaseUrl: await purchaseUrlFor(req) })
    }

    return async function requireEntitlementMiddleware(req, res, next) {
      // Express 4 ignores the promise of a middleware, so a rejection would end the process.
      try {
        const asker = await askerOf(req)
        const measured = port.measure?.()
        const decision = await decisionFor(asker)
        measured?.(outcomeOf(decision))
        localsOf(res).entitlement = isDecision(decision) ? decision : undefined
        if (decision.entitled !== true) {
          reportDenial(decision)
          await onDenied(req, res, next, decision)
          return
        }
      } catch (error) {
        callNext(req, res, next, asError(error, TASK))
        return
      }
      callNext(req, res, next)
    }
  }

  function reportDenial(decision: GuardDecision): void {
    try {
      port.onDenied?.(decision)
    } catch {
      // A failing log must not decide who gets access.
    }
  }
}

const TASK = 'guard a route'

function outcomeOf({ entitled, reason, known }: Decision | NoDecision) {
  if (entitled === true) return 'allowed'
  if (reason === 'business_missing') return 'business_missing'
  return known === false ? 'unknown' : 'denied'
}

/** Express makes `res.locals`; other servers do not. */
function localsOf(res: AppResponse): { entitlement?: Decision | undefined } {
  if (typeof res.locals !== 'object' || res.locals === null) res.locals = {}
  return res.locals
}

/** How long a visitor waits for the link. */
const PURCHASE_URL_MS = 5 * SECOND
const LATE = Symbol('late')

/** The address for the reply to a request; undefined without one. Never rejects. */
function purchaseUrlOfOptions(
  { purchaseUrl }: RequireEntitlementOptions,
  { onPurchaseUrlFailed, clock }: EntitlementPort & { clock: Clock },
): (req: AppRequest) => Promise<string | undefined> {
  if (typeof purchaseUrl !== 'function') {
    if (purchaseUrl !== undefined && !isLinkable(purchaseUrl))
      throw refusal(
        'purchaseUrl must be an absolute http(s) address, a path that begins with one /, or a function',
      )
    return async () => purchaseUrl
  }
  return async (req) => {
    try {
      const asked: Promise<unknown> = Promise.resolve(purchaseUrl(req))
      const given = await withDeadline(asked, PURCHASE_URL_MS, clock, () => LATE)
      if (given === undefined || given === null) return undefined
      if (isLinkable(given)) return given
      onPurchaseUrlFailed?.(`returned a value of type ${typeof given} that no link may have`, typeof given)
    } catch (error) {
      if (error === LATE) onPurchaseUrlFailed?.(`did not answer within ${PURCHASE_URL_MS / SECOND} s`, 'late')
      else onPurchaseUrlFailed?.('threw', classOf(error), { error })
    }
    return undefined
  }
}

/**
 * Whether a link may have the address: an absolute one over http(s), or a path on this host. Browsers read `/\` as `//`, and
 * ignore line breaks and tabs in an address.
 */
function isLinkable(value: unknown): value is string {
  if (typeof value !== 'string') return false
  if (/^https?:\/\//i.test(value)) return URL.canParse(value)
  return value.startsWith('/') && URL.canParse(value, HERE) && new URL(value, HERE).origin === HERE
}

const HERE = 'http://here.invalid'

function refusal(why: string): MarketplaceError {
  return new MarketplaceError('argument_invalid', `Cannot ${TASK}: ${why}`)
}
