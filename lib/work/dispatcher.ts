import { LRUCache } from 'lru-cache'
import { type Clock, HOUR, MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { type Entry, type EntryFinish, MAX_LAPSES, type Store } from '../store/store.js'
import type { AnyHandler, Handlers } from './handlers.js'
import { createLeaseLoop } from './lease-loop.js'
import { writeWhileLeased } from './write-while-leased.js'

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

/** An entry that ran out of tries. */
export interface DeadEntry {
  id: string
  kind: Entry['kind']
  name: string
  businessUid: string | null
  subscriptionUid: string | null
  attempts: number
  error: string
}

/**
 * Takes journal entries to the app's handlers: at least once, oldest first within a subscription, never two of one
 * subscription at once. All handlers of an entry run side by side; when one fails, only those that failed are called
 * again (by this process: after a restart, all of them).
 */
export function createDispatcher(options: {
  store: Pick<Store, 'claimEntries' | 'skipEntries' | 'finishEntries' | 'renewEntry'>
  handlers: Handlers
  /** The payload for a handler, from what the journal keeps. Handed out frozen. */
  payloadOf(entry: Entry): unknown
  marketplace: () => unknown
  concurrency: number
  timeoutMs: number
  retryDelaysMs?: readonly number[] | undefined
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  onHandled?(entry: Entry, result: EntryFinish['result']): void
  onDead(entry: DeadEntry): void
  onError(error: unknown): void
}) {
  const { store, handlers, payloadOf, marketplace, concurrency, timeoutMs, leaseMs, renewEveryMs, pollMs } =
    options
  const { retryDelaysMs = HANDLER_RETRY_DELAYS_MS, clock, onHandled = () => {}, onDead, onError } = options
  const returned = new LRUCache<string, Set<AnyHandler>>({ max: 1_000 })

  const loop = createLeaseLoop<Entry>({
    concurrency,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (entry) => store.renewEntry(entry, leaseMs),
    run: dispatch,
    async claim(limit) {
      await skipUnhandled()
      return store.claimEntries({ limit, leaseMs, kinds: handlers.wantedKinds() })
    },
  })

  async function skipUnhandled() {
    const { kinds, exceptNames } = handlers.unhandled()
    if (kinds.length === 0) return
    const limit = 500
    const skipped = await store.skipEntries({ kinds, exceptNames, limit })
    if (skipped === limit) loop.wake(SECOND / 100)
  }

  async function dispatch(entry: Entry, signal: AbortSignal) {
    // Claimed so slowly that the lease is over: it may be somebody else's.
    if (signal.aborted) return
    const result =
      entry.lapses >= MAX_LAPSES
        ? dead('its handlers ended the process again and again')
        : await call(entry, signal)
    const finish = { id: entry.id, leaseToken: entry.leaseToken, result }
    const [finished] = await writeWhileLeased(() => store.finishEntries([finish]), signal, clock)
    if (!finished) return
    if (result.kind !== 'retry') returned.delete(entry.id)
    onHandled(entry, result)
    if (result.kind === 'retry') loop.wake(result.inMs)
    if (result.kind === 'dead') onDead(asDeadEntry(entry, result.error))
  }

  async function call(entry: Entry, lost: AbortSignal): Promise<EntryFinish['result']> {
    const payload = deepFreeze(payloadOf(entry))
    // The first try, also of a replay, is for all of them.
    const done = (entry.attempt > 1 && returned.get(entry.id)) || new Set<AnyHandler>()
    returned.set(entry.id, done)
    const takers = handlers.for(entry)
    // Whoever wanted changes has left during the claim: it waits for the next who does.
    if (entry.kind === 'change' && takers.length === 0) return { kind: 'retry', inMs: 0, error: 'no handler' }
    const outcomes = await Promise.allSettled(
      takers
        .filter((handler) => !done.has(handler))
        .map(async (handler) => {
          await withinTime(handler, payload, entry.attempt, lost)
          done.add(handler)
        }),
    )
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (!failure) return { kind: 'done' }
    // Closing is not the handler's failure: the entry is due again at once, for whoever comes next.
    if (lost.aborted) return { kind: 'retry', inMs: 0, error: 'interrupted' }
    const error = wordsOf(failure.reason)
    const inMs = retryDelaysMs[entry.attempt - 1]
    return inMs === undefined ? dead(error) : { kind: 'retry', inMs, error }
  }

  /** Rejects when the handler throws, rejects, or takes too long; then its slot is free although it may still run. */
  function withinTime(
    handler: AnyHandler,
    payload: unknown,
    attempt: number,
    lost: AbortSignal,
  ): Promise<void> {
    const controller = new AbortController()
    return new Promise<void>((resolve, reject) => {
      const end = (error: MarketplaceError) => {
        controller.abort(error)
        reject(error)
      }
      const seconds = timeoutMs / SECOND
      const timer = clock.setTimeout(
        () =>
          end(
            new MarketplaceError('handler_timeout', `Cannot finish the handler: not done after ${seconds} s`),
          ),
        timeoutMs,
      )
      const onLost = () => end(new MarketplaceError('lease_lapsed', 'Cannot finish the handler: interrupted'))
      lost.addEventListener('abort', onLost, { once: true })
      Promise.resolve()
        .then(() => handler(payload, { signal: controller.signal, attempt, marketplace: marketplace() }))
        .then(() => resolve(), reject)
        .finally(() => {
          clock.clearTimeout(timer)
          lost.removeEventListener('abort', onLost)
        })
    })
  }

  return loop
}

function dead(error: string): EntryFinish['result'] {
  return { kind: 'dead', error }
}

function asDeadEntry(entry: Entry, error: string): DeadEntry {
  const { id, kind, name, businessUid, subscriptionUid, attempt } = entry
  return { id, kind, name, businessUid, subscriptionUid, attempts: attempt, error }
}

/** What was thrown, in at most 500 characters, whatever it was. */
function wordsOf(reason: unknown): string {
  try {
    return (reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason)).slice(0, 500)
  } catch {
    return 'something that cannot be turned into text'
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
