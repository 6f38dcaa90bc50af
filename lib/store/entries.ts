import type { Leased, RefreshRequest } from './reads.js'

/** `action`: what a person did with the journal or a business; it is done from the start and never handled. */
export type EntryKind = 'event' | 'change' | 'unrecognised' | 'action'
/**
 * `pending`: in its lane, to be handled. `waiting`: nobody handles its topic now; pending as soon as somebody does.
 * `unhandled`: an event that nobody handled when it came. `done`: its handlers returned. `dead`: out of tries, or out
 * of time while it waited. Only a replay makes the last three pending again.
 */
export type EntryStatus = 'pending' | 'waiting' | 'unhandled' | 'done' | 'dead'

/** What handlers are registered for: `change`, `unrecognised`, or `event:` and a registration name. */
export type Topic = string
/** The topic of a handler for events of every name. */
export const EVERY_EVENT: Topic = 'event:*'
/**
 * What handlers of an entry are registered for.
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

/** An event to be kept, with the reads it requests. */
export interface NewEvent {
  /** Made by the caller, unique: the handlers' idempotency key. */
  id: string
  kind: 'event' | 'unrecognised'
  /** The registration name, or '' when unrecognised. */
  name: string
  /** Entries of one key are handled in order and never at once. */
  key: string
  businessUid: string | null
  subscriptionUid: string | null
  /** The envelope as JSON text. */
  payload: string
  /** Why it was not recognised, one sentence each. */
  issues: readonly string[] | null
  refresh: RefreshRequest | null
}

/** Which lanes to lease, for how long. */
export interface ClaimLanes {
  /** Lanes at most. */
  limit: number
  /** Entries at most, of all lanes together; each lane hands out one at least. */
  entries: number
  leaseMs: number
  /** What this process handles. */
  topics: readonly Topic[]
  /** Lanes of which this process is handling something, whatever any clock shows. */
  exceptKeys: readonly string[]
}

/** The line of entries of one key. Its `id` is the key. */
export interface LaneClaim extends Leased {
  /** Leases that ran out in a row without a finish, this one not counted. After one, only the head is handed out. */
  lapses: number
  /** Never empty: the head, and what follows it up to the first entry of a topic that was not asked for. */
  entries: Entry[]
}

/** The topics that this process handles. */
export interface HandleTopics {
  topics: readonly Topic[]
  /** Also hand over events that were found unhandled within this time: their receiver did not know of the handler yet. */
  rescueMs: number
  retireMs: number
}

/** An entry that is handed over. */
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
  /** Tries so far, this one included: 1 at the first. */
  attempt: number
}

/** What became of entries of one lane. */
export interface LaneFinish extends Leased {
  results: readonly EntryEnd[]
  /** Whether the lease stays, for the entries that were handed out and are not named here. */
  keep: boolean
}

/** What became of an entry that was handed over. */
export interface EntryEnd {
  id: string
  attempt: number
  /** `retry` is due again in `inMs`; `dead` waits for a replay. */
  result: { kind: 'done' } | { kind: 'retry'; inMs: number; error: string } | { kind: 'dead'; error: string }
}

/** Which entries of the journal to list. */
export interface EntryFilter {
  /** `retrying`: pending, and tried before. */
  status?: EntryStatus | 'retrying'
  kind?: EntryKind
  /** The registration name of an event, or the name of an action. */
  name?: string
  businessUid?: string
  subscriptionUid?: string
  /** Received at this time or later, and before `until`: ms since 1970, by the caller's wall clock. */
  since?: number
  until?: number
  /** At most this many, 100 unless told; bounds 1 to 1,000. */
  limit?: number
  /** Entries older than the one with this id: the last id of the page before. */
  before?: string
}

/** Times are ISO 8601, UTC. */
export interface JournalEntry {
  id: string
  kind: EntryKind
  name: string
  status: EntryStatus
  businessUid: string | null
  subscriptionUid: string | null
  payload: unknown
  issues: string[] | null
  attempts: number
  error: string | null
  receivedAt: string
  dueAt: string | null
}

/** Counted from when an entry was done, dead, or began to wait for a handler; of a subscription, since it was requested. */
export type Retention = Record<'doneMs' | 'changesMs' | 'deadMs', number>

/** How much `prune` deleted, and what died while it waited. */
export interface Pruned {
  /** Rows deleted or ended; 0 when there is nothing more to do. */
  rows: number
  /** What ended because nobody came to handle it. */
  dead: DeadEntry[]
}

/** An entry that ran out of tries, or of time while it waited for a handler. */
export interface DeadEntry {
  id: string
  kind: EntryKind
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  attempts: number
  error: string
}

/** How many entries the journal has, by status. */
export interface EntryCounts {
  /** Entries that wait for a handler's turn. */
  pending: number
  /** Of those, the ones that were tried before. */
  retrying: number
  /** The age of the oldest pending entry, in ms; null when there is none. */
  oldestPendingMs: number | null
  dead: number
  /** Changes and events whose handler is not registered anywhere now. */
  waiting: number
  unrecognised: number
}
