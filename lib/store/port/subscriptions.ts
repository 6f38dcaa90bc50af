import type { SubscriptionRecord } from '../../base/record.js'

/** The pause from a read of a subscription to the next one that is requested. Retries and early reads may follow sooner. */
export const MIN_READ_INTERVAL_MS = 250
/**
 * While events follow each other within the pause, the next read waits until they cease, so that it sees what all of
 * them announce; but at most this long after the read before. So 10,000 events within five seconds cost two reads, and a
 * flood costs one read every five seconds.
 */
export const MAX_READ_INTERVAL_MS = 5_000

/** A leased item. */
export interface Leased {
  /** The subscription uid, the key of the lane, or the business uid of the search. */
  id: string
  leaseToken: string
}

/**
 * `missing`: the platform does not show it any more. `revoked`: the business uninstalled the app, and the platform
 * refuses a token or the reads for it. `ended`: the platform refuses its reads, and an event or their duration shows
 * that it has ended.
 */
export type Gone = 'missing' | 'revoked' | 'ended'

/** A subscription as the store has it. */
export interface Subscription {
  subscriptionUid: string
  businessUid: string
  /** The item that the record names; before the first read, the item that the first request named. */
  purchasableUid: string | null
  /** The record as last applied; null until the first successful read. Stays as evidence when `gone`. */
  record: SubscriptionRecord | null
  /** The effective `purchase_state`; null until read, and when `gone`. */
  state: string | null
  /** Why it counts as ended, although no record shows that; null while it does not. */
  gone: Gone | null
  /** When a read last confirmed `state`, or the end was believed. */
  readAt: number | null
  /** When the last read ended, whatever it found. */
  triedAt: number | null
  /** When an event, `track` or `refresh` last requested a read. */
  requestedAt: number | null
  /**
   * When the oldest request that the platform has not answered was made; null while none is unanswered. After a read during
   * which another came, that of the newest.
   */
  owedSince: number | null
  /** How many reads were requested. A read that begins later answers them all. */
  generation: number
  /** How many of these requests a conclusive read has answered. */
  settledGeneration: number
  /** A read was requested, and no read that began since has succeeded: not all requests are answered. */
  pending: boolean
  /**
   * It was never read, and the platform does not show it: it may lag behind its event, so early reads follow, or it may
   * refuse everybody. It is not the verification of a read.
   */
  verifying: boolean
  /** The code of the last read's failure; null once it is requested again. */
  failure: string | null
  /** When the next read is due; null when given up, until the next request. */
  refreshAt: number | null
  /** Never read, and only quiet imports and `refresh` requested it, so the first successful read writes no entry. */
  quiet: boolean
  /** Whether the last read that the app's rule could judge found that it gives access. */
  entitles: boolean
}

/** Which subscriptions to lease for reading, and for how long. */
export interface ClaimReads {
  leaseMs: number
  /** The most subscriptions. */
  limit: number
  /** Businesses that this process is reading. */
  except: readonly string[]
  /**
   * Businesses of which this process is only reading what was never read. Nothing else that was never read is leased of them:
   * anybody can have made it up, so it delays no read of what was read before.
   */
  exceptUnread?: readonly string[]
  /** The classes to lease from, the preferred one first. */
  urgencies: readonly Urgency[]
  /**
   * Picks the class of the next lease. `due`: the classes that have a due read left, in the order of `urgencies`.
   * `taken`: the classes of the leases so far. Undefined ends the claim. Absent: the first class of `due`. It may be
   * called again from the start.
   */
  choose?(due: readonly Urgency[], taken: readonly Urgency[]): Urgency | undefined
  /** Called if more may be due behind rows that the claim has put off: another claim looks there. */
  onPutOff?(): void
}

/** The classes of reads, by their cause. A failed read stays in its class. */
export const URGENCY = {
  /** An event, and the subscription was read before. */
  event: 0,
  /**
   * An event, and the subscription was never read: a forged one looks like a customer's here. A `refresh` of its business
   * leaves it in this class.
   */
  eventOfUnread: 1,
  /** `track`, `refresh` or an import. */
  track: 2,
  /** The verification of an answer: of a record, or of an end. */
  verification: 3,
  /** The regular read of every subscription. */
  reconcile: 4,
} as const
/** A class of `URGENCY`. */
export type Urgency = (typeof URGENCY)[keyof typeof URGENCY]

/**
 * Why a subscription is read, the strongest first: of several requests for one read the first of this list counts.
 * `request`: `track` or `refresh`. `import`: an import, or a read of all. `reconcile`: none, it is the regular read.
 * `clock`: none, and the answer of the app's rule ends. The store has the places, so a new one comes last.
 */
export const CAUSES = ['event', 'request', 'import', 'reconcile', 'clock'] as const
/** One of `CAUSES`. */
export type Cause = (typeof CAUSES)[number]

/** A subscription, leased for a read. */
export interface ReadClaim extends Leased {
  subscription: Subscription
  urgency: Urgency
  /**
   * Why the read is made. The cause stays until a finish makes the reconcile the next read: retries and verifications
   * have the cause of their read.
   */
  cause: Cause
  /** How many reads were requested so far. This read settles that generation. */
  generation: number
  /** The generation that was settled last; below `generation` when a request caused this read. */
  settledGeneration: number
  /** Another business that a request named for the subscription, to be tried when its own does not show it. */
  candidateBusinessUid: string | null
  /** How often a read of it began alone before and did not end: see `claimSuspectRead`. 0 for any other. */
  lapses: number
  /** When the store learned that the business uninstalled the app; null when an install followed. */
  uninstalledAt: number | null
  /**
   * When the present streak of refused or missing reads of a known subscription began; null after a found record, and when
   * the access of a canceled one has ended.
   */
  failingSince: number | null
  /** When the store learned of the first `update`, or uninstall, whose change no found record has shown yet. */
  updateAt: number | null
  /**
   * For a failing subscription, the last such `updateAt` of its business, if it is later than the last record shown of
   * this one.
   */
  businessUpdateAt: number | null
  /** When the store learned of an event whose own record shows an end, since the last found record. */
  endAt: number | null
  /** When the first request named the subscription. */
  createdAt: number
  /** What the reader remembers between tries: JSON that the store does not interpret. */
  progress: string | null
  /** When it was leased, in the store's time. Only the store compares it. */
  claimedAt: number
  /** How far the store's time of leases was behind its time of dates then. Only the store uses it. */
  leaseTimeBehindMs: number
}

/** The result of a read. */
export interface ReadFinish {
  /** What the read shows; absent when it failed or was inconclusive. */
  found?: {
    record: SubscriptionRecord | null
    state: string | null
    gone: Gone | null
  }
  /** Whether the claimed generation is settled by this read. */
  settled: boolean
  /** See `Subscription`. */
  verifying?: boolean
  /** The class of the next read. Absent: unchanged. */
  urgency?: Urgency
  /** The cause of the next read, if nothing but the end of an answer makes it. */
  cause?: Extract<Cause, 'clock'>
  /** The candidate business from now on; null: none. Absent: unchanged. */
  candidate?: string | null
  failure: string | null
  progress: string | null
  /** The time until the next read; null gives up. */
  nextInMs: number | null
  /** The read was not made. So a suspicion stays, and the claim of a suspect does not count as its beginning. */
  isUntried?: boolean
  /** Clears `uninstalledAt`: the platform has served the business long after the uninstall. */
  clearUninstalled?: boolean
  /** Clears `updateAt`: the found record shows what was announced, or the platform has shown it long after. */
  clearUpdate?: boolean
  /** Clears `endAt`: the found record is no longer one that lags behind the event. */
  clearEnd?: boolean
  /**
   * The changes that the read shows, in order: one, or two when the subscription moved to another business. While the
   * subscription is `quiet` the store writes none of them, and no entitlement.
   */
  changes?: readonly NewChange[]
  /** See `Subscription`. Absent: unchanged. */
  entitles?: boolean
  /**
   * The businesses to which the subscription gives another item than before: none, one, or two after a move. Every change of
   * `entitles`, or of the item or business while it is true, has its entry here. The store writes those that change the items
   * of the business: an item that another subscription gives neither begins nor ends.
   */
  entitlements?: readonly NewEntitlement[]
}

/** An entry of the kind `entitlement` to store. */
export interface NewEntitlement {
  id: string
  businessUid: string
  /** The cause of the read. */
  cause: Cause
  /** The item that the subscription gave the business; null: none. */
  before: string | null
  /** The item that it gives now; null: none any more. */
  after: string | null
}

/** The payload of such an entry. `before` is the item that no subscription gives any more, `after` the one that none gave before. */
export interface StoredEntitlement extends Omit<NewEntitlement, 'businessUid'> {
  business_uid: string
}

/** A change to store for `onPurchaseChange`. */
export interface NewChange {
  id: string
  key: string
  /** The business whose access changes. */
  businessUid: string
  /** The cause of the read. */
  cause: Cause
  /** JSON */
  payload: string
}

/**
 * What an event says of the subscription that it names. `update`: something has changed. `end` and `access`: the event
 * contains a record, by which the business may not, or may, use the app. It is evidence beside a refusal and never more.
 */
export type Announcement = 'update' | 'end' | 'access'

/** A request to read subscriptions, from an event, `track` or `refresh`. */
export type RefreshRequest =
  /**
   * This subscription, which is added if it is new. The first request decides its business; a later request with another
   * business makes that one the candidate. Only a record that the platform shows for the candidate moves the
   * subscription.
   * `quiet`: the first successful read writes no entry. An event, or a request of this kind without `quiet`, ends that.
   */
  | {
      kind: 'subscription'
      subscriptionUid: string
      businessUid: string
      purchasableUid: string | null
      quiet?: boolean
      announces?: Announcement
    }
  /** This subscription, if the store has it. */
  | { kind: 'stored'; subscriptionUid: string; businessUid: string; announces?: Announcement }
  /**
   * The subscriptions of the business, as `subscriptionsOf` returns them. The newest install or uninstall counts: by
   * `at`, whatever the clock of the process; without it, or with a date more than a day ahead, by its arrival.
   */
  | {
      kind: 'business'
      businessUid: string
      install: { installed: boolean; at: number | null } | null
      /** Searches for subscriptions of the business, if the store has none. */
      search?: boolean
    }
