import { type Clock, MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Hint, Store, Subscription } from '../store/store.js'
import { createLineSource, type GivenLine } from './import-lines.js'
import { checkedOptions, type ImportOptions } from './import-options.js'
import { createTally, type ImportLine, type ImportSummary, resultOf } from './import-results.js'

/** Limit of lines without a result: few enough that no requested read waits so long that `health()` reports it. */
const MAX_TAKEN = 250
/** Lines that share a lookup and a commit. */
const BATCH = 50
/** Hints may be lost, so all waiting lines are looked up after this time, in one statement. */
const LOOK_EVERY_MS = 5 * SECOND

interface Waiting {
  given: ValidLine
  /** A hint about one of these businesses may be about this line. */
  businesses: readonly string[]
  /** When its reads began to fail without an answer of the platform, by the monotonic clock. */
  failingSince?: number | undefined
  /** Later lines with the same subscription. They follow when this line has its result. */
  next: ValidLine[]
}

type ValidLine = GivenLine & { subscription_uid: string; business_uid: string }

/**
 * Requests the first reads of many subscriptions and waits for their results. A line that was already read for its
 * business is skipped, and a first read that is already requested is not requested again, so a second run of an import
 * repeats nothing. Workers do the reads. Hints of the store, and the rows, show the results.
 */
export function createImport(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsNamed' | 'subscribe'>
  clock: Clock
}) {
  const { store, clock } = options
  const running = new Set<() => void>()
  let closed = false

  async function importSubscriptions(lines: unknown, given?: ImportOptions): Promise<ImportSummary> {
    const { announce = true, onProgress, signal, answerTimeoutMs = 2 * MINUTE } = checkedOptions(given)
    const source = createLineSource(lines)
    const tally = createTally(source.total)
    const waiting = new Map<string, Waiting>()
    /** Subscriptions whose row may have changed. */
    let touched = new Set<string>()
    /** Lines to look up, and to request reads for. */
    let ready: GivenLine[] = []
    let taken = 0
    let taking: Promise<void> | undefined
    let failed: { error: unknown } | undefined
    let answeredAt = clock.monotonic()
    let wake = () => {}
    const touchAll = () => {
      for (const uid of waiting.keys()) touched.add(uid)
    }
    const unsubscribe = store.subscribe(noteHint)
    const wakeUp = () => wake()
    running.add(wakeUp)
    signal?.addEventListener('abort', wakeUp)

    try {
      const ended = await run()
      const why = ended === 'aborted' ? 'the import was aborted' : 'no read was answered in time'
      const left = [...waiting.values()].flatMap((each) => [each.given, ...each.next])
      for (const each of left) await report(each, 'pending', why)
      for (const each of ready) {
        if (each.fault === null) await report(each, 'pending', `${why}, and its read was not requested`)
        else await report(each, 'invalid', each.fault)
      }
      return tally.summary(ended, answerTimeoutMs)
    } finally {
      unsubscribe()
      running.delete(wakeUp)
      signal?.removeEventListener('abort', wakeUp)
      source.end()
    }

    async function run(): Promise<ImportSummary['ended']> {
      for (;;) {
        if (closed)
          throw new MarketplaceError('closed', 'Cannot continue the import: the marketplace was closed')
        if (failed) throw failed.error
        if (signal?.aborted) return 'aborted'
        if (ready.length > 0) {
          const batch = ready
          ready = []
          await requestReads(batch)
        }
        await look()
        if (source.isDone() && !taking && ready.length === 0 && waiting.size === 0) return 'complete'
        if (waiting.size > 0 && clock.monotonic() - answeredAt >= answerTimeoutMs) return 'unanswered'
        if (ready.length === 0 && taken + BATCH <= MAX_TAKEN) takeMore()
        await nextWork()
      }
    }

    function takeMore() {
      if (taking || source.isDone()) return
      taking = source
        .take(BATCH)
        .then(
          (more) => {
            taken += more.length
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

    /** Resolves when there is work. After LOOK_EVERY_MS without a hint, looking up all rows is the work. */
    async function nextWork() {
      if (touched.size > 0 || ready.length > 0 || failed || closed || signal?.aborted) return
      if (!taking && waiting.size === 0) return
      const leftMs = answeredAt + answerTimeoutMs - clock.monotonic()
      const ms = waiting.size > 0 ? Math.max(0, Math.min(LOOK_EVERY_MS, leftMs)) : MINUTE
      await new Promise<void>((resolve) => {
        const timer = clock.setTimeout(
          () => {
            touchAll()
            resolve()
          },
          ms,
          true,
        )
        wake = () => {
          clock.clearTimeout(timer)
          resolve()
        }
      })
      wake = () => {}
    }

    function noteHint(hint: Hint) {
      if (hint.kind !== 'decided') return
      for (const [uid, { businesses }] of waiting) {
        if (hint.businessUid === null || businesses.includes(hint.businessUid)) touched.add(uid)
      }
      if (touched.size > 0) wake()
    }

    async function requestReads(batch: readonly GivenLine[]) {
      const rows = await rowsOf(
        batch.flatMap(({ subscription_uid: uid, fault }) => (fault === null && uid ? [uid] : [])),
      )
      const unrequested: ValidLine[] = []
      if (waiting.size === 0) answeredAt = clock.monotonic()
      for (const each of batch) {
        if (each.fault !== null) {
          await report(each, 'invalid', each.fault)
          continue
        }
        const line = each as ValidLine
        const before = waiting.get(line.subscription_uid)
        if (before) {
          before.next.push(line)
          continue
        }
        const row = rows.get(line.subscription_uid)
        if (row && resultOf(row, line.business_uid)?.result === 'read') {
          await report(line, 'read', null)
          continue
        }
        const businesses = [line.business_uid, ...(row ? [row.businessUid] : [])]
        waiting.set(line.subscription_uid, { given: line, businesses, next: [] })
        if (!row || !isRequested(row, line, announce)) unrequested.push(line)
        else touched.add(line.subscription_uid)
      }
      // All in one turn, so that they share a commit.
      await Promise.all(
        unrequested.map(({ subscription_uid: subscriptionUid, business_uid: businessUid }) =>
          store.requestRefresh({
            kind: 'subscription',
            subscriptionUid,
            businessUid,
            purchasableUid: null,
            quiet: !announce,
          }),
        ),
      )
    }

    /** Looks up the rows that may have changed, in one statement, and reports the lines that have a result. */
    async function look() {
      if (touched.size === 0) return
      const uids = [...touched].filter((uid) => waiting.has(uid))
      touched = new Set()
      const again: GivenLine[] = []
      const rows = await rowsOf(uids)
      const now = clock.monotonic()
      for (const uid of uids) {
        const entry = waiting.get(uid) as Waiting
        const row = rows.get(uid)
        const answer = row && resultOf(row, entry.given.business_uid)
        if (answer) answeredAt = now
        entry.failingSince = row?.failure ? (entry.failingSince ?? now) : undefined
        const isFailing = entry.failingSince !== undefined && now - entry.failingSince >= answerTimeoutMs
        if (!answer && !isFailing) continue
        waiting.delete(uid)
        again.push(...entry.next)
        if (answer) await report(entry.given, answer.result, answer.why)
        else
          await report(entry.given, 'pending', `its reads fail (${row?.failure}); a worker tries them again`)
      }
      ready = [...again, ...ready]
    }

    async function report(line: GivenLine, result: ImportLine['result'], why: string | null) {
      taken--
      const { fault: _fault, ...named } = line
      const reported = { ...named, result, why }
      const progress = tally.add(reported)
      await onProgress?.(progress, reported)
    }
  }

  async function rowsOf(uids: readonly string[]): Promise<Map<string, Subscription>> {
    const rows = uids.length === 0 ? [] : await store.subscriptionsNamed(uids)
    return new Map(rows.map((row) => [row.subscriptionUid, row]))
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

/** Whether its first read is already requested: for this business, and announced if this import announces. */
function isRequested(row: Subscription, { business_uid }: ValidLine, announce: boolean): boolean {
  const isOpen = row.record === null && row.pending && row.failure === null
  return isOpen && row.businessUid === business_uid && !(announce && row.quiet)
}
