import { MarketplaceError } from './errors.js'
import { type Clock, fullJitter, MINUTE, SECOND } from './schedule.js'
import type { Store, StoreCounts } from './store/store.js'

/** For a health check. `failing` should take the instance out of rotation, `degraded` should wake somebody by day. */
export interface Health {
  status: 'ok' | 'degraded' | 'failing'
  /** Why it is not `ok`, one sentence each. */
  problems: string[]
  /** Null while the store cannot be asked. */
  counts: StoreCounts | null
}

/** A loop that has not looked for work for this long is stuck, or its process is. */
const STUCK_AFTER_MS = MINUTE

/** Opens, starts, reports and closes what `createMarketplace` has wired, in any order and any number of times. */
export function createLifecycle(options: {
  store: Pick<Store, 'open' | 'close' | 'counts'>
  worker:
    | { start(): void; idleMs(): number; readsPaused(): string | null; close(graceMs: number): Promise<void> }
    | undefined
  onClose(): void
  closeGraceMs: number
  clock: Clock
  onOpenFailed(error: unknown): void
}) {
  const { store, worker, onClose, closeGraceMs, clock, onOpenFailed } = options
  let starting: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let retry: unknown
  let failures = 0

  function start(): Promise<void> {
    if (closing)
      return Promise.reject(new MarketplaceError('closed', 'Cannot start the marketplace: it was closed'))
    starting ??= store.open().then(
      () => {
        if (!closing) worker?.start()
      },
      (error) => {
        starting = undefined
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
        const why = error instanceof Error ? error.message : 'it cannot be asked'
        return { status: 'failing', problems: [why], counts: null }
      }
      const isStuck = worker && worker.idleMs() > STUCK_AFTER_MS
      const failing = isStuck ? ['the worker has stopped looking for work'] : []
      const paused = worker?.readsPaused()
      const degraded = [
        ...(paused ? [paused] : []),
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
