import { fullJitter } from './backoff.js'
import { type Clock, MINUTE, SECOND } from './clock.js'
import { MarketplaceError, messageOf } from './errors.js'
import { mergeProblems, type Problems } from './health.js'
import { createHold } from './hold.js'
import type { Store, StoreCounts } from './store/store.js'
import type { StoreOwner } from './store/store-owner.js'
import { withDeadline } from './waiting.js'

/** For a health check. `failing`: take the instance out of rotation. `degraded`: a person should look, by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, one sentence each. */
  problems: string[]
  /** Null while the store does not answer. */
  counts: StoreCounts | null
}

/** `health()` answers within this time, even if a store of the app's own never does. */
const HEALTH_MS = 9 * SECOND

/**
 * Opens, starts and closes the parts that `createMarketplace` wires, and reports their health. The calls may come in any
 * order and any number of times. With a worker the process stays alive until `close()` has ended; without one, while a
 * call is under way.
 */
export function createLifecycle(options: {
  store: Pick<Store, 'open' | 'close' | 'counts' | 'problem'>
  owner: StoreOwner
  worker:
    | {
        start(): void
        close(graceMs: number): Promise<void>
      }
    | undefined
  /** The current problems of the parts; `counts` are those of the store. */
  problems(counts: StoreCounts): Problems
  /** Called when the store is open. */
  onOpen(): void
  /** Called before the store is closed. */
  onClose(): void | Promise<void>
  closeGraceMs: number
  clock: Clock
  onOpenFailed(error: unknown): void
}) {
  const { store, owner, worker, problems: problemsOfParts, onOpen, onClose, closeGraceMs, clock } = options
  const { onOpenFailed } = options
  const hold = createHold()
  let starting: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let retry: unknown
  let failures = 0
  /** Why the store did not open; undefined before the first try ends, and once the store is open. */
  let notOpen: unknown

  async function open(): Promise<void> {
    try {
      await store.open(owner)
    } catch (error) {
      starting = undefined
      notOpen = error
      throw error
    }
    notOpen = undefined
    if (closing) return
    worker?.start()
    onOpen()
  }

  function start(): Promise<void> {
    if (closing)
      return Promise.reject(
        new MarketplaceError('closed', 'Cannot start the marketplace: close() was called'),
      )
    starting ??= open()
    return starting
  }

  /** Tries again until it succeeds: a database that starts after the app must not need a person. */
  function startInTheEnd() {
    if (closing) return
    start().catch((error) => {
      if (closing) return
      retry = clock.setTimeout(startInTheEnd, SECOND + fullJitter(failures++, SECOND, MINUTE / 2))
      onOpenFailed(error)
    })
  }

  async function close() {
    clock.clearTimeout(retry)
    try {
      await worker?.close(closeGraceMs)
    } finally {
      try {
        await onClose()
        await store.close()
      } finally {
        hold.release()
      }
    }
  }

  if (worker) hold.take()
  // The store opens at once. The work begins a turn later, after the app has registered its handlers.
  store.open(owner).catch(() => {})
  setImmediate(startInTheEnd)

  return {
    start: () => hold.during(start()),
    isClosed: () => closing !== undefined,
    /** Keeps the process alive until `call` has settled. */
    during: hold.during,
    /** The same call, refused after `close()`. It keeps the process alive until it settles. */
    whileOpen<Arguments extends unknown[], T>(call: (...given: Arguments) => Promise<T>) {
      const checked = async (...given: Arguments): Promise<T> => {
        if (closing) throw new MarketplaceError('closed', 'Cannot use the marketplace: close() was called')
        return call(...given)
      }
      return (...given: Arguments): Promise<T> => hold.during(checked(...given))
    },

    health: () => hold.during(health()),

    close(): Promise<void> {
      closing ??= close()
      return hold.during(closing)
    },
  }

  async function health(): Promise<Health> {
    if (closing) return { status: 'failing', problems: ['closed'], counts: null }
    const { counts, ofStore } = await askStore()
    const ofParts = counts ? [problemsOfParts(counts), problemsOfCounts(counts)] : []
    const { failing, degraded } = mergeProblems([ofStore, ...ofParts])
    const status = failing.length > 0 ? 'failing' : degraded.length > 0 ? 'degraded' : 'ok'
    return { status, problems: [...failing, ...degraded], counts }
  }

  /** The counts of the store, and its problem: no answer in time, or the failure of its last write. */
  async function askStore(): Promise<{ counts: StoreCounts | null; ofStore: Problems }> {
    try {
      const asked = withDeadline(
        store.counts(),
        HEALTH_MS,
        clock,
        () => new Error('the store does not answer'),
      )
      const counts = await asked
      const problem = store.problem?.()
      return { counts, ofStore: { failing: problem ? [String(problem)] : [], degraded: [] } }
    } catch (error) {
      return { counts: null, ofStore: { failing: [messageOf(notOpen ?? error)], degraded: [] } }
    }
  }
}

/** The counts that are checked; a store of the app's own may lack some. */
type Counted = Partial<
  Record<'dead' | 'retrying', number> & Record<'oldestPendingMs' | 'oldestRequestMs', number | null>
>

/** The problems that the counts show, each with a hint where to look. */
function problemsOfCounts(counts: Counted): Problems {
  const { dead = 0, retrying = 0 } = counts
  const degraded: string[] = []
  if (dead > 0) degraded.push(`${dead} journal entries are dead: see journal.list({ status: 'dead' })`)
  if (retrying > 0)
    degraded.push(
      `${retrying} journal entries are tried again because a handler failed: see their error in journal.list({ status: 'retrying' })`,
    )
  for (const [name, longMs, what] of LONG_PENDING) {
    const ms = counts[name] ?? 0
    if (ms >= longMs) {
      const minutes = Math.round(ms / MINUTE)
      degraded.push(`${what} has been pending for ${minutes} min: is a worker running, and keeping up?`)
    }
  }
  return { failing: [], degraded }
}

/** Work pending for longer than this has no worker, or the workers are too slow. */
const LONG_PENDING = [
  ['oldestPendingMs', 5 * MINUTE, 'the oldest entry of the journal'],
  ['oldestRequestMs', MINUTE, 'the oldest requested read'],
] as const
