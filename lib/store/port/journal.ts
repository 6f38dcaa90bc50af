import { MINUTE } from '../../base/clock.js'
import type { Leased, ReadClaim, RefreshRequest } from './subscriptions.js'

/**
 * `entitlement`: an item has begun or ended for a business. It has no answer, because the one at the time of its handling
 * counts. `action`: an action of a person on the journal or a business. It is done from the start and never handled.
 */
export type EntryKind = 'event' | 'change' | 'entitlement' | 'unrecognised' | 'action'
export const ENTRY_KINDS: readonly EntryKind[] = ['event', 'change', 'entitlement', 'unrecognised', 'action']
/** The kinds that only a read makes, so nobody can forge one. */
export const KINDS_OF_READS = ['change', 'entitlement'] as const satisfies readonly EntryKind[]
/** Whether an entry is of `KINDS_OF_READS`. Their topics are the kinds themselves. */
export const isOfRead = (kindOrTopic: string): boolean =>
  (KINDS_OF_READS as readonly string[]).includes(kindOrTopic)
/**
 * `pending`: in its lane, to be handled. `unhandled`: it came before any process had a handler for it, and is no change; it is
 * an event that was set aside; or a change whose retention ended and no process ever handled changes. `done`: its handlers
 * returned. `dead`: its tries are used up; it began alone `MAX_LAPSES` times and never ended; its payload was not known until
 * its retention ended; or its retention ended while no process had the handler that one once had.
 * A replay makes the last three pending again. So does a process that registers the handler, for no change: of each
 * entitlement, of what was set aside, and of what came within `rescueMs`, or without a limit before the first process with
 * handlers had made pending what came before it.
 */
export type EntryStatus = 'pending' | 'unhandled' | 'done' | 'dead'
export const ENTRY_STATUSES: readonly EntryStatus[] = ['pending', 'unhandled', 'done', 'dead']

/** A subject of handlers: `change`, `entitlement`, `unrecognised`, or `event:` and a registration name. */
export type Topic = string
/** The topic of a handler for events of every name. */
export const EVERY_EVENT: Topic = 'event:*'
/**
 * The topic of an entry.
 *
 * @example topicOf({ kind: 'event', name: 'application/installed' }) // event:application/installed
 */
export const topicOf = ({ kind, name }: { kind: EntryKind; name: string }): Topic =>
  kind === 'event' ? `event:${name}` : kind
/**
 * Whether a handler for one of `topics` gets entries of `topic`.
 *
 * @example isTopicAmong(new Set([EVERY_EVENT]), 'event:application/installed') // true
 */
export const isTopicAmong = (topics: { has(topic: Topic): boolean }, topic: Topic): boolean =>
  topics.has(topic) || (topic.startsWith('event:') && topics.has(EVERY_EVENT))

/** An event to accept, with its refresh request. */
export interface NewEvent {
  /** Unique, made by the caller. Handlers use it as their idempotency key. */
  id: string
  kind: 'event' | 'unrecognised'
  /** The registration name; '' when unrecognised. */
  name: string
  /** Entries of one key are handled in order, one at a time. */
  key: string
  businessUid: string | null
  subscriptionUid: string | null
  /** The envelope as JSON text. */
  payload: string
  /** Why it was not recognised: a sentence for each fault. */
  issues: readonly string[] | null
  /** The fingerprint of the delivery secret with which it came. */
  secret?: string | null
  refresh: RefreshRequest | null
}

/** The classes of lanes: what reads found, events of what was read before, and all other deliveries. */
export const LANE_URGENCY = {
  /** Its entries are of `KINDS_OF_READS`. */
  change: 0,
  /** Its subscription, or without one a subscription of its business, was read before. */
  event: 1,
  /** Never read, or not recognised: a forged event looks like a first purchase here. */
  eventOfUnread: 2,
} as const
/** A class of `LANE_URGENCY`. */
export type LaneUrgency = (typeof LANE_URGENCY)[keyof typeof LANE_URGENCY]

/** Which lanes to lease, for how long. */
export interface ClaimLanes {
  /** The most lanes. */
  limit: number
  /** The most entries of all lanes together; but each lane returns at least one. Large payloads may mean fewer lanes. */
  entryLimit: number
  leaseMs: number
  /** The topics that this process handles. */
  topics: readonly Topic[]
  /** Keys of the lanes whose entries this process is handling, whatever any clock shows. */
  exceptKeys: readonly string[]
  /** Picks the class of the next lease: see `ClaimReads`. */
  choose?(due: readonly LaneUrgency[], taken: readonly LaneUrgency[]): LaneUrgency | undefined
}

/** A leased lane. Its `id` is the key. */
export interface LaneClaim extends Leased {
  urgency: LaneUrgency
  /** How often the head began alone before and did not end: see `claimSuspectLane`. 0 for any other lane. */
  lapses: number
  /**
   * Never empty: the head, and the entries after it up to the first of a topic that `claimLanes` did not name or whose
   * next try is not due; within `entryLimit` and some MiB.
   */
  entries: Entry[]
}

/** What there was no room for within the last hour, because the store keeps as much of what deliveries make as it may. */
export interface TurnedAway {
  /** Deliveries with events for which there was no room. Their senders got 503. */
  refused: number
  /** Finished entries that were deleted before the end of their retention, to make room. */
  deleted: number
  /** Unrecognised deliveries by name. They were acknowledged, and only counted. */
  counted: (readonly [name: string, count: number])[]
}

/** The topics that this process handles. */
export interface HandleTopics {
  topics: readonly Topic[]
  /**
   * Events that came unhandled within this time before the call become pending too: the handler was registered after
   * they came.
   */
  rescueMs: number
  /** Events of a topic that no process has named for this time are set aside. */
  retireMs: number
}

/** A topic that no process has named for so long has no handler any more. */
export const HANDLED_FOR_MS = 3 * MINUTE

/** An entry that is handed out to be handled. */
export interface Entry {
  id: string
  kind: EntryKind
  name: string
  key: string
  businessUid: string | null
  subscriptionUid: string | null
  payload: string
  issues: string[] | null
  receivedAt: number
  /** The tries that have ended, those alone that lapsed, and this one. It selects the pause before the next one. */
  attempt: number
  /** The lease of its last try, if that failed; null at the first try, also of a replay. */
  triedUnder: string | null
}

/** The results of entries of one lane. */
export interface LaneFinish extends Leased {
  results: readonly EntryEnd[]
  /** Whether the caller keeps the lease, because it was handed out entries that `results` does not name. */
  keepLease: boolean
}

/** The result of an entry that was handed out. */
export interface EntryEnd {
  id: string
  attempt: number
  /**
   * `retry`: due again in `inMs`. `dead`: only a replay makes it pending again. `stack` of an error of a handler: its class,
   * message and frames, a line for each.
   */
  result:
    | { kind: 'done' }
    | { kind: 'retry'; inMs: number; error: string; stack?: string | null }
    | { kind: 'dead'; error: string; stack?: string | null }
}

/** Which entries of the journal to list. */
export interface EntryFilter {
  /** `retrying`: pending and tried before. */
  status?: EntryStatus | 'retrying'
  /** The kind of the entry. */
  kind?: EntryKind
  /** The registration name of an event, or the name of an action. */
  name?: string
  /** Only entries that name this business. */
  businessUid?: string
  /** Of this subscription, or of any of these; a statement has a range for each of them. */
  subscriptionUid?: string | readonly string[]
  /** Received at this time or later: milliseconds since 1970. */
  since?: number
  /** Received before this time: milliseconds since 1970. */
  until?: number
  /** The most entries: 1 to 1,000, by default 100. */
  limit?: number
  /** Entries older than the one with this id, which is the last id of the page before. */
  before?: string
}

/** An entry of the journal, for people. Times are ISO 8601, UTC. */
export interface JournalEntry {
  id: string
  kind: EntryKind
  name: string
  status: EntryStatus
  businessUid: string | null
  subscriptionUid: string | null
  /**
   * A value; its JSON text if it is nested more than 500 levels deep. It is parsed each time that it is read: a made-up value
   * takes up to 28 times the memory of its text, and a list has 1,000.
   */
  readonly payload: unknown
  issues: string[] | null
  attempts: number
  error: string | null
  /** The stack of the error, a line for each frame; null if a handler threw no error. */
  stack: string | null
  receivedAt: string
  dueAt: string | null
}

/**
 * Retention, from the time when an entry was done or dead; of one that nobody handled, from its arrival, or since it last
 * became pending or was tried (a change: since it became unhandled); of a subscription, from its last request.
 */
export type Retention = Record<'eventsMs' | 'changesMs' | 'actionsMs' | 'deadMs', number>

/** What one batch of `prune` did. */
export interface Pruned {
  /** Rows deleted or ended; 0 when nothing is left to do. */
  rows: number
  /** Entries that ended because no process has the handler any more that one once had. */
  dead: DeadEntry[]
}

/** An entry that is dead: see `EntryStatus`. */
export interface DeadEntry {
  id: string
  kind: EntryKind
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  attempts: number
  error: string
}

/** The number of entries, by status. */
export interface EntryCounts {
  /** Entries in a lane, to be handled. */
  pending: number
  /** Of the pending entries, those that were tried before. */
  retrying: number
  /**
   * How long the longest due entry has been due: since it was received, made pending again or returned untried, its next try
   * came, the entry before it in its lane ended, or its lane got another class; null when none is due. Entries that are being
   * handled, stand behind others, or have no handler are not due. An entry whose lease ran out is due since then.
   */
  oldestPendingMs: number | null
  /** Entries whose tries are used up, or that nobody handled in time. */
  dead: number
  /**
   * How long the oldest entry has waited whose handler a process had within the last week, and no process has now; null when
   * there is none. A handler that is missing for longer was removed on purpose.
   */
  oldestMissedMs: number | null
  /** Deliveries that are not a known event. */
  unrecognised: number
  /**
   * The newest changes of the last week that an event, a reconcile or a request found, without first records: at most
   * `JUDGED_CHANGES`, among the newest 100 with first records. Those of a request count an hour later, and never in the
   * first hour of their subscription in the store.
   */
  recentChanges: number
  /**
   * Of these, the ones that no event found, and no event named their subscription within an hour after that. An event that
   * comes late is no sign that events do not come.
   */
  unannouncedChanges: number
  /**
   * The counts of first records, which are changes whose payload has `from: null`: another event announces them than
   * later changes.
   */
  recentFirstRecords: number
  /** The recent first records that no event announced. */
  unannouncedFirstRecords: number
}

/**
 * The key of the events of a subscription. Entries of one key are handled in order.
 *
 * @example subscriptionKey('subscription-1') // subscription:subscription-1
 */
export const subscriptionKey = (subscriptionUid: string): string => `subscription:${subscriptionUid}`
/**
 * The key of the events of a business that name no subscription.
 *
 * @example businessKey('business-1') // business:business-1
 */
export const businessKey = (businessUid: string): string => `business:${businessUid}`
/**
 * The key of the changes of a business. They are handled one after the other, because their handlers write the answer for
 * the business, and the last one has to write the last answer.
 *
 * @example changesKey('business-1') // changes:business-1
 */
export const changesKey = (businessUid: string): string => `changes:${businessUid}`
/**
 * The key of the entitlement of a business: its handlers are called one after the other.
 *
 * @example entitlementKey('business-1') // entitlement:business-1
 */
export const entitlementKey = (businessUid: string): string => `entitlement:${businessUid}`
/** The changes that are judged. They are few, so that a registration that was lost or is put right shows within a few events. */
export const JUDGED_CHANGES = 10

/** An item that began alone this often and never ended is taken for the cause that ends the process. */
export const MAX_LAPSES = 5
/** What may be suspect: the head of a lane, or a read. */
export type SuspectKind = 'lane' | 'read'

/** Which suspect lane to lease, for how long. */
export type ClaimSuspectLane = Pick<ClaimLanes, 'leaseMs' | 'topics' | 'exceptKeys'>

/**
 * The calls for suspects. A lane or a subscription whose lease ran out is suspect: it may have ended the process, or was
 * leased beside one that did. The process runs nothing of its kind beside it. The claim counts as its beginning. A result
 * ends the suspicion; a finish of a lane without a result, or of a read that was not made, takes the beginning back.
 */
export interface SuspectCalls {
  /** Leases the due suspect lane with the fewest lapses, and returns only its head. On disk when this resolves. */
  claimSuspectLane(options: ClaimSuspectLane): Promise<LaneClaim | undefined>
  /** Of these kinds, that of the due suspect with the fewest lapses; null when none is due. */
  dueSuspect(
    options: Omit<ClaimSuspectLane, 'leaseMs'> & { kinds: readonly SuspectKind[] },
  ): Promise<SuspectKind | null>
  /**
   * Leases the due suspect subscription with the fewest lapses. One whose reads have lapsed `MAX_LAPSES` times gets the
   * failure `lease_lapsed` and is put off, by a pause that doubles from 5 min to 5 h, whatever is requested meanwhile.
   */
  claimSuspectRead(options: { leaseMs: number }): Promise<ReadClaim | undefined>
}
