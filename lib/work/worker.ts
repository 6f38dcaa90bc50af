import { type Clock, HOUR, MINUTE, SECOND } from '../base/clock.js'
import { type HealthProblem, problemOf } from '../base/health.js'
import type { Retention, Store } from '../store/port/store.js'
import { createDispatcher } from './handling/dispatcher.js'
import { createTopicKeeper } from './handling/topic-keeper.js'
import { createSuspectRounds } from './leases/suspects.js'
import { createRefresher } from './reading/refresher.js'
import { createSearcher } from './searching/searcher.js'

type RefresherOptions = Parameters<typeof createRefresher>[0]
type SearcherOptions = Parameters<typeof createSearcher>[0]
type DispatcherOptions = Parameters<typeof createDispatcher>[0]

/** The loops of reading, searching and handling, and the sweeping of old entries: created, started, woken and stopped together. */
export function createWorker(options: {
  store: Store
  leaseMs: number
  pollMs: number
  clock: Clock
  retention: Retention
  reading: Omit<RefresherOptions, Shared>
  /** Undefined without the option `platform.findSubscriptions`. */
  searching: Omit<SearcherOptions, Shared | 'reads' | 'reconcileEveryMs'> | undefined
  handling: Omit<DispatcherOptions, Shared | 'retentionMs' | 'topics'>
  /** Gets every failure that no caller waits for; `area` is for logs. */
  onError(area: 'reading' | 'searching' | 'handling' | 'sweeping', error: unknown): void
}) {
  const { store, leaseMs, pollMs, clock, retention, reading, searching, handling, onError } = options
  const shared = { store, leaseMs, renewEveryMs: leaseMs / 6, pollMs, clock }
  const refresher = createRefresher({ ...shared, ...reading, onError: (error) => onError('reading', error) })
  const searcher =
    searching &&
    createSearcher({
      ...shared,
      ...searching,
      reads: refresher,
      reconcileEveryMs: reading.reconcileEveryMs,
      onError: (error) => onError('searching', error),
    })
  const topics = createTopicKeeper({
    store,
    topics: handling.handlers.topics,
    clock,
    onKnown: () => dispatcher.wake(),
    onError: (error) => onError('handling', error),
  })
  const dispatcher = createDispatcher({
    ...shared,
    ...handling,
    topics: topics.known,
    retentionMs: retention.changesMs,
    onError: (error) => onError('handling', error),
  })
  const suspects = createSuspectRounds({
    ...shared,
    topics: topics.known,
    lanes: dispatcher,
    reads: refresher,
    searches: searcher,
    onError: (error) => onError('handling', error),
  })
  const loops = [refresher, dispatcher, ...(searcher ? [searcher] : [])]
  let state: 'new' | 'started' | 'closed' = 'new'
  let sweeping: unknown

  const unsubscribe = store.subscribe((hint) => {
    if (hint.kind === 'requested') {
      refresher.requested()
      searcher?.wake()
    }
    if (hint.kind === 'journal') dispatcher.wake()
    if (hint.kind === 'decided' && (hint.superseded || hint.businessUid === null))
      dispatcher.doubt(hint.businessUid)
  })

  async function sweep() {
    // Small batches with a pause between them: sweeping must not delay deliveries.
    const { rows, dead } = await store.prune(retention).catch((error) => {
      onError('sweeping', error)
      return { rows: 0, dead: [] }
    })
    for (const entry of dead) handling.onDead(entry)
    if (state === 'started') sweeping = clock.setTimeout(sweep, rows > 0 ? SECOND / 20 : HOUR)
  }

  /**
   * Whether a loop has not looked for work for so long that it, or the whole process, must be stuck. None looks before the
   * database is open.
   */
  function isStuck() {
    if (state !== 'started') return false
    const idleMs = clock.monotonic() - Math.min(...loops.map((loop) => loop.lookedAt()))
    return idleMs > Math.max(MINUTE, 3 * pollMs)
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      for (const loop of loops) loop.start()
      topics.start()
      suspects.start()
      sweeping = clock.setTimeout(sweep, SECOND)
    },
    /** A handler was added or removed. */
    handlersChanged: topics.changed,
    areTopicsKnown: topics.isUpToDate,
    /** Whether a read or a lane is under way, or the answer to its finish. */
    isWorking: () => [refresher, dispatcher].some((loop) => loop.items().length > 0),
    areReadsHeldUp: refresher.areHeldUp,
    refusal: refresher.refusal,
    problems(): HealthProblem[] {
      const stuck = isStuck() ? [problemOf('worker_stuck', 'the worker has stopped looking for work')] : []
      return [...stuck, ...refresher.problems()]
    },
    async close(graceMs: number) {
      state = 'closed'
      clock.clearTimeout(sweeping)
      topics.close()
      // As long as the loops wait for their items, and then for those that they have aborted.
      const rounds = suspects.close(graceMs + Math.min(graceMs, SECOND))
      await Promise.all([...loops.map((loop) => loop.close(graceMs)), rounds])
      // Not before: an erasure still casts doubt on the lanes that run until then.
      unsubscribe()
    },
  }
}

/** The options that all loops share. */
type Shared = 'store' | 'leaseMs' | 'renewEveryMs' | 'pollMs' | 'clock' | 'onError'
