import { type Clock, MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Hint, Store, Subscription } from '../store/store.js'
import { createLineSource, type GivenLine } from './import-lines.js'
import { checkedOptions, type ImportOptions } from './import-options.js'
import { createTally, type ImportLine, type ImportSummary, resultOf } from './import-results.js'

/** Lines that are taken and have no result yet: so few that no read is owed for long enough to trouble `health()`. */
const MOST_TAKEN = 250
/** Lines that share a lookup and a commit. */
const BATCH = 50
/** Hints may be lost, so the store is asked for all that wait, in one statement. */
const LOOK_EVERY_MS = 5 * SECOND

interface Waiting {
  given: ValidLine
  /** Whose reads may answer it. */
  businesses: readonly string[]
  /** Since when its reads have failed without an answer of the platform, by the monotonic clock. */
  failingSince?: number | undefined
  /** Lines that name the same subscription once more: their turn comes when this one has its result. */
  next: ValidLine[]
}

type ValidLine = GivenLine & { subscription_uid: string; business_uid: string }

/**
 * Learns of many subscriptions. A line that the store has read for its business is skipped, and one whose first read is
 * asked for already is only waited for: so an import that is run again repeats nothing. The reads are the workers'; their
 * results come with the store's hints, and from the rows themselves.
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
    /** Subscriptions whose row may have moved. */
    let touched = new Set<string>()
    /** Lines whose turn it is to be looked up and asked for. */
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
        if (each.fault === null) await report(each, 'pending', `${why}, and its read was not asked for`)
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
        if (closed) throw new MarketplaceError('closed', 'Cannot go on importing: the marketplace was closed')
        if (failed) throw failed.error
        if (signal?.aborted) return 'aborted'
        if (ready.length > 0) {
          const batch = ready
          ready = []
          await ask(batch)
        }
        await look()
        if (source.isDone() && !taking && ready.length === 0 && waiting.size === 0) return 'complete'
        if (waiting.size > 0 && clock.monotonic() - answeredAt >= answerTimeoutMs) return 'unanswered'
        if (ready.length === 0 && taken + BATCH <= MOST_TAKEN) takeMore()
        await news()
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

    /** Resolves when there is something to do; all rows are looked at after a while without. */
    async function news() {
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

    async function ask(batch: readonly GivenLine[]) {
      const rows = await rowsOf(
        batch.flatMap(({ subscription_uid: uid, fault }) => (fault === null && uid ? [uid] : [])),
      )
      const asked: ValidLine[] = []
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
        if (!row || !isAskedFor(row, line, announce)) asked.push(line)
        else touched.add(line.subscription_uid)
      }
      // In one turn, so that they share a commit.
      await Promise.all(
        asked.map(({ subscription_uid: subscriptionUid, business_uid: businessUid }) =>
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

    /** The rows that may have moved, in one statement. */
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
        else await report(entry.given, 'pending', `its reads fail (${row?.failure}), and are tried again`)
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
    /** Ends all imports that run: they reject `closed`. */
    close() {
      closed = true
      for (const wake of running) wake()
    },
  }
}

/** Its first read is asked for, for this business, and no quieter than it should be. */
function isAskedFor(row: Subscription, { business_uid }: ValidLine, announce: boolean): boolean {
  const isOpen = row.record === null && row.pending && row.failure === null
  return isOpen && row.businessUid === business_uid && !(announce && row.quiet)
}
