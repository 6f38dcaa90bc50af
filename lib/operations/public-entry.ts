import type {
  Cause,
  DeadEntry as DeadInStore,
  EntryKind,
  EntryStatus,
  JournalEntry as InStore,
} from '../store/store.js'
import type { HandlerFailure as FailureInWorker } from '../work/call-handlers.js'
import type { StoredChange } from '../work/purchase-change.js'

/**
 * Journal entries as the app gets them. Like every public result, they spell identifiers as the platform does
 * (`business_uid`). Inside the package identifiers are camelCase; this file converts them.
 */
interface Named {
  business_uid: string | null
  subscription_uid: string | null
}

/** An entry of the journal, for people. Times are ISO 8601, UTC. */
export interface JournalEntry extends Named {
  id: string
  kind: EntryKind
  /** The registration name; '' for changes and unrecognised deliveries. */
  name: string
  status: EntryStatus
  payload: unknown
  /** Of a change: why the subscription was read. Null for all other entries. */
  cause: Cause | null
  issues: string[] | null
  attempts: number
  error: string | null
  receivedAt: string
  dueAt: string | null
}

/** An entry whose tries are used up, or that waited too long for a handler. */
export interface DeadEntry extends Named {
  id: string
  kind: EntryKind
  name: string
  attempts: number
  error: string
}

/** One failed try of one handler. */
export interface HandlerFailure extends Named {
  id: string
  kind: EntryKind
  name: string
  /** 1 at the first try. */
  attempt: number
  /**
   * The error of the handler, or a `MarketplaceError`: `handler_timeout`, or `store_unavailable` if the store could not be
   * read to compute `entitled` of a change. Then no handler was called, and this is not the last try.
   */
  error: unknown
  /** Time until the next try; null after the last try, when the entry is dead. */
  retryInMs: number | null
}

export const publicEntry = ({ id, kind, name, status, ...entry }: InStore): JournalEntry => ({
  id,
  kind,
  name,
  status,
  ...withPlatformNames(entry),
  cause: kind === 'change' ? ((entry.payload as StoredChange | null)?.cause ?? null) : null,
})

export const publicEntries = (entries: readonly InStore[]): JournalEntry[] => entries.map(publicEntry)

export const publicDeath = (entry: DeadInStore): DeadEntry => withPlatformNames(entry)

export const publicFailure = (failure: FailureInWorker): HandlerFailure => withPlatformNames(failure)

/** The same with `business_uid` and `subscription_uid` instead of the internal names. */
function withPlatformNames<T extends { businessUid: string | null; subscriptionUid: string | null }>({
  businessUid,
  subscriptionUid,
  ...rest
}: T): Omit<T, 'businessUid' | 'subscriptionUid'> & Named {
  return { business_uid: businessUid, subscription_uid: subscriptionUid, ...rest }
}
