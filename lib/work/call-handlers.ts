import { LRUCache } from 'lru-cache'
import { type Clock, HOUR, MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Entry, EntryEnd, EntryKind } from '../store/store.js'
import { createDeadlines } from '../waiting.js'
import type { AnyHandler, Handlers } from './handlers.js'

/** Pauses between tries of a handler; after the last of them the entry is dead until it is replayed. */
export const HANDLER_RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  4 * HOUR,
  8 * HOUR,
  12 * HOUR,
  24 * HOUR,
  24 * HOUR,
]

/** One try of one handler that failed. */
export interface HandlerFailure {
  id: string
  kind: EntryKind
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  /** 1 at the first try. */
  attempt: number
  /** What the handler threw or rejected with, or a `MarketplaceError` `handler_timeout`. */
  error: unknown
  /** In how many ms it is tried again; null: this was the last try, and the entry is dead. */
  retryInMs: number | null
}

/**
 * Calls the handlers of an entry, side by side. When one fails, only those that failed are called again (by this
 * process: after a restart, all of them).
 */
export function createHandlerCalls(options: {
  handlers: Handlers
  /** The payload for a handler, from what the journal keeps. Handed out frozen. */
  payloadOf(entry: Entry): unknown
  marketplace: () => unknown
  timeoutMs: number
  retryDelaysMs?: readonly number[] | undefined
  clock: Clock
  /** Runs around each call of a handler, and answers what it returned. */
  around?(entry: Entry, call: () => unknown): unknown
  /** `handler` names it: its topic, and its number among those of the process. */
  onHandlerError?(failure: HandlerFailure, words: { handler: string; errorClass: string }): void
}) {
  const { handlers, payloadOf, marketplace, timeoutMs, clock, onHandlerError = () => {} } = options
  const { around = (_entry, call) => call() } = options
  const { retryDelaysMs = HANDLER_RETRY_DELAYS_MS } = options
  const returned = new LRUCache<string, Set<AnyHandler>>({ max: 1_000 })
  const deadlines = createDeadlines(timeoutMs, clock)
  /** Keys with handlers that have not settled and may still take their time. */
  const busy = new Map<string, number>()

  function hold(key: string): () => void {
    busy.set(key, (busy.get(key) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const left = (busy.get(key) ?? 1) - 1
      if (left > 0) busy.set(key, left)
      else busy.delete(key)
    }
  }

  /**
   * Calls it. Undefined when it has returned, with nothing to wait for; else a promise that rejects when the handler
   * rejects or takes too long: then its slot is free although it may still run. Throws what the handler throws.
   */
  function begin(
    handler: AnyHandler,
    payload: unknown,
    entry: Entry,
    lost: AbortSignal,
  ): Promise<void> | undefined {
    let controller: AbortController | undefined
    let ended: MarketplaceError | undefined
    const context = {
      // Made when it is asked for: most handlers never do, and it costs more than all the rest of a call.
      get signal() {
        controller ??= new AbortController()
        if (ended) controller.abort(ended)
        return controller.signal
      },
      attempt: entry.attempt,
      marketplace: marketplace(),
    }
    const returned = around(entry, () => handler(payload, context))
    if (!isThenable(returned)) return undefined
    const release = hold(entry.key)
    return new Promise<void>((resolve, reject) => {
      const end = (error: MarketplaceError) => {
        ended = error
        controller?.abort(error)
        reject(error)
      }
      const onLost = () => end(new MarketplaceError('lease_lapsed', 'Cannot finish the handler: interrupted'))
      const seconds = timeoutMs / SECOND
      // Also of one that was interrupted and does not stop: until then nobody here is called for its key.
      const inTime = deadlines.set(() => {
        release()
        lost.removeEventListener('abort', onLost)
        end(new MarketplaceError('handler_timeout', `Cannot finish the handler: not done after ${seconds} s`))
      })
      lost.addEventListener('abort', onLost, { once: true })
      Promise.resolve(returned)
        .then(() => resolve(), reject)
        .finally(() => {
          release()
          inTime()
          lost.removeEventListener('abort', onLost)
        })
    })
  }

  return {
    busyKeys: () => [...busy.keys()],
    /** For the end of the work. */
    rest: deadlines.rest,

    /**
     * What became of it; undefined: it stays as it is, because nobody handles it any more, or because its handlers were
     * interrupted: closing is not their failure, and counts for no try.
     */
    async call(entry: Entry, lost: AbortSignal): Promise<EntryEnd['result'] | undefined> {
      const takers = handlers.for(entry)
      if (takers.length === 0) return undefined
      const payload = deepFreeze(payloadOf(entry))
      // The first try, also of a replay, is for all of them.
      const done = (entry.attempt > 1 && returned.get(entry.id)) || new Set<AnyHandler>()
      const left = takers.filter((handler) => !done.has(handler))
      const outcomes = await Promise.allSettled(
        left.map(async (handler) => {
          await begin(handler, payload, entry, lost)
          done.add(handler)
        }),
      )
      const failure = outcomes.find((outcome) => outcome.status === 'rejected')
      if (!failure) {
        returned.delete(entry.id)
        return { kind: 'done' }
      }
      returned.set(entry.id, done)
      if (lost.aborted) return undefined
      const retryInMs = retryDelaysMs[entry.attempt - 1] ?? null
      const { id, kind, name, businessUid, subscriptionUid, attempt } = entry
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') continue
        onHandlerError(
          { id, kind, name, businessUid, subscriptionUid, attempt, error: outcome.reason, retryInMs },
          { handler: handlers.labelOf(left[i] as AnyHandler), errorClass: classOf(outcome.reason) },
        )
      }
      const error = textOf(failure.reason)
      if (retryInMs !== null) return { kind: 'retry', inMs: retryInMs, error }
      returned.delete(id)
      return { kind: 'dead', error }
    },
  }
}

function isThenable(value: unknown): boolean {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/** What was thrown, in at most 500 characters, whatever it was. */
function textOf(reason: unknown): string {
  try {
    return (reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason)).slice(0, 500)
  } catch {
    return 'something that cannot be turned into text'
  }
}

/** The name of its class, for a warning that is given once for each. */
function classOf(reason: unknown): string {
  try {
    return reason instanceof Error ? String(reason.constructor.name).slice(0, 100) : typeof reason
  } catch {
    return 'unknown'
  }
}

/** Frozen all the way down, without recursion: a payload may be nested deeper than the stack. */
function deepFreeze<T>(value: T): T {
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue
    Object.freeze(next)
    rest.push(...Object.values(next))
  }
  return value
}
