import { LRUCache } from 'lru-cache'
import { type Clock, HOUR, MINUTE, SECOND } from '../../base/clock.js'
import { classOf, stackOf, thrownText } from '../../base/errors.js'
import { deepFreeze } from '../../base/freeze.js'
import { orAborted } from '../../base/waiting.js'
import type { Entry, EntryEnd, EntryKind } from '../../store/port/store.js'
import { isRetryable } from '../leases/lease.js'
import { createHandlerCall } from './call-handler.js'
import type { AnyHandler, Handlers } from './handlers.js'
import { lastOf, type Unit } from './units.js'

/** One failed try of one handler. */
export interface FailedCall {
  id: string
  kind: EntryKind
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  /** 1 at the first try. */
  attempt: number
  /** The error of the handler or of making its payload, or a `MarketplaceError` `handler_timeout`. */
  error: unknown
  /** The pause before the next try, in ms; null: this was the last try, and the entry is dead. */
  retryInMs: number | null
}

/** The payload of a unit, or why it cannot be made now. */
type Prepared = { payload: unknown } | { error: unknown }

/**
 * `isUntried`: no handler was called, so it is not a try of the entry. `report` passes on the last failures. It is called
 * when the end is written, so that a listener finds the entry dead and can replay it. `thrown`: what a handler threw, and
 * what it was given.
 */
export type Handled = EntryEnd['result'] & {
  isUntried?: true
  report?: () => void
  thrown?: { error: unknown; given(): Given }
}

/** All values that the code that failed was given, of texts their JSON. */
type Given = readonly unknown[]

/**
 * Calls the handlers of a unit concurrently. When one fails, this process calls only the failed ones again. All of them
 * are called after a restart, a replay or a try of another process, if the lease of the first try was lost, for a unit that
 * has another last entry by then, and for one that is not among the last 1,000 that failed in part.
 */
export function createHandlerCalls(options: {
  handlers: Handlers
  /** The payload for a handler, from the journal entries: a value or a promise. Handlers get it frozen, see `deepFreeze`. */
  payloadOf(unit: Unit): unknown
  marketplace: () => unknown
  timeoutMs: number
  /** Pauses between tries. After the last one the entry is dead until it is replayed. */
  retryDelaysMs: readonly number[]
  /** An entry that is older than this no longer waits for its payload. */
  retentionMs: number
  clock: Clock
  /** Runs around each call of a handler, and returns its result. */
  around?(entry: Entry, call: () => unknown): unknown
  /** `label.handler` is the topic of the handler and its number in this process. */
  onHandlerError?(failure: FailedCall, label: { handler: string; errorClass: string; given(): Given }): void
}) {
  const { handlers, payloadOf, retryDelaysMs, onHandlerError = () => {} } = options
  const one = createHandlerCall(options)
  const putOffs = createPutOffs(options)
  /**
   * The handlers of a unit that have succeeded while others failed, by the id of its last entry, with the lease of that try:
   * after a replay, or a try of another process, all handlers are called.
   */
  const succeeded = new LRUCache<string, { done: Set<AnyHandler>; lease: string }>({ max: 1_000 })

  /** The result of a try in which these handlers failed. */
  function failed(
    unit: Unit,
    prepared: Prepared,
    failures: readonly { handler: AnyHandler; error: unknown }[],
  ): Handled {
    const [{ id, kind, name, businessUid, subscriptionUid, attempt }] = unit
    const retryInMs = retryDelaysMs[attempt - 1] ?? null
    const given = () => givenTo(unit, prepared)
    const reportAll = () => {
      for (const { handler, error } of failures)
        onHandlerError(
          { id, kind, name, businessUid, subscriptionUid, attempt, error, retryInMs },
          { handler: handlers.labelOf(handler), errorClass: classOf(error), given },
        )
    }
    const thrown = { error: failures[0]?.error, given }
    const told = {
      error: thrownText(thrown.error, MAX_ERROR_LENGTH),
      stack: stackOf(thrown.error),
      thrown,
    }
    if (retryInMs === null) {
      succeeded.delete(lastOf(unit).id)
      return { kind: 'dead', ...told, report: reportAll }
    }
    reportAll()
    return { kind: 'retry', inMs: retryInMs, ...told }
  }

  /** An outage of the store or of the platform uses up no tries of an entry. */
  function withoutPayload(unit: Unit, registered: readonly AnyHandler[], error: unknown): Handled {
    if (isRetryable(error)) {
      const inMs = putOffs.pauseMs(unit[0])
      const end = { error: thrownText(error, MAX_ERROR_LENGTH), isUntried: true } as const
      return inMs === null ? { kind: 'dead', ...end } : { kind: 'retry', inMs, ...end }
    }
    return failed(
      unit,
      { error },
      registered.map((handler) => ({ handler, error })),
    )
  }

  return {
    rest: one.rest,

    /** The payload for `call`, made just before it: a change says what is true then. Never throws or rejects. */
    prepare(unit: Unit, interrupted: AbortSignal): Prepared | Promise<Prepared> {
      const asPrepared = (payload: unknown): Prepared => ({ payload: deepFreeze(payload) })
      try {
        const made = payloadOf(unit)
        if (!(made instanceof Promise)) return asPrepared(made)
        return orAborted(made, interrupted).then(asPrepared, (error: unknown) => ({ error }))
      } catch (error) {
        return { error }
      }
    },

    /**
     * The result of the unit. Undefined: its entries stay as they are, because they have no handler any more, or because
     * their handlers were interrupted. Closing is not a failure of a handler and does not count as a try. `lease` is the
     * token of their lane.
     */
    async call(
      unit: Unit,
      prepared: Prepared,
      { lease, interrupted }: { lease: string; interrupted: AbortSignal },
    ): Promise<Handled | undefined> {
      const [entry] = unit
      const { id } = lastOf(unit)
      const registered = handlers.for(entry)
      if (registered.length === 0) return undefined
      const before = succeeded.get(id)
      const done = before?.lease === entry.triedUnder ? before.done : new Set<AnyHandler>()
      if ('error' in prepared) {
        if (done.size > 0) succeeded.set(id, { done, lease })
        return withoutPayload(unit, registered, prepared.error)
      }
      putOffs.ended(entry)
      const { payload } = prepared
      const left = registered.filter((handler) => !done.has(handler))
      const outcomes = await Promise.allSettled(
        left.map(async (handler) => {
          await one.call(handler, payload, entry, interrupted)
          done.add(handler)
        }),
      )
      const failures = outcomes.flatMap((outcome, i) =>
        outcome.status === 'rejected' ? [{ handler: left[i] as AnyHandler, error: outcome.reason }] : [],
      )
      if (failures.length === 0) {
        succeeded.delete(id)
        return { kind: 'done' }
      }
      if (interrupted.aborted) return undefined
      succeeded.set(id, { done, lease })
      return failed(unit, prepared, failures)
    },
  }
}

/**
 * What the handlers of a unit were given: their payload, without our own id, name, date and sentences, and without the names
 * of its fields, which are ours; with it the text of a delivery, of which a schema of the app may have made other values.
 * Without a payload: what it would have been made of.
 */
function givenTo(unit: Unit, prepared: Prepared): Given {
  const [{ kind }] = unit
  const hasPayload = 'payload' in prepared
  const stored =
    hasPayload && (kind === 'change' || kind === 'entitlement') ? [] : unit.map(({ payload }) => payload)
  const { id, name, receivedAt, issues, ...given } = (hasPayload ? prepared.payload : {}) as Record<
    string,
    unknown
  >
  return [...stored, ...Object.values(given)]
}

const MAX_ERROR_LENGTH = 500

/**
 * The shortest pause of an entry that is put off: most answers are known by then, and `settled()` waits for what is due
 * within a second.
 */
const LEAST_MS = SECOND
const MOST_MS = MINUTE
/**
 * The least time between the next looks at two entries that are put off: in an outage of days there may be very many.
 */
const APART_MS = 5
/**
 * An entry waits at least this long for an answer, because a replay or a long sleep makes it older than its retention
 * at once.
 */
const AT_LEAST_MS = HOUR
/** The entries whose wait a process remembers. */
const MOST_REMEMBERED = 10_000
/** An entry that was not looked at for so long has been handled by another process, or was erased. */
const FORGOTTEN_AFTER_MS = 10 * MINUTE

/**
 * The pauses of entries whose payload cannot be made now, because the answer for their business is not known or the store
 * cannot be read. A pause grows with the time that the entry has waited in this process. The wait ends with the retention.
 */
function createPutOffs({ retentionMs, clock }: { retentionMs: number; clock: Clock }) {
  /** By the id of an entry: when this process first put it off, and last. The longest not looked at comes first. */
  const waits = new Map<string, { firstAt: number; lookedAt: number }>()
  let lastUntil = Number.NEGATIVE_INFINITY

  function waitedUntil(now: number, id: string): number {
    const firstAt = waits.get(id)?.firstAt ?? now
    waits.delete(id)
    const [longest] = waits
    if (longest && waits.size >= MOST_REMEMBERED) {
      // No entry takes the place of another that waits: with more of them than places none would ever have waited for long.
      if (now - longest[1].lookedAt < FORGOTTEN_AFTER_MS) return 0
      waits.delete(longest[0])
    }
    waits.set(id, { firstAt, lookedAt: now })
    return now - firstAt
  }

  return {
    /** The pause until the next look, in ms; null: the entry is older than its retention, so it waits no longer. */
    pauseMs({ id, receivedAt }: Pick<Entry, 'id' | 'receivedAt'>): number | null {
      const now = clock.monotonic()
      const waitedMs = waitedUntil(now, id)
      if (waitedMs >= AT_LEAST_MS && clock.now() - receivedAt >= retentionMs) {
        waits.delete(id)
        return null
      }
      lastUntil = Math.min(Math.max(now + LEAST_MS, lastUntil + APART_MS), now + MOST_MS)
      return Math.min(MOST_MS, Math.max(lastUntil - now, waitedMs / 4))
    },
    ended({ id }: Pick<Entry, 'id'>) {
      waits.delete(id)
    },
  }
}
