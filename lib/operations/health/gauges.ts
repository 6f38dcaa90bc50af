import { type Clock, SECOND } from '../../base/clock.js'
import { PROBLEMS } from '../../base/health.js'
import { withDeadline } from '../../base/waiting.js'
import type { Store, StoreCounts } from '../../store/port/store.js'
import type { GaugeValues } from '../../telemetry/metrics.js'
import type { Health } from './health-check.js'

/** Values at most this old are reported again. */
const FRESH_MS = 5 * SECOND

/** Returns a function that reads the gauges, from the health and the store's bounded counts in it. */
export function createGauges(options: {
  store: Pick<Store, 'schemaVersion' | 'cleanUp'>
  /** Never rejects. */
  health(): Promise<Health>
  /** Absent in a process without a worker. */
  areReadsHeldUp: (() => boolean) | undefined
  clock: Clock
}) {
  const { store, health, areReadsHeldUp, clock } = options
  let values: Promise<GaugeValues> | undefined
  let readAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<GaugeValues> {
    const inTime = <T>(asked: Promise<T>) =>
      withDeadline(asked, FRESH_MS, clock, () => undefined).catch(() => undefined)
    const [version, cleanUp, { counts, problems }] = await Promise.all([
      inTime(store.schemaVersion()),
      inTime(store.cleanUp()),
      health(),
    ])
    return {
      'health.problem': problemGauge(problems),
      ...(counts ? gaugesOf(counts) : {}),
      ...(cleanUp === undefined
        ? {}
        : {
            'database.dead_rows': cleanUp?.deadRows ?? 0,
            'database.oldest_transaction_age': (cleanUp?.oldestTransactionMs ?? 0) / SECOND,
          }),
      ...(version === undefined ? {} : { 'schema.version': version }),
    }
  }

  return async function gauges(): Promise<GaugeValues> {
    if (!values || clock.monotonic() - readAt >= FRESH_MS) {
      readAt = clock.monotonic()
      values = read()
    }
    const paused = areReadsHeldUp ? { 'reads.paused': areReadsHeldUp() ? 1 : 0 } : {}
    return { ...paused, ...(await values.catch(() => ({}))) }
  }
}

/** One value for each problem, so that an alert sees the end of one, too. */
function problemGauge(problems: Health['problems']): Record<string, number> {
  const present = new Set<string>(problems.map(({ code }) => code))
  return Object.fromEntries(Object.keys(PROBLEMS).map((code) => [code, present.has(code) ? 1 : 0]))
}

function gaugesOf(counts: StoreCounts): GaugeValues {
  return {
    'entries.pending': counts.pending,
    'entries.retrying': counts.retrying,
    'entries.dead': counts.dead,
    'entries.oldest_pending_age': (counts.oldestPendingMs ?? 0) / SECOND,
    'subscriptions.requested': counts.requested,
    'subscriptions.oldest_request_age': (counts.oldestRequestMs ?? 0) / SECOND,
    'subscriptions.oldest_overdue_age': (counts.oldestOverdueMs ?? 0) / SECOND,
    'subscriptions.given_up': counts.givenUp,
    'searches.failing': counts.failedSearches,
    'searches.oldest_due_age': (counts.oldestSearchMs ?? 0) / SECOND,
  }
}
