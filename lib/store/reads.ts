import type { SubscriptionRecord } from '../record.js'

/** What holds a lease. */
export interface Leased {
  /** The subscription uid or the entry id. */
  id: string
  leaseToken: string
}

/** A subscription with what is known of it. */
export interface Subscription {
  subscriptionUid: string
  businessUid: string
  /** The item that the record names; before the first read the one that the first request named. */
  purchasableUid: string | null
  /** The record as last applied; null until the first successful read. Kept as evidence when `gone`. */
  record: SubscriptionRecord | null
  /** The effective purchase_state; null until read, and when `gone`. */
  state: string | null
  /** The platform no longer shows it (`missing`), or refuses the token after an uninstall (`revoked`). */
  gone: 'missing' | 'revoked' | null
  /** When a read last confirmed `state`. */
  readAt: number | null
  /** When an event, `track` or `refresh` last asked for a read. */
  requestedAt: number | null
  /** A read was requested and none begun since has finished well. */
  pending: boolean
  /** Requested, not shown by the platform yet, and due to be read again soon: the platform may lag behind its event. */
  verifying: boolean
  /** Code of the last read's failure, if it failed and no further read has been asked for since. */
  failure: string | null
  /** When the next read is due; null when it was given up (a further request revives it), or is of another item. */
  refreshAt: number | null
  /** Never read, and what its first good read finds makes no change: so all have asked who asked for it. */
  quiet: boolean
}

/** Which subscriptions to lease for reading, and for how long. */
export interface ClaimReads {
  leaseMs: number
  /** How many at most. */
  limit: number
  /** Businesses that are being read by this process. */
  except: readonly string[]
  /** Which classes to look in, the preferred first. */
  urgencies: readonly Urgency[]
  /**
   * From which class the next read is leased: `due` are the classes that have one left, in the order of `urgencies`;
   * `taken` the classes of those leased so far. Undefined: no more. Absent: the first. May be asked again from the start.
   */
  choose?(due: readonly Urgency[], taken: readonly Urgency[]): Urgency | undefined
}

/**
 * Why a read is due, and so what it goes before. 0: requested by an event, and read before. 1: named by an event, never
 * read. 2: requested by `track` or `refresh`. 3: the verification of a good read. 4: the regular reconcile.
 * A read that failed stays in its class.
 */
export type Urgency = 0 | 1 | 2 | 3 | 4

/** A subscription that was leased for reading. */
export interface ReadClaim extends Leased {
  subscription: Subscription
  urgency: Urgency
  /** The generation this read will settle: how many reads have been requested. */
  generation: number
  /** The generation settled last; below `generation` when a request led to this read. */
  settledGeneration: number
  /** Another business that was named for the subscription, to be tried when its own does not show it. */
  candidateBusinessUid: string | null
  /** Leases that ran out in a row without a finish, this one not counted. */
  lapses: number
  /** When the business was last said to have uninstalled the app, with no install after it. */
  uninstalledAt: number | null
  /** When the subscription was first heard of. */
  createdAt: number
  /** The reader's own memory between tries: JSON, opaque to the store. */
  progress: string | null
  /** When it was leased, by the store's clock: only the store compares it. */
  claimedAt: number
}

/** What a read came to. */
export interface ReadFinish {
  /** Set when the read changed or confirmed what is known; absent when it failed or showed nothing to go by. */
  found?: {
    record: SubscriptionRecord | null
    state: string | null
    gone: Subscription['gone']
  }
  /** Whether the claimed generation is settled by this read. */
  settled: boolean
  /** See `Subscription`. */
  verifying?: boolean
  /** The class of the next read; absent: as it is. */
  urgency?: Urgency
  /** The business to try next time beside the row's own; null: none. Absent: as it is. */
  candidate?: string | null
  failure: string | null
  progress: string | null
  /** When to read next, from now; null gives up. */
  nextInMs: number | null
  /** Forget the uninstall: the platform has served the business long after it. */
  clearUninstalled?: boolean
  /**
   * The observed changes, in order: one, or two when the subscription went from one business to another. The store writes
   * none of them where the subscription is `quiet` until now.
   */
  changes?: readonly NewChange[]
}

/** A change to be kept for `onPurchaseChange`. */
export interface NewChange {
  id: string
  key: string
  /** Whose access the change is about. */
  businessUid: string
  /** Called inside the transaction with the rows of that business as written. */
  payload(subscriptions: Subscription[], now: number): string
}

/** How far counts go: none looks at more rows of an index than this. SQLite counts as many in a quarter of a millisecond. */
export const COUNTED_UP_TO = 10_000

/** Each number is counted up to `COUNTED_UP_TO`. */
export interface SubscriptionCounts {
  /** All rows, with those remembered of other items. */
  subscriptions: number
  /** A read was requested, and the platform has not answered yet. */
  requested: number
  /** The age of the oldest of them, in ms; null when there is none. */
  oldestRequestMs: number | null
  /** Not read any more. */
  givenUp: number
  /** Of those, the ones that had been read before. */
  knownGivenUp: number
  /**
   * Read before, neither gone nor canceled: those that the platform shows, counted up to 1,000 or as many as `refused`,
   * and those that it refuses.
   */
  active: number
  /** Of those, the ones whose last read the platform refused. They are counted further than `active` alone, so that the two show whether most are refused. */
  refused: number
}

/** What an event asks to be read again. */
export type RefreshRequest =
  /**
   * This subscription, learned of if it is new. The first request decides its business; another business is kept as its
   * candidate. Only a record that the platform shows for the candidate moves the subscription.
   * `quiet` asks for no change of what its first good read finds. It counts only while nobody else has asked: any event,
   * and any request of this kind that is not quiet, ends it.
   */
  | {
      kind: 'subscription'
      subscriptionUid: string
      businessUid: string
      purchasableUid: string | null
      quiet?: boolean
    }
  /** This subscription if it is known; an event alone does not make it the app's. */
  | { kind: 'known'; subscriptionUid: string; businessUid: string }
  /** A notice for an item that is not the app's: remembered, so that a person can see why nobody is let in. */
  | { kind: 'other_item'; subscriptionUid: string; businessUid: string; purchasableUid: string }
  /** Every known subscription of the business. Of installs and uninstalls the last to happen counts: `at`; null: now. */
  | { kind: 'business'; businessUid: string; install: { installed: boolean; at: number | null } | null }
