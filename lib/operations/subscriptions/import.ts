import { z } from 'zod'
import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { createRecheck } from '../../base/waiting.js'
import type { Store } from '../../store/port/store.js'
import { checked } from '../journal/entry-filter.js'
import { createLineSource, type GivenLine } from './import-lines.js'
import { createImportReads } from './import-reads.js'
import {
  createResultCounts,
  type ImportLine,
  type ImportProgress,
  type ImportSummary,
} from './import-results.js'

/** Limit of lines without a result: few enough that no requested read waits so long that `health()` reports it. */
const MAX_UNFINISHED = 250
/** Lines that share a lookup and a commit. */
const BATCH = 50
/** Hints may be lost, so all waiting lines are looked up after this time, in one statement. */
const LOOK_UP_EVERY_MS = 5 * SECOND

/**
 * Requests the first reads of many subscriptions and waits for their results. A line that was already read for its
 * business is skipped, and a first read that is already requested is not requested again, so a second run of an import
 * repeats nothing.
 */
export function createImport(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsNamed' | 'subscribe'>
  clock: Clock
}) {
  const { store, clock } = options
  /** Wakes each running import. */
  const running = new Set<() => void>()
  let closed = false

  async function importSubscriptions(lines: unknown, given?: ImportOptions): Promise<ImportSummary> {
    const {
      announce = true,
      onProgress,
      signal,
      answerTimeoutMs = 2 * MINUTE,
    } = checked(OPTIONS, given ?? {}, 'import subscriptions') as ImportOptions
    const source = createLineSource(lines)
    const counts = createResultCounts(source.total)
    const { wait, end: wake } = createRecheck(clock, LOOK_UP_EVERY_MS)
    const reads = createImportReads({ store, announce, answerTimeoutMs, clock, report, onTouched: wake })
    /** Lines that were taken from the source, and whose reads are not requested yet. */
    let ready: GivenLine[] = []
    /** The number of lines that were taken and have no result. */
    let unfinished = 0
    let taking: Promise<void> | undefined
    let failed: { error: unknown } | undefined
    running.add(wake)
    signal?.addEventListener('abort', wake)

    try {
      const ended = await run()
      const why = ended === 'aborted' ? 'the import was aborted' : 'no read was answered in time'
      for (const each of reads.unanswered()) await report(each, 'pending', why)
      for (const each of ready) {
        if (each.fault === null) await report(each, 'pending', `${why}, and its read was not requested`)
        else await report(each, 'invalid', each.fault)
      }
      return counts.summary(ended, answerTimeoutMs)
    } finally {
      reads.end()
      running.delete(wake)
      signal?.removeEventListener('abort', wake)
      source.end()
    }

    async function run(): Promise<ImportSummary['ended']> {
      for (;;) {
        if (closed)
          throw new MarketplaceError('closed', 'Cannot continue the import: the marketplace was closed')
        if (failed) throw failed.error
        if (signal?.aborted) return 'aborted'
        const batch = ready
        ready = []
        if (batch.length > 0) await reads.request(batch)
        const next = await reads.lookUp()
        ready = [...next, ...ready]
        if (source.isDone() && !taking && ready.length === 0 && !reads.isWaiting()) return 'complete'
        if (reads.isWaiting() && reads.patienceMs() === 0) return 'unanswered'
        if (ready.length === 0 && unfinished + BATCH <= MAX_UNFINISHED) takeMore()
        await nextWork()
      }
    }

    /** Takes lines in the background: a slow source does not delay the results of the lines before. */
    function takeMore() {
      if (taking || source.isDone()) return
      taking = source
        .take(BATCH)
        .then(
          (more) => {
            unfinished += more.length
            ready = [...ready, ...more]
          },
          (error) => {
            failed = { error }
          },
        )
        .finally(() => {
          taking = undefined
          wake()
        })
    }

    /** Resolves when there is work. After LOOK_UP_EVERY_MS without a hint, looking up all rows is the work. */
    async function nextWork() {
      if (reads.isTouched() || ready.length > 0 || failed || closed || signal?.aborted) return
      if (!taking && !reads.isWaiting()) return
      const isWoken = await wait(reads.isWaiting() ? reads.patienceMs() : MINUTE)
      if (!isWoken) reads.touchAll()
    }

    async function report(line: GivenLine, result: ImportLine['result'], why: string | null) {
      unfinished--
      const { fault: _fault, ...named } = line
      const reported = { ...named, result, why }
      const progress = counts.add(reported)
      await onProgress?.(progress, reported)
    }
  }

  return {
    importSubscriptions,
    /** Ends all running imports: they reject with `closed`. */
    close() {
      closed = true
      for (const wake of running) wake()
    },
  }
}

/**
 * How `subscriptions.import` goes through its lines.
 *
 * @example
 * const onProgress = ({ done, total }) => console.log(done, 'of', total)
 * await marketplace.subscriptions.import(lines, { announce: false, onProgress, signal: AbortSignal.timeout(60_000) })
 */
export interface ImportOptions {
  /** False: the changes these reads find do not reach `onPurchaseChange`. See `track`. Default true. */
  announce?: boolean
  /**
   * Called with the result of each line, once, one call at a time. If it returns a promise, the import waits for it and
   * takes no further lines. If it throws, the import ends and rejects with the same error.
   */
  onProgress?(progress: ImportProgress, line: ImportLine): unknown
  /** Ends the import, which then resolves with the results so far. */
  signal?: AbortSignal
  /** How long to wait while no read is answered, in ms. Default 2 min. */
  answerTimeoutMs?: number
}

const OPTIONS = z.strictObject({
  announce: z.boolean().optional(),
  onProgress: z
    .custom<ImportOptions['onProgress']>((value) => typeof value === 'function', 'expected a function')
    .optional(),
  signal: z
    .custom<AbortSignal>(
      (value) => typeof (value as Partial<AbortSignal> | null)?.addEventListener === 'function',
      'expected an AbortSignal',
    )
    .optional(),
  answerTimeoutMs: z.number().positive().optional(),
})
