import type {
  Decision,
  Health,
  HealthProblem,
  HistoryItem,
  JournalEntry,
  NextStep,
  SubscriptionStatus,
  WebhookReport,
} from '../../index.js'
import type { Person } from './roles.js'

/** The reply of each call, shared with the page, apart from the file of an export. Times are ISO 8601, UTC. */
export interface Replies {
  /** `signInUrl`: where a person signs in again; null if the app has not given it. */
  session: { person: Person; token: string; calls: string[]; signInUrl: string | null }
  search: SearchReply
  business: BusinessReply
  history: { items: HistoryItem[]; before: string | null }
  /** `examined`: how many subscriptions this page looked at. `after`: where the next page begins; null after the last. */
  subscriptions: { subscriptions: SubscriptionRow[]; examined: number; after: string | null }
  entry: EntryDetail
  attention: AttentionReply
  /** `next`: the `from` of the next page. */
  group: { entries: EntryRow[]; next: string | null }
  /** `next`: the `before` of the next page, which examines older deliveries. */
  shapes: { shapes: DeliveryShape[]; examined: number; next: string | null; isAll: boolean }
  webhooks: WebhooksReply
  live: LiveReply
  health: HealthReply
  activity: ActivityReply
  previewReplay: ReplayPreview
  /** Those of the entries that still exist. */
  outcomes: { entries: OutcomeRow[] }
  /** `outcome`: what the read did, in words. */
  refresh: BusinessReply & { outcome: string }
  track: BusinessReply & { outcome: string }
  /** `ids`: the entries that were replayed, for `outcomes`. */
  replay: { replayed: number; left: number; hasOlder: boolean; ids: string[] }
  erase: { business_uid: string; erasedAt: string; rows: number }
  /** `sentences`: what is there, and what an erasure means. */
  stored: { business_uid: string; isStored: boolean; sentences: string[] }
}

/**
 * Limit of a searched text, which is part of an address: with more, its request has headers that Node refuses with 431. A
 * character takes up to nine bytes there, of 16 KiB. A delivery with every documented field has 600 characters.
 */
export type SearchCharacters = 1_500

/** The most entries of one call of `outcomes`. */
export type MaxOutcomes = 100

export interface SearchReply {
  /** The business that was found, or the first term. Null if the text contains no identifier. */
  business_uid: string | null
  /** The subscription that led to the business. */
  subscription_uid: string | null
  isKnown: boolean
  /** The identifiers that were looked up, in this order. */
  terms: string[]
  /** A business and a subscription of another one with the same uid; or if nothing is known: similar ones, the most similar first. */
  near: Found[]
  /** The `lookup` of the app failed, so that a name or a mail address finds nothing. */
  hasLookupFailed: boolean
}

/** A stored business, or a subscription of it. */
export interface Found {
  business_uid: string
  subscription_uid: string | null
}

export interface BusinessReply {
  business_uid: string
  decision: Decision
  headline: string
  /** `meaning` of the reason. */
  cause: string
  step: NextStep
  /** Null while the database cannot be read. */
  subscriptions: SubscriptionRow[] | null
  /** Where the next page of subscriptions begins; null after the last page. */
  after: string | null
}

/** A subscription as last read. Some fields of its record are masked for support. `trouble`: its `failure` in words. */
export type SubscriptionRow = Omit<SubscriptionStatus, 'record'> & {
  record: Record<string, unknown> | null
  trouble: string | null
}

/** An entry of the journal without its payload. For support, `error` is only the class of the error. */
export type EntryRow = Pick<
  JournalEntry,
  | 'id'
  | 'kind'
  | 'name'
  | 'status'
  | 'business_uid'
  | 'subscription_uid'
  | 'attempts'
  | 'error'
  | 'receivedAt'
  | 'dueAt'
  | 'cause'
>

/** `sharedError`: the error without the identifiers of the entry, as the groups of `attention` show it. */
export type OutcomeRow = EntryRow & { sharedError: string | null }

/** With its payload and the stack of its error; for support only the shape of the payload with the names of known fields, no stack, and of issues only how many there are. */
export type EntryDetail = EntryRow &
  Pick<JournalEntry, 'issues' | 'stack' | 'payload'> & { isMasked: boolean }

export const ATTENTION_STATUSES = ['dead', 'retrying'] as const
export type AttentionStatus = (typeof ATTENTION_STATUSES)[number]

/** Entries whose handlers failed with the same error. */
export interface AttentionGroup extends Pick<JournalEntry, 'kind' | 'name'> {
  key: string
  /** Where the examined entries begin that contain it. Null: at the newest. */
  before: string | null
  status: AttentionStatus
  /** The error without the identifiers of the entry; for support only its class. */
  error: string
  count: number
  oldest: string
  newest: string
  /** The newest of them. */
  entryId: string
}

export interface AttentionReply {
  groups: AttentionGroup[]
  /** Of the examined entries. */
  counts: Record<AttentionStatus, number>
  /** For each status, the `before` of the call that examines older entries; null when there are none. */
  next: Record<AttentionStatus, string | null>
  /** Whether there are no older entries. */
  isAll: boolean
}

/** Unrecognised deliveries of one shape. */
export interface DeliveryShape {
  /** `entity_name/event_type`; for support `other` in place of an unknown one. */
  event: string
  /** For support a sentence with their number. */
  issues: string[]
  shape: unknown
  count: number
  newest: string
  /** The newest of them. */
  entryId: string
}

export interface WebhooksReply {
  report: WebhookReport
  /** The first subscriptions for other items. */
  otherItems: Pick<SubscriptionStatus, 'subscription_uid' | 'business_uid' | 'purchasable_uid'>[]
  /** How many subscriptions were examined for `otherItems`, and whether there are no others. */
  examined: number
  isAll: boolean
}

export interface LiveReply {
  /** Newest first: all since `after`, and at least the latest ones, whose status may have changed. */
  entries: EntryRow[]
  /** The `after` of the next call. */
  last: string | null
  /** More entries arrived than one reply contains: some are missing. */
  hasGap: boolean
}

/** A problem of health. `place`: the chapter in which `next` is done; absent if that is not in the console. */
export interface ProblemRow extends HealthProblem {
  place?: 'attention' | 'business' | 'live'
}

export interface HealthReply {
  status: Health['status']
  problems: ProblemRow[]
  /** What every page shows a banner for. */
  down: 'database' | 'platform' | null
  /** How many entries are dead or retrying, as a number for people; null while the database does not answer. */
  failed: string | null
  /** The counts in words; null while the database does not answer. */
  numbers: { words: string; text: string }[] | null
  /** Why this instance is not ready, in sentences; empty if it is. */
  notReady: string[]
  /** The process that answered. */
  process: { pid: number; node: string; startedAt: string }
  now: string
}

/** The last day by the hour, of the newest entries. */
export interface ActivityReply {
  /** The oldest first. `handled` and `failed`: of the deliveries and changes that came in this hour. `at`: its beginning. */
  hours: { at: string; deliveries: number; handled: number; failed: number }[]
  /** Whether all entries of the day were examined. */
  isAll: boolean
}

/** An entry that a replay passes to its handlers. */
export interface ReplaySample extends EntryRow {
  /**
   * Of a change or an entitlement: the `entitled` that a handler would get now. Null for other entries, and while the answer is
   * not known.
   */
  entitled: boolean | null
}

export interface ReplayPreview {
  /** Number of matching entries. */
  matched: number
  /** How many of them one call replays, the oldest first. */
  takes: number
  businesses: number
  oldest: string | null
  newest: string | null
  sample: ReplaySample[]
  /** The effect of the replay, in sentences. */
  effect: string
}
