import type {
  DeadEntry as DeadInStore,
  EntryKind,
  EntryStatus,
  JournalEntry as InStore,
} from '../store/store.js'
import type { HandlerFailure as FailureInWorker } from '../work/call-handlers.js'

/**
 * Entries of the journal as the app gets them: identifiers in the platform's spelling, as in every public result. Inside
 * of the package they are spelt as our own names are; this is where one becomes the other.
 */
interface Named {
  business_uid: string | null
  subscription_uid: string | null
}

/** An entry of the journal, for people. Times are ISO 8601, UTC. */
export interface JournalEntry extends Named {
  id: string
  kind: EntryKind
  /** The registration name; '' for what was not recognised, and for changes. */
  name: string
  status: EntryStatus
  payload: unknown
  issues: string[] | null
  attempts: number
  error: string | null
  receivedAt: string
  dueAt: string | null
}

/** An entry that ran out of tries, or of time while it waited for a handler. */
export interface DeadEntry extends Named {
  id: string
  kind: EntryKind
  name: string
  attempts: number
  error: string
}

/** One try of one handler that failed. */
export interface HandlerFailure extends Named {
  id: string
  kind: EntryKind
  name: string
  /** 1 at the first try. */
  attempt: number
  /** What the handler threw or rejected with, or a `MarketplaceError` `handler_timeout`. */
  error: unknown
  /** In how many ms it is tried again; null: this was the last try, and the entry is dead. */
  retryInMs: number | null
}

export const publicEntry = ({ id, kind, name, status, ...entry }: InStore): JournalEntry => ({
  id,
  kind,
  name,
  status,
  ...withPlatformNames(entry),
})

export const publicEntries = (entries: readonly InStore[]): JournalEntry[] => entries.map(publicEntry)

export const publicDeath = (entry: DeadInStore): DeadEntry => withPlatformNames(entry)

export const publicFailure = (failure: FailureInWorker): HandlerFailure => withPlatformNames(failure)

/** The same with `business_uid` and `subscription_uid` in place of our own names. */
function withPlatformNames<T extends { businessUid: string | null; subscriptionUid: string | null }>({
  businessUid,
  subscriptionUid,
  ...rest
}: T): Omit<T, 'businessUid' | 'subscriptionUid'> & Named {
  return { business_uid: businessUid, subscription_uid: subscriptionUid, ...rest }
}
