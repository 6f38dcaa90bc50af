import { z } from 'zod'
import type { Clock } from '../clock.js'
import { type DecisionRules, decide, REASONS, type Reason } from '../entitlement/decide.js'
import { identifier, requireIdentifier, type SubscriptionRecord } from '../record.js'
import { checked, limit } from '../store/entry-filter.js'
import type { KeptSubscription, Store } from '../store/store.js'
import { nextTurn } from '../waiting.js'

/** Which subscriptions; all that are given must fit. */
export interface SubscriptionsFilter {
  /** The `purchase_state` as last read. */
  state?: string
  /** Why it does or does not entitle: one of `REASONS`. */
  reason?: Reason
  businessUid?: string | number
  purchasableUid?: string | number
  /** The last `subscription_uid` of the page before. */
  after?: string | number
  /** At most this many, 100 unless told; 1 to 1,000. */
  limit?: number
}

/** A subscription as it is kept. Times are ISO 8601, UTC. */
export interface SubscriptionStatus {
  subscription_uid: string
  business_uid: string
  /** The item that the record names; before the first read the one that the first request named. */
  purchasable_uid: string | null
  /** The `purchase_state`; null until read, and when `gone`. */
  state: string | null
  /** Why it does or does not entitle, as in a decision's `subscriptions`. */
  reason: Reason
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** When the platform last confirmed it. */
  readAt: string | null
  /** When an event, `track` or `refresh` last asked for a read. */
  requestedAt: string | null
  /** When the next read is due; null: it is not read any more. */
  refreshAt: string | null
  /** Code of the last read's failure, where it failed. */
  failure: string | null
  /** The platform does not show it, or no longer after an uninstall. */
  gone: 'missing' | 'revoked' | null
  /** A read was asked for and has not succeeded yet. */
  pending: boolean
  /** When it was first heard of. */
  createdAt: string
}

/** Subscriptions that one statement looks at. */
const WINDOW = 500

const FILTER = z.strictObject({
  state: z.string().min(1).optional(),
  reason: z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]).optional(),
  businessUid: identifier.optional(),
  purchasableUid: identifier.optional(),
  after: identifier.optional(),
  limit: limit.optional(),
})

/** What is kept of subscriptions, for people. */
export function createSubscriptionQueries(options: {
  store: Pick<Store, 'listSubscriptions'>
  rules: DecisionRules
  clock: Clock
}) {
  const { store, rules, clock } = options

  return {
    async list(filter: SubscriptionsFilter = {}): Promise<SubscriptionStatus[]> {
      const wanted = checked(FILTER, filter, 'list subscriptions')
      const { state, reason, businessUid, purchasableUid, limit: most = 100 } = wanted
      const found: SubscriptionStatus[] = []
      let after = wanted.after
      for (;;) {
        const page = await store.listSubscriptions({
          limit: WINDOW,
          ...(businessUid === undefined ? {} : { businessUid }),
          ...(after === undefined ? {} : { after }),
        })
        for (const kept of page) {
          const status = statusOf(kept, rules, clock.now())
          const fits =
            (state === undefined || status.state === state) &&
            (reason === undefined || status.reason === reason) &&
            (purchasableUid === undefined || status.purchasable_uid === purchasableUid)
          if (fits && found.push(status) === most) return found
        }
        after = page.at(-1)?.subscriptionUid
        if (page.length < WINDOW) return found
        await nextTurn()
      }
    },

    async get(subscriptionUid: string | number): Promise<SubscriptionStatus | undefined> {
      const uid = requireIdentifier(subscriptionUid, 'subscription_uid')
      const [kept] = await store.listSubscriptions({ subscriptionUid: uid, limit: 1 })
      return kept && statusOf(kept, rules, clock.now())
    },
  }
}

export function statusOf(kept: KeptSubscription, rules: DecisionRules, now: number): SubscriptionStatus {
  const [verdict] = decide(kept.businessUid, [kept], rules, now).subscriptions
  const { state, record, failure, gone, pending } = kept
  return {
    subscription_uid: kept.subscriptionUid,
    business_uid: kept.businessUid,
    purchasable_uid: verdict?.purchasable_uid ?? null,
    state,
    reason: verdict?.reason ?? 'unknown_business',
    record,
    readAt: isoOf(kept.readAt),
    requestedAt: isoOf(kept.requestedAt),
    refreshAt: isoOf(kept.refreshAt),
    failure,
    gone,
    pending,
    createdAt: isoOf(kept.createdAt),
  }
}

export function isoOf<T extends number | null>(time: T): T extends null ? null : string
export function isoOf(time: number | null) {
  return time === null ? null : new Date(time).toISOString()
}
