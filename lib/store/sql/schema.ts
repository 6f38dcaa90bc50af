import type { Cause, EntryKind, EntryStatus, Subscription, Urgency } from '../port/store.js'

// The rows of each table, in both engines; `migrations.ts` has the SQL that creates them. Times are milliseconds since
// 1970, in the store's time of dates. The end of a lease is in its time of leases. Columns marked JSON hold JSON text.

/** A subscription: the record as last read, and the work of reading it again. docs/states.md has its states. */
export interface SubscriptionsTable {
  subscription_uid: string
  business_uid: string
  /** Another business that a request named for the subscription. */
  candidate_business_uid: string | null
  purchasable_uid: string | null
  /** The record as last applied (JSON). */
  record: string | null
  /** 0: a read has found a record. 1: none has yet. */
  unread: 0 | 1
  state: string | null
  gone: Subscription['gone']
  read_at: number | null
  /** The number of refresh requests. A read is owed while it is above `settled_generation`. */
  generation: number
  /** The generation that the last conclusive read had seen. */
  settled_generation: number
  requested_at: number | null
  /** The time of the oldest refresh request that the platform has not answered, or of the newest during the last read. */
  owed_since: number | null
  /** When the next read is due; while leased, when the lease runs out. Null: given up. */
  refresh_at: number | null
  /** The end of the pause after the last read, or after its return unmade. A request makes the row due no earlier. */
  not_before: number | null
  urgency: Urgency
  /** Why the next read is made: the place of the cause in `CAUSES`. */
  cause: number
  /** 1: never read, and the last read did not show it: the platform may lag behind its event, or refuse everybody. */
  verifying: 0 | 1
  lease_token: string | null
  /** The lease of the last finish; with the end ` too late` if only a failed read was written. */
  finished_by: string | null
  /** 1: a lease ran out without a finish, so it is read alone until a read is written. */
  suspect: 0 | 1
  /** Reads alone that began and were not written, the one under way included. */
  lapses: number
  failure: string | null
  /** What the reader remembers between tries (JSON). */
  progress: string | null
  /** The latest date that the platform gave an install or uninstall. */
  install_at: number | null
  /** When the last one without a date arrived, by the wall clock of the process that received it. */
  install_arrived_at: number | null
  /** When the store learned of the newest of them, if it is an uninstall. */
  uninstalled_at: number | null
  /**
   * When the present streak of refused or missing reads of a known subscription began; null after a found record, and when
   * the access of a canceled one has ended.
   */
  failing_since: number | null
  /**
   * When the present streak of found records began; for the first record of a subscription, `created_at`. Null while
   * reads fail.
   */
  served_since: number | null
  /** When the store learned of the first `update`, or uninstall, whose change no found record has shown yet. */
  update_at: number | null
  /** When the store learned of an event whose own record shows an end, since the last found record. */
  end_at: number | null
  /** 1: never read, and only quiet imports and `refresh` requested it. */
  quiet_until_read: 0 | 1
  /** 1: the last finish that could judge found that it gives access, by the app's rule. */
  entitles: 0 | 1
  created_at: number
}

/**
 * The search for subscriptions of a business of which the store has none that was read. docs/states.md has its states.
 */
export interface SearchesTable {
  business_uid: string
  /** 1: the app has asked for it. 0: only installs have. */
  asked: 0 | 1
  /** 1: the next search is made because of an install. Anybody with the delivery secret can send these, so they come last. */
  by_install: 0 | 1
  /** When the next search is due; while leased, when the lease runs out. */
  search_at: number
  /** When the platform last answered. */
  searched_at: number | null
  /** When it was requested; once it is answered, when somebody last wanted the answer. */
  wanted_at: number
  /** The number of requests. A search is owed while it is above `settled_generation`. */
  generation: number
  /** The generation that the last settled search had seen; 0: none was settled. */
  settled_generation: number
  /** When the platform first gave the answer that may be too early, and that it has repeated since; null: none. */
  doubted_at: number | null
  /** Failed tries since it was last answered or requested by `refresh`. */
  failures: number
  failure: string | null
  lease_token: string | null
}

/**
 * An event, a change, the entitlement of a business, a delivery that was not recognised, or an action. docs/states.md has its
 * states.
 */
export interface JournalTable {
  seq: number
  id: string
  kind: EntryKind
  name: string
  topic: string
  key: string
  business_uid: string | null
  subscription_uid: string | null
  status: EntryStatus
  /** Tries that have ended, and earlier runs alone that lapsed. */
  attempts: number
  error: string | null
  received_at: number
  /**
   * When a pending entry is due: its next try, or since it was made pending again; null for a new one, which is due at once.
   * An event that is set aside keeps it, for its retention.
   */
  due_at: number | null
  /**
   * When its last try ended or was put off, it ended for another reason, or an event was set aside; else null. A replay clears
   * it.
   */
  settled_at: number | null
  /** The lease under which the last try ended, whatever became of the entry since; null before its first end. */
  tried_under: string | null
  /** Of a change: why the subscription was read. */
  cause: Cause | null
  /** Of a delivery: the fingerprint of its delivery secret; null in entries of version 1. */
  secret: string | null
  /** 0: what a read made, or an event that names what was read before. 1: any other. */
  unread: 0 | 1
  /** Of `error`, if a handler threw it: a line for each frame. */
  stack: string | null
  /** JSON; null when recognised */
  issues: string | null
  /** JSON */
  payload: string
}

/** A key that has pending entries. Its head is the pending entry with the lowest `seq`. docs/states.md has its states. */
export interface LanesTable {
  key: string
  /** The topic of the head; while a holder keeps its lease after a finish, still that of the head at its claim. */
  topic: string
  /** When the head is due; while leased, when the lease runs out. */
  due_at: number
  lease_token: string | null
  /** 1: a lease ran out without a finish, so its head is handled alone until its result is written. */
  suspect: 0 | 1
  /** Tries of the head alone that began and were not written, the one under way included. */
  lapses: number
  /** 0: it has what reads made, or a read has shown what its events name, so no sender made that up. 1: any other. */
  unread: 0 | 1
}

/** A topic that some process has, or once had, handlers for. docs/states.md has its states. */
export interface HandlersTable {
  topic: string
  /** When a process last named it, in the time of leases: a machine that slept has forgotten no topic. */
  seen_at: number
  /**
   * When the events that came before its first handler had been made pending, in the time of leases; null: they may not
   * be yet.
   */
  rescued_at: number | null
  /** The time from which on they are made pending, in the time of leases; null: all of them. */
  rescue_from: number | null
}

/** What the processes have seen of the platform beside deliveries and records, for its report: one row, with the id 1. */
export interface PlatformFactsTable {
  id: number
  /** JSON; '' until the first facts are stored. */
  facts: string
}

/** The app that the store belongs to: one row, with the id 1. */
export interface StoreOwnerTable {
  id: number
  fingerprint: string | null
  /** 1: a subscription was read into this store, by this app or one before it, so another app is refused. */
  has_read: number
}
