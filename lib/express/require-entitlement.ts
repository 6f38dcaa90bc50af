import { type Clock, systemClock } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { identifierOf } from '../base/record.js'
import { type ItemOptions, isOneOfTheApps, itemsOf, type PurchasableUids } from '../entitlement/items.js'
import { cutOff } from './reply.js'
import { replyDenied } from './reply-denied.js'

/** What the guard needs: a fast yes or no for every request, and the reason for denied requests. */
export interface EntitlementPort {
  isEntitled(businessUid: string, options?: ItemOptions): Promise<boolean>
  explain(businessUid: string, options?: ItemOptions): Promise<GuardDecision>
  /** The app's own items. Without them, any item may be named. */
  purchasableUids?: readonly string[]
  /** Called at the beginning of each check. The function it returns is called with the outcome. */
  measure?(): ((outcome: 'allowed' | 'denied' | 'unknown' | 'business_missing') => void) | undefined
  /** Called with every decision that denies a request. */
  onDenied?(decision: GuardDecision): void
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
 * Which business a request is made for, and what may let it in.
 *
 * @example
 * marketplace.requireEntitlement({
 *   businessUid: (req) => req.user?.business_uid,
 *   purchasableUid: 'pro',
 *   onDenied: (req, res, _next, { known }) => res.status(known ? 402 : 503).render('buy'),
 * })
 */
export interface RequireEntitlementOptions {
  /**
   * The uid of the business that makes the request. Take it from the app's own session or token, never from a value that
   * the client chooses.
   */
  businessUid(req: AppRequest): BusinessUid | Promise<BusinessUid>
  /**
   * Only this item, or any of these, gives access: for an app with several items, such as plans. Each must be one of
   * `app.purchasableUid`. A function is called for every request; if it names no item, the request is denied.
   */
  purchasableUid?: PurchasableUids | ((req: AppRequest) => PurchasableUids | Promise<PurchasableUids>)
  /**
   * Answers instead of the 401, 402 or 503. `decision.reason` is `business_missing` if the reply would be 401, and
   * `decision.known` is false if it would be 503. Do not send `decision.explanation` to visitors.
   */
  onDenied?: ((req: AppRequest, res: AppResponse, next: Next, decision: GuardDecision) => unknown) | undefined
}

/** A business, or none: null, undefined and an empty text. */
type BusinessUid = string | number | null | undefined

/** Requests and replies of the app's Express version, with the fields its middleware adds (`req.user`). */
// biome-ignore lint/suspicious/noExplicitAny: any other type would refuse one of Express 4, Express 5 or the app's own.
type AppRequest = any
// biome-ignore lint/suspicious/noExplicitAny: as above.
type AppResponse = any
type Next = (error?: unknown) => void

/** Middleware that lets only entitled businesses through, for Express 4 and 5. */
export type Guard = (req: AppRequest, res: AppResponse, next: Next) => Promise<void>

/**
 * Returns `requireEntitlement(options)`, which makes a middleware that gives access to entitled businesses only:
 * "the app makes itself available to the business only when purchase_state is purchased" (interface document,
 * Receiver rule).
 *
 * A request without a business gets 401 `business_missing`; a denied one 402 `not_entitled`; one without a known answer
 * 503 `entitlement_unknown` with `Retry-After`. Only an answer of exactly true gives access; a failed lookup counts as
 * not known. An error of the app's own `businessUid` or `onDenied` goes to `next`.
 *
 * `requireEntitlement` throws `argument_invalid` when its options are not functions, or name an item of another app.
 */
export function createRequireEntitlement(port: EntitlementPort) {
  const { clock = systemClock } = port

  function replyBriefly(req: AppRequest, res: AppResponse, _next: Next, decision: GuardDecision): void {
    if (decision.reason === BUSINESS_MISSING.reason) replyDenied(req, res, 'business_missing', clock)
    else replyDenied(req, res, decision.known === false ? 'entitlement_unknown' : 'not_entitled', clock)
  }

  return function requireEntitlement(options: RequireEntitlementOptions): Guard {
    checkOptions(options)
    const { businessUid, onDenied = replyBriefly } = options
    const itemsFor = itemsOfOptions(options, port.purchasableUids ?? [])

    return async function requireEntitlementMiddleware(req, res, next) {
      // Express 4 ignores the promise of a middleware, so a rejection would end the process.
      try {
        const uid = await businessUid(req)
        const items = await itemsFor(req)
        const measured = port.measure?.()
        const decision = await decisionFor(uid, items)
        measured?.(outcomeOf(decision))
        if (decision) {
          reportDenial(decision)
          await onDenied(req, res, next, decision)
          return
        }
      } catch (error) {
        callNext(req, res, next, asError(error))
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

  /** The decision that keeps a request out; undefined gives access. Never rejects. */
  async function decisionFor(
    given: unknown,
    items: ItemOptions | undefined,
  ): Promise<GuardDecision | undefined> {
    const uid = identifierOf(given)
    if (uid === null) return BUSINESS_MISSING
    try {
      if ((await port.isEntitled(uid, items)) === true) return undefined
      // The answer may have become yes since the first lookup.
      const decision = await port.explain(uid, items)
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
  explanation: 'The request names no business.',
})

const NOT_ANSWERED: GuardDecision = Object.freeze({
  entitled: false,
  known: false,
  reason: 'not_answered',
  explanation: 'The lookup of the purchases of this business failed; see the log of the app.',
})

function outcomeOf(decision: GuardDecision | undefined) {
  if (decision === undefined) return 'allowed'
  if (decision.reason === BUSINESS_MISSING.reason) return 'business_missing'
  return decision.known === false ? 'unknown' : 'denied'
}

/**
 * The `next` of Express does not throw. If another server's `next` throws, calls it with the error, then closes the
 * connection.
 */
function callNext(req: AppRequest, res: AppResponse, next: Next, error?: object): void {
  try {
    if (error) next(error)
    else next()
  } catch (thrown) {
    if (error) cutOff(res, req)
    else callNext(req, res, next, asError(thrown))
  }
}

/**
 * Express continues with the route after `next(undefined)` and `next('route')`, so a thrown value must become an error.
 */
function asError(thrown: unknown): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`Cannot guard a route: ${messageOf(thrown)} was thrown`, { cause: thrown })
}

/** The items to ask for with each request. Only a function of the app makes the middleware wait. */
function itemsOfOptions(
  options: RequireEntitlementOptions,
  purchasableUids: readonly string[],
): (req: AppRequest) => ItemOptions | undefined | Promise<ItemOptions> {
  if (!('purchasableUid' in options)) return () => undefined
  const { purchasableUid } = options
  if (typeof purchasableUid === 'function')
    return async (req) => ({ purchasableUid: await purchasableUid(req) })
  const items = itemsOf(purchasableUid)
  if (items.length === 0 || !items.every((item) => isOneOfTheApps(item, purchasableUids))) {
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot guard a route: purchasableUid must be a function, or one or several of app.purchasableUid',
    )
  }
  const asked = { purchasableUid: items as string[] }
  return () => asked
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
