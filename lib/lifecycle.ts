import { fullJitter } from './backoff.js'
import { type Clock, MINUTE, SECOND } from './clock.js'
import { MarketplaceError, messageOf } from './errors.js'
import { mergeProblems, type Problems } from './health.js'
import { createHold } from './hold.js'
import type { Store, StoreCounts } from './store/store.js'
import type { StoreOwner } from './store/store-owner.js'
import { withDeadline } from './waiting.js'

/** For a health check. `failing` should take the instance out of rotation, `degraded` should wake somebody by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, one sentence each. */
  problems: string[]
  /** Null while the store cannot be asked. */
  counts: StoreCounts | null
}

/** A health check must be answered, also where a store of the app's own never does. */
const HEALTH_MS = 9 * SECOND

/**
 * Opens, starts, reports and closes what `createMarketplace` has wired, in any order and any number of times.
 * With a worker the process stays alive from here to the end of `close()`, without one while a call is under way.
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
  /** What the parts find wrong just now; `counts` are those of the store. */
  problems(counts: StoreCounts): Problems
  /** Before the store is closed. */
  onClose(): void | Promise<void>
  closeGraceMs: number
  clock: Clock
  onOpenFailed(error: unknown): void
}) {
  const { store, owner, worker, problems: problemsOfParts, onClose, closeGraceMs, clock } = options
  const { onOpenFailed } = options
  const hold = createHold()
  let starting: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let retry: unknown
  let failures = 0
  /** Why the store did not open; undefined while it may, and once it has. */
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
    if (!closing) worker?.start()
  }

  function start(): Promise<void> {
    if (closing)
      return Promise.reject(new MarketplaceError('closed', 'Cannot start the marketplace: it was closed'))
    starting ??= open()
    return starting
  }

  /** By itself until it succeeds: a database that comes up after the app must not need a person. */
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
  // The store opens at once; the work begins a turn later, when the app has registered its handlers.
  store.open(owner).catch(() => {})
  setImmediate(startInTheEnd)

  return {
    start: () => hold.during(start()),
    isClosed: () => closing !== undefined,
    /** Keeps the process alive until `call` has settled. */
    during: hold.during,

    health: () => hold.during(health()),

    close(): Promise<void> {
      closing ??= close()
      return hold.during(closing)
    },
  }

  async function health(): Promise<Health> {
    if (closing) return { status: 'failing', problems: ['closed'], counts: null }
    const { counts, ofStore } = await askStore()
    const ofParts = counts ? [problemsOfParts(counts), ofCounts(counts)] : []
    const { failing, degraded } = mergeProblems([ofStore, ...ofParts])
    const status = failing.length > 0 ? 'failing' : degraded.length > 0 ? 'degraded' : 'ok'
    return { status, problems: [...failing, ...degraded], counts }
  }

  /** What it holds, and what is wrong with it: that it does not answer, or what its last write met. */
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

/** What is counted beside `dead`; a store of the app's own may count less. */
type Counted = Partial<
  Record<'dead' | 'retrying', number> & Record<'oldestPendingMs' | 'oldestRequestMs', number | null>
>

/** What the numbers show to be wrong, and where to look. */
function ofCounts(counts: Counted): Problems {
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

/** What is pending for longer has nobody who works on it, or more than they can do. */
const LONG_PENDING = [
  ['oldestPendingMs', 5 * MINUTE, 'the oldest entry of the journal'],
  ['oldestRequestMs', MINUTE, 'the oldest requested read'],
] as const
