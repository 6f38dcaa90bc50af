import { type Clock, SECOND } from '../clock.js'
import type { Store, StoreCounts } from '../store/store.js'
import type { GaugeValues } from '../telemetry/metrics.js'
import { withDeadline } from '../waiting.js'

/** Values at most this old are reported again, and a store has this long to answer. */
const FRESH_MS = 5 * SECOND

/** Returns a function that reads the gauges, from the store's bounded counts. */
export function createGauges(options: {
  store: Pick<Store, 'counts' | 'schemaVersion'>
  /** Absent in a process without a worker. */
  areReadsPaused: (() => boolean) | undefined
  clock: Clock
}) {
  const { store, areReadsPaused, clock } = options
  let values: Promise<GaugeValues> | undefined
  let readAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<GaugeValues> {
    const [counts, version] = await Promise.all([store.counts(), store.schemaVersion()])
    return { ...gaugesOf(counts), 'schema.version': version }
  }

  return async function gauges(): Promise<GaugeValues> {
    if (!values || clock.monotonic() - readAt >= FRESH_MS) {
      readAt = clock.monotonic()
      values = withDeadline(read(), FRESH_MS, clock, () => new Error('the store did not answer in time'))
    }
    const paused = areReadsPaused ? { 'reads.paused': areReadsPaused() ? 1 : 0 } : {}
    return { ...paused, ...(await values.catch(() => ({}))) }
  }
}

function gaugesOf(counts: StoreCounts): GaugeValues {
  return {
    'entries.pending': counts.pending,
    'entries.retrying': counts.retrying,
    'entries.dead': counts.dead,
    'entries.oldest_pending_age': (counts.oldestPendingMs ?? 0) / SECOND,
    'subscriptions.requested': counts.requested,
    'subscriptions.oldest_request_age': (counts.oldestRequestMs ?? 0) / SECOND,
    'subscriptions.given_up': counts.givenUp,
  }
}
