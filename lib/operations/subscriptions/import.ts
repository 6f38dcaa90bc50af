import { z } from 'zod'
import { type Clock, MINUTE } from '../../base/clock.js'
import { MarketplaceError, messageOf } from '../../base/errors.js'
import { identifierOf, requireIdentifier } from '../../base/record.js'
import { createSlices, orAborted } from '../../base/waiting.js'
import type { Store } from '../../store/port/store.js'
import { checked } from '../journal/entry-filter.js'
import { type Answer, createImportReads, type ImportResult } from './import-reads.js'

/** A line of an import with its result. `import` takes such lines again, to retry them. */
export interface ImportLine {
  /** The first line is 1. */
  line: number
  /** As given; null if the line has no valid one, which only an `invalid` line can have. */
  subscriptionUid: string | null
  /** As given; null if the line has no valid one, which only an `invalid` line can have. */
  businessUid: string | null
  /**
   * `read`: the platform has shown it. `missing`: the platform does not show it. `refused`: the platform refuses to show it,
   * or shows it for another business. `invalid`: the line does not have two identifiers. `pending`: the import ended before
   * the read was answered.
   */
  result: ImportResult
  /** Why the line is not `read`, as a phrase; null when it is. */
  why: string | null
}

/** How many lines have which result, until now. */
interface ImportProgress {
  /** Number of lines with a result. */
  done: number
  /** Number of all lines, for an array or a set. */
  total?: number
  /** Lines whose subscription the platform has shown. */
  read: number
  /** Lines whose subscription the platform does not show. */
  missing: number
  /** Lines whose subscription the platform refuses to show, or shows for another business. */
  refused: number
  /** Lines without two identifiers. */
  invalid: number
  /** Lines whose read was not answered. */
  pending: number
}

/** How an import ended. */
export interface ImportSummary extends ImportProgress {
  /** `unanswered`: no read was answered for `answerTimeoutMs`, so no further lines were taken. */
  ended: 'complete' | 'aborted' | 'unanswered'
  /** How the import ended and what to do next, in sentences. */
  explanation: string
  /** The first 1,000 lines that are not `read`. */
  notRead: ImportLine[]
}

/**
 * How `subscriptions.import` goes through its lines.
 *
 * @example
 * const onProgress = ({ done, total }) => console.log(done, 'of', total)
 * await marketplace.subscriptions.import(lines, { announce: false, onProgress, signal: AbortSignal.timeout(60_000) })
 */
export interface ImportOptions {
  /** False: the changes these reads find reach no handler. See `track`. Default true. */
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

/** Lines without a result at a time: few enough that no requested read waits so long that `health()` reports it. */
const AT_ONCE = 250

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
  /** Ends each running import. */
  const running = new Set<() => void>()
  let isClosed = false

  async function importSubscriptions(lines: unknown, given?: ImportOptions): Promise<ImportSummary> {
    const {
      announce = true,
      onProgress,
      signal,
      answerTimeoutMs = 2 * MINUTE,
    } = checked(OPTIONS, given ?? {}, 'import subscriptions') as ImportOptions
    /** Aborts when no further line is taken, and no answer is awaited any more. */
    const ending = new AbortController()
    const state: { ended: ImportSummary['ended']; failure?: { error: unknown } } = { ended: 'complete' }
    const source = createLineSource(lines, { clock, ending: ending.signal, ready: () => reported })
    const counts = createResultCounts(source.total)
    const reads = createImportReads({
      ...{ store, announce, answerTimeoutMs, clock },
      whyEnding: () => (ending.signal.aborted ? WHY_PENDING[state.ended] : undefined),
      onUnanswered: () => end('unanswered'),
    })
    let reported: Promise<void> = Promise.resolve()

    function end(ended: ImportSummary['ended']) {
      if (ending.signal.aborted) return
      state.ended = ended
      ending.abort()
      reads.lookAgain()
    }

    function fail(error: unknown) {
      state.failure ??= { error }
      end('aborted')
    }

    /** Takes one line after the other until there is none, and reports the result of each. */
    async function takeLines() {
      try {
        for (let line = await source.next(); line; line = await source.next())
          await report(line, line.fault ?? (await reads.answer(line.subscriptionUid, line.businessUid)))
      } catch (error) {
        fail(error)
      }
    }

    function report(
      { line, subscriptionUid, businessUid }: GivenLine,
      { result, why }: Answer,
    ): Promise<void> {
      reported = reported.then(async () => {
        if (state.failure) return
        const done = { line, subscriptionUid, businessUid, result, why }
        const progress = counts.add(done)
        await onProgress?.(progress, done)
      })
      return reported
    }

    const onAbort = () => end('aborted')
    const onClose = () =>
      fail(new MarketplaceError('closed', 'Cannot continue the import: the marketplace was closed'))
    running.add(onClose)
    signal?.addEventListener('abort', onAbort)
    if (isClosed) onClose()
    else if (signal?.aborted) onAbort()
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, takeLines))
    } finally {
      reads.end()
      running.delete(onClose)
      signal?.removeEventListener('abort', onAbort)
      source.end()
    }
    const failure = state.failure ?? source.failure()
    if (failure) throw failure.error
    return counts.summary(state.ended, answerTimeoutMs)
  }

  return {
    importSubscriptions,
    /** Ends all running imports: they reject with `closed`. */
    close() {
      isClosed = true
      for (const onClose of running) onClose()
    },
  }
}

const WHY_PENDING = {
  complete: '',
  aborted: 'the import was aborted',
  unanswered: 'no read was answered in time',
} as const

/** One line as given, with its number: the first is 1. */
type GivenLine = { line: number } & (
  | { subscriptionUid: string; businessUid: string; fault: null }
  /** `fault`: the result of a line that is not valid. */
  | { subscriptionUid: string | null; businessUid: string | null; fault: Answer }
)

/**
 * The lines of an iterable, one at a time. An asynchronous iterable is asked for its next line only when a line is
 * wanted and `ready()` has resolved, and its error ends the lines. Throws `argument_invalid` for a value that is not
 * iterable.
 */
function createLineSource(
  lines: unknown,
  { clock, ending, ready }: { clock: Clock; ending: AbortSignal; ready(): Promise<void> },
) {
  const iterator = iteratorOf(lines)
  const slices = createSlices(clock)
  let last: Promise<GivenLine | undefined> = Promise.resolve(undefined)
  let count = 0
  let isDone = false
  let failure: { error: unknown } | undefined

  async function take(): Promise<GivenLine | undefined> {
    // The app's event loop has its turns, however many lines are not valid.
    await slices.yieldIfOver()
    if (isDone || ending.aborted) return undefined
    try {
      await orAborted(ready(), ending)
      const { done, value } = await orAborted(Promise.resolve(iterator.next()), ending)
      if (!done) return givenLine(value, ++count)
      isDone = true
    } catch (error) {
      if (ending.aborted) return undefined
      isDone = true
      failure = { error }
    }
    return undefined
  }

  return {
    /** The number of lines, if it is known in advance. */
    total: Array.isArray(lines) ? lines.length : lines instanceof Set ? lines.size : undefined,

    /** The next line; undefined when there is none, or the import ends. Never rejects. */
    next(): Promise<GivenLine | undefined> {
      last = last.then(take)
      return last
    },

    /** What the iterable threw. */
    failure: () => failure,

    /** Lets the iterable clean up, and does not wait for that. */
    end() {
      if (isDone) return
      isDone = true
      // Not awaited: a generator that waits for its own source returns only after that source answers.
      const ended = (async () => iterator.return?.())()
      ended.catch(() => {})
    },
  }
}

function iteratorOf(lines: unknown): Iterator<unknown> | AsyncIterator<unknown> {
  const given = lines as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined
  const isText = typeof lines === 'string'
  const iterator = isText ? undefined : (given?.[Symbol.asyncIterator]?.() ?? given?.[Symbol.iterator]?.())
  if (iterator) return iterator
  throw new MarketplaceError(
    'argument_invalid',
    'Cannot import subscriptions: expected an iterable or an async iterable of { subscriptionUid, businessUid }',
  )
}

function givenLine(value: unknown, line: number): GivenLine {
  const given = (value ?? {}) as Record<string, unknown>
  try {
    return {
      line,
      subscriptionUid: requireIdentifier(given.subscriptionUid, 'subscriptionUid'),
      businessUid: requireIdentifier(given.businessUid, 'businessUid'),
      fault: null,
    }
  } catch (error) {
    return {
      line,
      subscriptionUid: identifierOf(given.subscriptionUid),
      businessUid: identifierOf(given.businessUid),
      fault: { result: 'invalid', why: messageOf(error) },
    }
  }
}

/** Counts the results and collects the first lines that are not read. */
function createResultCounts(total: number | undefined) {
  const counts = { done: 0, read: 0, missing: 0, refused: 0, invalid: 0, pending: 0 }
  const notRead: ImportLine[] = []
  const progress = (): ImportProgress => ({ ...counts, ...(total === undefined ? {} : { total }) })

  return {
    add(line: ImportLine): ImportProgress {
      counts.done++
      counts[line.result]++
      if (line.result !== 'read' && notRead.length < MAX_NAMED) notRead.push(line)
      return progress()
    },
    summary(ended: ImportSummary['ended'], waitedMs: number): ImportSummary {
      const { done, read, pending } = counts
      const [first] = notRead
      const explanation =
        ended === 'complete' && read === 0 && pending === 0 && first
          ? `None of the ${done} lines was read. Why the first was not: ${first.why}. ${NEXT_STEPS[first.result]}`
          : EXPLANATIONS[ended](done, pending, waitedMs / 1_000)
      return { ...progress(), ended, explanation, notRead }
    },
  }
}

const MAX_NAMED = 1_000

/** What to do when no line was read, by the result of the first. */
const NEXT_STEPS: Record<ImportResult, string> = {
  read: '',
  missing:
    'Compare the uids with those of the platform, and check that platform.baseUrl is the right platform.',
  refused: 'Check app.clientId, that the businesses have installed the app, and which uid is whose.',
  invalid: 'Each line must be { subscriptionUid, businessUid }.',
  pending: '',
}

const AGAIN = 'Run it again with the same lines: it skips lines that are already read.'
const EXPLANATIONS = {
  complete: (done: number, pending: number) =>
    pending === 0
      ? `All ${done} lines have a result.`
      : `All ${done} lines were taken. The reads of ${pending} still fail, and a worker tries them again. ${AGAIN}`,
  aborted: (done: number, pending: number) =>
    `The import was aborted after ${done} lines, of which ${pending} are pending. ${AGAIN}`,
  unanswered: (_done: number, pending: number, waitedS: number) =>
    `No read was answered for ${waitedS} s, so the import stopped with ${pending} lines pending. Check with health() that a worker runs and the platform answers. ${AGAIN}`,
} as const
