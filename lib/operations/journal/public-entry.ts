import { inspect } from 'node:util'
import { MarketplaceError } from '../../base/errors.js'
import {
  type Cause,
  type DeadEntry,
  type EntryKind,
  type EntryStatus,
  type JournalEntry as InStore,
  isOfRead,
} from '../../store/port/store.js'
import type { FailedCall } from '../../work/handling/call-handlers.js'

/**
 * Journal entries as the app gets them. Like every public result, they spell identifiers as the platform does
 * (`business_uid`). Inside the package identifiers are camelCase; this file converts them.
 */
interface Named {
  /** The business that the entry concerns; null if it names none. After an erasure an action has its hash. */
  business_uid: string | null
  /** The subscription that the entry concerns; null if it names none, and of an action after an erasure. */
  subscription_uid: string | null
}

/** An entry of the journal, for people. Times are ISO 8601, UTC. */
export interface JournalEntry extends Named {
  /** Identifier of the entry, for `journal.get` and `journal.replay`. Handlers get the same `id` at every try. */
  id: string
  /**
   * What the entry is: an event, a change or an entitlement that a read found, an unrecognised delivery, or an action of
   * a person.
   */
  kind: EntryKind
  /** The registration name; '' for changes, entitlements and unrecognised deliveries. */
  name: string
  /**
   * `pending`: to be handled, or tried again. `done`: its handlers returned. `dead`: its tries are used up, or nobody handled
   * it in time. `unhandled`: no process has a handler for it.
   */
  status: EntryStatus
  /** A value, parsed anew each time that it is read; its JSON text if it is nested more than 500 levels deep. */
  readonly payload: unknown
  /** Of a change or an entitlement: why the subscription was read. Null for all other entries. */
  cause: Cause | null
  /** Why a delivery was not recognised, one sentence each. Null for all other entries. */
  issues: string[] | null
  /** Number of tries since it arrived or was replayed. */
  attempts: number
  /** The last error in one line. It begins with the class, such as `TypeError: x is not a function`. */
  error: string | null
  /**
   * The stack of that error, of the first errors that it holds and of its causes, at most 4,000 characters: a line with class
   * and message, and a line for each frame. Null if a handler threw no error.
   */
  stack: string | null
  /** When it was stored: ISO 8601, UTC. */
  receivedAt: string
  /** When the next try is due: ISO 8601, UTC. Null when none is. */
  dueAt: string | null
}

/** One failed try of one handler, or the end of an entry that is dead without a failed try. */
export interface HandlerFailure extends Named {
  /** Identifier of the entry, for `journal.replay`. */
  id: string
  /** The kind of the entry. */
  kind: EntryKind
  /** The registration name; '' for changes, entitlements and unrecognised deliveries. */
  name: string
  /** 1 at the first try; 0 without any. */
  attempt: number
  /**
   * The error of the handler, or a `MarketplaceError`: `handler_timeout`; `store_unavailable` if the store could not be
   * read to compute the answer for a change or an entitlement (then no handler was called, and this is not the last try);
   * `entry_dead` if the entry waited too long, or ended its process again and again.
   */
  error: unknown
  /** Time until the next try; null: there is none, and the entry is dead. */
  retryInMs: number | null
}

export function publicEntry(stored: InStore): JournalEntry {
  const { id, kind, name, status, businessUid, subscriptionUid } = stored
  const { issues, attempts, error, stack, receivedAt, dueAt } = stored
  const entry = {
    ...{ id, kind, name, status },
    ...{ business_uid: businessUid, subscription_uid: subscriptionUid },
    get payload() {
      return stored.payload
    },
    ...{ issues, attempts, error, stack, receivedAt, dueAt },
    cause: isOfRead(kind) ? ((stored.payload as { cause?: Cause } | null)?.cause ?? null) : null,
  }
  // `console.log` shows the payload, not the word `Getter`.
  return Object.defineProperty(entry, inspect.custom, { value: () => ({ ...entry }) })
}

export const publicDeath = ({ attempts, error, ...entry }: DeadEntry): HandlerFailure => ({
  ...withPlatformNames(entry),
  attempt: attempts,
  error: new MarketplaceError('entry_dead', `Cannot hand over the ${entry.kind} ${entry.id}: ${error}`),
  retryInMs: null,
})

export const publicFailure = (failure: FailedCall): HandlerFailure => withPlatformNames(failure)

/** A value with `business_uid` and `subscription_uid` instead of the internal names. */
function withPlatformNames<T extends { businessUid: string | null; subscriptionUid: string | null }>({
  businessUid,
  subscriptionUid,
  ...rest
}: T): Omit<T, 'businessUid' | 'subscriptionUid'> & Named {
  return { business_uid: businessUid, subscription_uid: subscriptionUid, ...rest }
}
