import { type ItemOptions, isOneOfTheApps, itemsOf, type PurchasableUids } from '../entitlement/items.js'
import { MarketplaceError, messageOf } from '../errors.js'
import { identifierOf } from '../record.js'
import { cutOff } from './reply.js'
import { replyDenied } from './reply-denied.js'

/** What the guard needs: a quick yes or no for every request, the reason only for those it denies. */
export interface EntitlementPort {
  isEntitled(businessUid: string, options?: ItemOptions): Promise<boolean>
  explain(businessUid: string, options?: ItemOptions): Promise<GuardDecision>
  /** The app's own items; none: any item may be asked for. */
  purchasableUids?: readonly string[]
  /** Called at the beginning of each check; what it returns, with the outcome. */
  measure?(): ((outcome: 'allowed' | 'denied' | 'unknown' | 'business_missing') => void) | undefined
  /** Called with every decision that keeps a request out. */
  onDenied?(decision: GuardDecision): void
}

/** Why a guard keeps a request out. */
export interface GuardDecision {
  /** Always false. */
  entitled: boolean
  /** False when the answer is not in yet, or has become too old. */
  known: boolean
  /** A stable code. */
  reason: string
  /** The reason in words, with identifiers of subscriptions: for the app's own people, not for its visitors. */
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
   * The uid of the business the request is made for. Take it from the app's own session or token, never from what
   * the client may choose.
   */
  businessUid(req: AppRequest): BusinessUid | Promise<BusinessUid>
  /**
   * Only this item, or any of these, lets in: for an app with several, such as plans. Each must be one of
   * `app.purchasableUid`. A function is asked for every request; one that names none lets nobody in.
   */
  purchasableUid?: PurchasableUids | ((req: AppRequest) => PurchasableUids | Promise<PurchasableUids>)
  /**
   * Answers in place of the 401, 402 or 503. `decision.reason` is `business_missing` where the reply would be 401, and
   * `decision.known` is false where it would be 503. Do not send `decision.explanation` to visitors.
   */
  onDenied?: ((req: AppRequest, res: AppResponse, next: Next, decision: GuardDecision) => unknown) | undefined
}

/** A business, or none: null, undefined and an empty text. */
export type BusinessUid = string | number | null | undefined

/** Requests and replies of the app's own Express version, with what its middleware adds to them (`req.user`). */
// biome-ignore lint/suspicious/noExplicitAny: any other type would refuse one of Express 4, Express 5 or the app's own.
type AppRequest = any
// biome-ignore lint/suspicious/noExplicitAny: as above.
type AppResponse = any
type Next = (error?: unknown) => void

/** Middleware that lets only entitled businesses through, for Express 4 and 5. */
export type Guard = (req: AppRequest, res: AppResponse, next: Next) => Promise<void>

/**
 * Gives back `requireEntitlement(options)`, which makes a middleware that lets only entitled businesses through:
 * "the app makes itself available to the business only when purchase_state is purchased" (interface document,
 * Receiver rule).
 *
 * A request without a business is 401 `business_missing`; denied is 402 `not_entitled`; not known is 503
 * `entitlement_unknown` with `Retry-After`. Only an answer of exactly true lets through: whatever fails while asking
 * counts as not known. An error of the app's own `businessUid` or `onDenied` goes to `next`.
 *
 * `requireEntitlement` throws `argument_invalid` when its options are not functions, or name an item that is not the app's.
 */
export function createRequireEntitlement(port: EntitlementPort) {
  return function requireEntitlement(options: RequireEntitlementOptions): Guard {
    checkOptions(options)
    const { businessUid, onDenied = replyInShort } = options
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
          note(decision)
          await onDenied(req, res, next, decision)
          return
        }
      } catch (error) {
        goOn(req, res, next, asError(error))
        return
      }
      goOn(req, res, next)
    }
  }

  function note(decision: GuardDecision): void {
    try {
      port.onDenied?.(decision)
    } catch {
      // A log that fails must not decide who is let in.
    }
  }

  /** Undefined lets through. Never rejects. */
  async function decisionFor(
    given: unknown,
    items: ItemOptions | undefined,
  ): Promise<GuardDecision | undefined> {
    const uid = identifierOf(given)
    if (uid === null) return BUSINESS_MISSING
    try {
      if ((await port.isEntitled(uid, items)) === true) return undefined
      // Asked a moment later, the answer may have become yes.
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
  explanation: 'The purchases of the business cannot be looked up now.',
})

function outcomeOf(decision: GuardDecision | undefined) {
  if (decision === undefined) return 'allowed'
  if (decision.reason === BUSINESS_MISSING.reason) return 'business_missing'
  return decision.known === false ? 'unknown' : 'denied'
}

function replyInShort(req: AppRequest, res: AppResponse, _next: Next, decision: GuardDecision): void {
  if (decision.reason === BUSINESS_MISSING.reason) replyDenied(req, res, 'business_missing')
  else replyDenied(req, res, decision.known === false ? 'entitlement_unknown' : 'not_entitled')
}

/** Express catches what its own `next` runs into. Another server's may throw: to its error handling then, or the end of the request. */
function goOn(req: AppRequest, res: AppResponse, next: Next, error?: object): void {
  try {
    if (error) next(error)
    else next()
  } catch (thrown) {
    if (error) cutOff(res, req)
    else goOn(req, res, next, asError(thrown))
  }
}

/** Express takes `next(undefined)` and `next('route')` for a way on: whatever was thrown must not let anybody in. */
function asError(thrown: unknown): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`Cannot guard a route: ${messageOf(thrown)} was thrown`, { cause: thrown })
}

/** What to ask for with each request; `await` waits only for what the app's own function promises. */
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
