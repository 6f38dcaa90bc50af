import { z } from 'zod'
import { type Clock, DAY, MINUTE, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { identifier, requireIdentifier, type SubscriptionRecord } from '../../base/record.js'
import { type DecisionRules, decide } from '../../entitlement/decide.js'
import { REASONS, type Reason } from '../../entitlement/reasons.js'
import type { Gone, Store, StoredSubscription } from '../../store/port/store.js'
import { checked, limit } from '../journal/entry-filter.js'
import { subscriptionPages } from '../journal/pages.js'

/** A subscription and the business it is for. */
export interface TrackedSubscription {
  /** Identifier of the subscription. */
  subscriptionUid: string | number
  /** Identifier of the business that bought it. The platform is asked with a token for this business. */
  businessUid: string | number
}

/** Which subscriptions to list. A subscription must match every given field. */
export interface SubscriptionsFilter {
  /** The `purchase_state` as last read. */
  purchaseState?: string
  /** Why it gives access or does not: one of `REASONS`. */
  reason?: Reason
  /** The business that it belongs to. */
  businessUid?: string | number
  /** The item: see `purchasable_uid` of `SubscriptionStatus`. */
  purchasableUid?: string | number
  /** The last `subscription_uid` of the previous page. */
  after?: string | number
  /** At most this many: 1 to 1,000, default 100. */
  limit?: number
}

/** A stored subscription. Times are ISO 8601, UTC. */
export interface SubscriptionStatus {
  /** Identifier of the subscription. */
  subscription_uid: string
  /** Identifier of the business that it belongs to. */
  business_uid: string
  /** The item that the record names; before the first read, the item that the first request named. */
  purchasable_uid: string | null
  /** As last read; null before the first read and when `gone`. */
  purchase_state: string | null
  /** Why it gives access or does not, as in the `subscriptions` of a decision. */
  reason: Reason
  /** The record as last read. */
  record: SubscriptionRecord | null
  /** When the platform last confirmed it. */
  readAt: string | null
  /** Time of the last refresh request: by an event, `track` or `refresh`. */
  requestedAt: string | null
  /** When the next read is due; null when no further read follows. */
  refreshAt: string | null
  /** The code of the last read's failure; null when it succeeded. */
  failure: string | null
  /**
   * `missing`: the platform does not show it. `revoked`: the platform stopped showing it after an uninstall. `ended`: the
   * platform refuses to show it, and it has ended.
   */
  gone: Gone | null
  /** A read was requested and has not succeeded yet. */
  pending: boolean
  /** When an event, `track` or an import first named it. */
  createdAt: string
}

/** The most subscriptions read by one statement. */
const WINDOW = 500

const FILTER = z.strictObject({
  purchaseState: z.string().min(1).optional(),
  reason: z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]).optional(),
  businessUid: identifier.optional(),
  purchasableUid: identifier.optional(),
  after: identifier.optional(),
  limit: limit.optional(),
})

/** The time over which `refreshAll` spreads its reads. */
export const REFRESH_ALL_MS = 10 * MINUTE

/** Lists stored subscriptions, for people, and requests their reads. */
export function createSubscriptionMethods(options: {
  store: Pick<Store, 'listSubscriptions' | 'requestRefresh' | 'refreshAll'>
  rules: DecisionRules
  clock: Clock
}) {
  const { store, rules, clock } = options

  return {
    async list(filter: SubscriptionsFilter = {}): Promise<SubscriptionStatus[]> {
      const given = checked(FILTER, filter, 'list subscriptions')
      const { purchaseState, reason, businessUid, purchasableUid, after, limit: most = 100 } = given
      const found: SubscriptionStatus[] = []
      const where = {
        ...(businessUid === undefined ? {} : { businessUid }),
        ...(after === undefined ? {} : { after }),
      }
      const isPlain = [purchaseState, reason, purchasableUid].every((each) => each === undefined)
      for await (const page of subscriptionPages(store, where, isPlain ? Math.min(most, WINDOW) : WINDOW)) {
        for (const row of page) {
          const status = statusOf(row, rules, clock.now())
          const fits =
            (purchaseState === undefined || status.purchase_state === purchaseState) &&
            (reason === undefined || status.reason === reason) &&
            (purchasableUid === undefined || status.purchasable_uid === purchasableUid)
          if (fits && found.push(status) === most) return found
        }
      }
      return found
    },

    async get(subscriptionUid: string | number): Promise<SubscriptionStatus | undefined> {
      const uid = requireIdentifier(subscriptionUid, 'subscription_uid')
      const [row] = await store.listSubscriptions({ subscriptionUid: uid, limit: 1 })
      return row && statusOf(row, rules, clock.now())
    },

    /** Requests the read of a subscription, and stores the subscription if it is new. */
    async track(named: TrackedSubscription, options?: { announce?: boolean }): Promise<void> {
      const subscriptionUid = requireIdentifier(named?.subscriptionUid, 'subscriptionUid')
      const businessUid = requireIdentifier(named?.businessUid, 'businessUid')
      const { announce = true } = options ?? {}
      if (typeof announce !== 'boolean')
        throw new MarketplaceError('argument_invalid', 'Cannot track: announce must be true or false')
      const subscription = { kind: 'subscription', subscriptionUid, businessUid } as const
      await store.requestRefresh({ ...subscription, purchasableUid: null, quiet: !announce })
    },

    /** Makes a read of every known subscription due. */
    async refreshAll(options?: { withinMs?: number }): Promise<{ subscriptions: number }> {
      const { withinMs = REFRESH_ALL_MS } = options ?? {}
      if (!Number.isInteger(withinMs) || withinMs < SECOND || withinMs > DAY)
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot refresh all subscriptions: withinMs must be a whole number of milliseconds, 1 second to 24 hours',
        )
      return { subscriptions: await store.refreshAll(withinMs) }
    },
  }
}

export function statusOf(row: StoredSubscription, rules: DecisionRules, now: number): SubscriptionStatus {
  const [verdict] = decide(row.businessUid, [row], rules, now).subscriptions
  const { record, failure, gone, pending } = row
  return {
    subscription_uid: row.subscriptionUid,
    business_uid: row.businessUid,
    purchasable_uid: verdict?.purchasable_uid ?? null,
    purchase_state: verdict?.purchase_state ?? null,
    reason: verdict?.reason ?? 'unknown_business',
    record,
    readAt: isoOf(row.readAt),
    requestedAt: isoOf(row.requestedAt),
    refreshAt: isoOf(row.refreshAt),
    failure,
    gone,
    pending,
    createdAt: isoOf(row.createdAt),
  }
}

export function isoOf<T extends number | null>(time: T): T extends null ? null : string
export function isoOf(time: number | null) {
  return time === null ? null : new Date(time).toISOString()
}
