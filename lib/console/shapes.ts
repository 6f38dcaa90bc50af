import type { Decision, Health, HistoryItem, Readiness, Reason, WebhookReport } from '../index.js'
import type { NextStep } from './next-steps.js'
import type { Person } from './roles.js'

/** What each call answers, shared with the page. Times are ISO 8601, UTC. */
export interface Replies {
  session: { person: Person; token: string; calls: string[] }
  search: SearchReply
  business: BusinessReply
  history: { items: HistoryItem[]; before: string | null }
  answerAt: { at: string; decision: Decision; headline: string }
  subscriptions: { subscriptions: SubscriptionRow[]; after: string | null }
  entry: EntryDetail
  attention: AttentionReply
  group: { entries: EntryRow[]; next: number | null }
  shapes: { shapes: DeliveryShape[]; looked: number; isAll: boolean }
  webhooks: WebhooksReply
  live: LiveReply
  health: HealthReply
  previewReplay: ReplayPreview
  refresh: BusinessReply
  track: BusinessReply
  replay: { replayed: number; left: number }
  export: { fileName: string; data: unknown }
  erase: { business_uid: string; erasedAt: string; rows: number }
}

export interface SearchReply {
  /** The business that was found; else what will be asked about. Null: nothing that can be an identifier was pasted. */
  business_uid: string | null
  /** The subscription by which it was found. */
  subscription_uid: string | null
  isKnown: boolean
  /** What was looked up, in this order. */
  terms: string[]
}

export interface BusinessReply {
  business_uid: string
  decision: Decision
  /** `meaning` of the reason. */
  cause: string
  next: NextStep
  subscriptions: SubscriptionRow[]
  /** Where the next page of subscriptions begins; null: there is none. */
  after: string | null
}

export interface SubscriptionRow {
  subscription_uid: string
  business_uid: string
  purchasable_uid: string | null
  state: string | null
  reason: Reason
  /** What the platform said last; fields are masked for support. */
  record: Record<string, unknown> | null
  readAt: string | null
  requestedAt: string | null
  refreshAt: string | null
  failure: string | null
  gone: string | null
  pending: boolean
  createdAt: string
}

/** An entry of the journal without its payload. */
export interface EntryRow {
  id: string
  kind: string
  name: string
  status: string
  business_uid: string | null
  subscription_uid: string | null
  attempts: number
  error: string | null
  receivedAt: string
  dueAt: string | null
}

export interface EntryDetail extends EntryRow {
  issues: string[] | null
  /** For support its shape only. */
  payload: unknown
  isMasked: boolean
}

export type AttentionStatus = 'dead' | 'retrying'

/** Entries that failed in the same handlers in the same way. */
export interface AttentionGroup {
  key: string
  status: AttentionStatus
  kind: string
  name: string
  /** With numbers and identifiers taken out. */
  error: string
  count: number
  oldest: string
  newest: string
}

export interface AttentionReply {
  groups: AttentionGroup[]
  counts: Record<AttentionStatus, number>
  /** False: there are more than were looked at. */
  isAll: boolean
}

/** Unrecognised deliveries of one shape. */
export interface DeliveryShape {
  /** `entity_name/event_type`, where they look like names. */
  event: string
  issues: string[]
  shape: unknown
  count: number
  newest: string
  /** One of them. */
  entry_id: string
}

export interface WebhooksReply {
  report: WebhookReport
  /** The first subscriptions that are for other items. */
  otherItems: { subscription_uid: string; business_uid: string; purchasable_uid: string | null }[]
}

export interface LiveReply {
  /** Newest first: all since `after`, and at least the latest, whose status may have changed. */
  entries: EntryRow[]
  /** Ask with this next time. */
  last: string | null
  /** More came in than one reply holds: some are left out. */
  hasGap: boolean
}

export interface HealthReply {
  health: Health
  readiness: Readiness
  /** The same problems with what to do about each. */
  problems: { problem: string; todo: string }[]
  /** Known of this process. */
  process: { pid: number; node: string; startedAt: string }
  now: string
}

export interface ReplayPreview {
  /** Entries that fit. */
  matched: number
  /** Of those, how many this call would replay: the oldest first. */
  takes: number
  businesses: number
  oldest: string | null
  newest: string | null
  sample: EntryRow[]
  /** What it will do, in words. */
  words: string
}
