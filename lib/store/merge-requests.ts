import type { RefreshRequest } from './store.js'

/** A refresh request, and its source. */
export interface Requested {
  request: RefreshRequest
  /** Whether an event requests the read. Requests of `track` and `refresh` wait behind those of events. */
  byEvent: boolean
}

/** The requests for a subscription that name its business: of the kinds `subscription` and `other_item`. */
interface NamedRow {
  uid: string
  business: string
  purchasable: string | null
  times: number
  event: 0 | 1
  /** 1: every request is quiet. */
  quiet: 0 | 1
  /** 1: every request names another item. */
  other: 0 | 1
}

/** The requests for a subscription if the store has it: of the kind `known`. */
interface KnownRow {
  uid: string
  times: number
  event: 0 | 1
}

/** The requests for all subscriptions of a business, and the newest install or uninstall among them. */
interface BusinessRow {
  business: string
  installed: number | null
  at: number
  times: number
  event: 0 | 1
}

export const NAMED_COLUMNS = {
  uid: 'text',
  business: 'text',
  purchasable: 'text',
  times: 'integer',
  event: 'integer',
  quiet: 'integer',
  other: 'integer',
} as const
export const KNOWN_COLUMNS = { uid: 'text', times: 'integer', event: 'integer' } as const
export const BUSINESS_COLUMNS = {
  business: 'text',
  installed: 'integer',
  at: 'integer',
  times: 'integer',
  event: 'integer',
} as const

/**
 * The requests of a batch, merged into one row for each subscription or business, since a statement may change a row
 * only once. Sorted, so that two transactions lock the same rows in the same order.
 */
export function mergeRequests(requests: readonly Requested[]) {
  const named = new Map<string, NamedRow>()
  const known = new Map<string, KnownRow>()
  const businesses = new Map<string, BusinessRow>()
  for (const { request, byEvent } of requests) {
    const event = byEvent ? 1 : 0
    if (request.kind === 'subscription' || request.kind === 'other_item') {
      const { subscriptionUid: uid, businessUid: business, purchasableUid: purchasable } = request
      const before = named.get(uid)
      const other = request.kind === 'other_item' ? 1 : 0
      const times = (before?.times ?? 0) + 1
      const isQuiet = request.kind === 'subscription' && request.quiet === true
      const quiet = isQuiet && (before?.quiet ?? 1) === 1 ? 1 : 0
      // A request that names the app's own item takes precedence over one that names another item.
      if (before && before.other < other) named.set(uid, { ...before, times, quiet })
      else
        named.set(uid, {
          uid,
          business,
          purchasable,
          times,
          event: either(before?.event, event),
          quiet,
          other,
        })
    } else if (request.kind === 'known') {
      const uid = request.subscriptionUid
      const before = known.get(uid)
      known.set(uid, { uid, times: (before?.times ?? 0) + 1, event: either(before?.event, event) })
    } else {
      const { businessUid: business, install } = request
      const before = businesses.get(business) ?? { business, installed: null, at: 0, times: 0, event }
      const at = install?.at ?? Number.MAX_SAFE_INTEGER
      const last = install && at >= before.at ? { installed: Number(install.installed), at } : {}
      const times = before.times + 1
      businesses.set(business, { ...before, ...last, times, event: either(before.event, event) })
    }
  }
  return { named: sorted(named), known: sorted(known), businesses: sorted(businesses) }
}

function either(before: 0 | 1 | undefined, event: 0 | 1): 0 | 1 {
  return before === 1 ? 1 : event
}

function sorted<Row>(rows: Map<string, Row>): Row[] {
  return [...rows.keys()].sort().map((key) => rows.get(key) as Row)
}

export type { NamedRow }
