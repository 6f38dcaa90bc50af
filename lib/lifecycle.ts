import { fullJitter } from './backoff.js'
import { type Clock, MINUTE, SECOND } from './clock.js'
import { MarketplaceError } from './errors.js'
import type { Problems } from './health.js'
import type { Store, StoreCounts } from './store/store.js'

/** For a health check. `failing` should take the instance out of rotation, `degraded` should wake somebody by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, one sentence each. */
  problems: string[]
  /** Null while the store cannot be asked. */
  counts: StoreCounts | null
}

/** Opens, starts, reports and closes what `createMarketplace` has wired, in any order and any number of times. */
export function createLifecycle(options: {
  store: Pick<Store, 'open' | 'close' | 'counts'>
  worker:
    | {
        start(): void
        close(graceMs: number): Promise<void>
      }
    | undefined
  /** What the parts find wrong just now. */
  problems(counts: StoreCounts): Problems
  onClose(): void
  closeGraceMs: number
  clock: Clock
  onOpenFailed(error: unknown): void
}) {
  const { store, worker, problems: problemsOfParts, onClose, closeGraceMs, clock, onOpenFailed } = options
  let starting: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let retry: unknown
  let failures = 0
  /** Why the store did not open; undefined while it may, and once it has. */
  let notOpen: unknown

  function start(): Promise<void> {
    if (closing)
      return Promise.reject(new MarketplaceError('closed', 'Cannot start the marketplace: it was closed'))
    starting ??= store.open().then(
      () => {
        notOpen = undefined
        if (!closing) worker?.start()
      },
      (error) => {
        starting = undefined
        notOpen = error
        throw error
      },
    )
    return starting
  }

  /** By itself until it succeeds: a database that comes up after the app must not need a person. */
  function startInTheEnd() {
    if (closing) return
    start().catch((error) => {
      if (closing) return
      onOpenFailed(error)
      retry = clock.setTimeout(startInTheEnd, SECOND + fullJitter(failures++, SECOND, MINUTE / 2))
    })
  }

  // The store opens at once; the work begins a turn later, when the app has registered its handlers.
  store.open().catch(() => {})
  setImmediate(startInTheEnd)

  return {
    start,
    isClosed: () => closing !== undefined,

    async health(): Promise<Health> {
      if (closing) return { status: 'failing', problems: ['closed'], counts: null }
      let counts: StoreCounts
      try {
        counts = await store.counts()
      } catch (error) {
        const reason = notOpen ?? error
        const why = reason instanceof Error ? reason.message : 'it cannot be asked'
        return { status: 'failing', problems: [why], counts: null }
      }
      const parts = problemsOfParts(counts)
      const { failing } = parts
      const degraded = [
        ...parts.degraded,
        ...(counts.retrying > 0
          ? [`${counts.retrying} journal entries are being retried: see journal.list({ status: 'retrying' })`]
          : []),
        ...(counts.dead > 0
          ? [`${counts.dead} journal entries are dead: see journal.list({ status: 'dead' })`]
          : []),
      ]
      const status = failing.length > 0 ? 'failing' : degraded.length > 0 ? 'degraded' : 'ok'
      return { status, problems: [...failing, ...degraded], counts }
    },

    close(): Promise<void> {
      closing ??= (async () => {
        clock.clearTimeout(retry)
        await worker?.close(closeGraceMs)
        onClose()
        await store.close()
      })()
      return closing
    },
  }
}
