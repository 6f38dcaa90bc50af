import { MarketplaceError } from '../base/errors.js'
import { identifierOf } from '../base/record.js'
import type { Decision } from '../entitlement/decide.js'
import {
  type ItemOptions,
  isOneOfTheApps,
  itemsOf,
  type PurchasableUids,
  unknownOption,
} from '../entitlement/items.js'
import type { AppRequest } from './call-next.js'

/** What answers for a business. */
export interface DecisionPort {
  explain(businessUid: string, options?: ItemOptions): Promise<Decision>
  /** The app's own items. Without them, any item may be named. */
  purchasableUids?: readonly string[]
}

/**
 * Which business a request is made for, and which items count.
 *
 * @example
 * const route = marketplace.entitlementRoute({ businessUid: (req) => req.user?.business_uid, purchasableUid: 'pro' })
 */
export interface EntitlementRouteOptions {
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
}

/** A business, or none: null, undefined and an empty text. */
type BusinessUid = string | number | null | undefined

/** The answer without a decision: the request names no business, or the lookup failed. */
export type NoDecision = typeof BUSINESS_MISSING | typeof NOT_ANSWERED

/** Who asks, and for which items. Null: no business. */
interface Asker {
  uid: string | null
  items: ItemOptions | undefined
}

/**
 * Finds the decision for the business that makes a request, in two steps, because only the first runs the app's code.
 *
 * Throws `argument_invalid` when `businessUid` is not a function, `purchasableUid` names an item of another app, or an option
 * is neither one of these nor in `more`. `task` is what the message says cannot be done.
 */
export function createDecisionForRequest(
  port: DecisionPort,
  options: EntitlementRouteOptions,
  { task, more = [] }: { task: string; more?: readonly string[] },
) {
  const { businessUid } = (options ?? {}) as Partial<EntitlementRouteOptions>
  if (typeof businessUid !== 'function') {
    throw new MarketplaceError(
      'argument_invalid',
      `Cannot ${task}: businessUid must be a function from the request to the uid of its business`,
    )
  }
  const unknown = unknownOption(options, ['businessUid', 'purchasableUid', ...more])
  if (unknown) throw new MarketplaceError('argument_invalid', `Cannot ${task}: ${unknown}`)
  const itemsFor = itemsOfOptions(options, port.purchasableUids ?? [], task)

  return {
    /** Rejects with an error of the app's own functions. */
    async askerOf(req: AppRequest): Promise<Asker> {
      return { uid: identifierOf(await businessUid(req)), items: await itemsFor(req) }
    },

    /** Never rejects. */
    async decisionFor({ uid, items }: Asker): Promise<Decision | NoDecision> {
      if (uid === null) return BUSINESS_MISSING
      try {
        return (await port.explain(uid, items)) ?? NOT_ANSWERED
      } catch {
        return NOT_ANSWERED
      }
    },
  }
}

const BUSINESS_MISSING = Object.freeze({
  entitled: false,
  known: true,
  reason: 'business_missing',
  explanation: 'The request names no business.',
})

const NOT_ANSWERED = Object.freeze({
  entitled: false,
  known: false,
  reason: 'not_answered',
  explanation: 'The lookup of the purchases of this business failed; see the log of the app.',
})

/** Whether there is a decision; otherwise its reason is one of those above. */
export function isDecision(answer: Decision | NoDecision): answer is Decision {
  return answer !== BUSINESS_MISSING && answer !== NOT_ANSWERED
}

/** The items to ask for with each request. Only a function of the app makes the middleware wait. */
function itemsOfOptions(
  options: EntitlementRouteOptions,
  purchasableUids: readonly string[],
  task: string,
): (req: AppRequest) => ItemOptions | undefined | Promise<ItemOptions> {
  if (!('purchasableUid' in options)) return () => undefined
  const { purchasableUid } = options
  if (typeof purchasableUid === 'function')
    return async (req) => ({ purchasableUid: await purchasableUid(req) })
  const items = itemsOf(purchasableUid)
  if (items.length === 0 || !items.every((item) => isOneOfTheApps(item, purchasableUids))) {
    throw new MarketplaceError(
      'argument_invalid',
      `Cannot ${task}: purchasableUid must be a function, or one or several of app.purchasableUid`,
    )
  }
  const asked = { purchasableUid: items as string[] }
  return () => asked
}
