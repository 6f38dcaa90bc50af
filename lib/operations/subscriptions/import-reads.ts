import type { Clock } from '../../base/clock.js'
import type { Hint, RefreshRequest, Store, Subscription } from '../../store/port/store.js'
import type { GivenLine } from './import-lines.js'
import { type ImportLine, resultOf } from './import-results.js'

type ValidLine = GivenLine & { subscriptionUid: string; businessUid: string }

/** A line whose read is requested and not answered yet. */
interface Waiting {
  given: ValidLine
  /** A hint about one of these businesses may be about this line. */
  businesses: readonly string[]
  /** When its reads began to fail without an answer of the platform, by the monotonic clock. */
  failingSince?: number | undefined
  /** Later lines with the same subscription. They follow when this line has its result. */
  next: ValidLine[]
}

/**
 * The reads of one import: requests them, and finds their results in the rows of the subscriptions. Workers do the
 * reads. Hints of the store name the rows to look up.
 */
export function createImportReads(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsNamed' | 'subscribe'>
  announce: boolean
  answerTimeoutMs: number
  clock: Clock
  report(line: GivenLine, result: ImportLine['result'], why: string | null): Promise<void>
  /** Called when a row may have changed, so that `lookUp` has work. */
  onTouched(): void
}) {
  const { store, announce, answerTimeoutMs, clock, report, onTouched } = options
  /** By subscription. */
  const waiting = new Map<string, Waiting>()
  /** Subscriptions whose row may have changed. */
  let touched = new Set<string>()
  /** When a read was last answered, or the first of these reads was requested. */
  let answeredAt = clock.monotonic()
  const unsubscribe = store.subscribe(noteHint)

  function noteHint(hint: Hint) {
    if (hint.kind !== 'decided') return
    for (const [uid, { businesses }] of waiting) {
      if (hint.businessUid === null || businesses.includes(hint.businessUid)) touched.add(uid)
    }
    if (touched.size > 0) onTouched()
  }

  /** Reports the lines that are invalid or already read, and requests the reads of the others. */
  async function request(lines: readonly GivenLine[]) {
    const rows = await rowsOf(
      store,
      lines.flatMap(({ subscriptionUid: uid, fault }) => (fault === null && uid ? [uid] : [])),
    )
    const unrequested: ValidLine[] = []
    if (waiting.size === 0) answeredAt = clock.monotonic()
    for (const each of lines) {
      if (each.fault !== null) {
        await report(each, 'invalid', each.fault)
        continue
      }
      const line = each as ValidLine
      const before = waiting.get(line.subscriptionUid)
      if (before) {
        before.next.push(line)
        continue
      }
      const row = rows.get(line.subscriptionUid)
      if (row && resultOf(row, line.businessUid)?.result === 'read') {
        await report(line, 'read', null)
        continue
      }
      const businesses = [line.businessUid, ...(row ? [row.businessUid] : [])]
      waiting.set(line.subscriptionUid, { given: line, businesses, next: [] })
      if (!row || !isRequested(row, line, announce)) unrequested.push(line)
      else touched.add(line.subscriptionUid)
    }
    // All in one turn, so that they share a commit.
    await Promise.all(unrequested.map((line) => store.requestRefresh(requestFor(line, announce), 'import')))
  }

  /**
   * Looks up the rows that may have changed, in one statement, and reports the lines that have a result. Returns the
   * lines that waited for the same subscriptions.
   */
  async function lookUp(): Promise<GivenLine[]> {
    if (touched.size === 0) return []
    const uids = [...touched].filter((uid) => waiting.has(uid))
    touched = new Set()
    const next: GivenLine[] = []
    const rows = await rowsOf(store, uids)
    const now = clock.monotonic()
    for (const uid of uids) {
      const entry = waiting.get(uid) as Waiting
      const row = rows.get(uid)
      const answer = row && resultOf(row, entry.given.businessUid)
      if (answer) answeredAt = now
      entry.failingSince = row?.failure ? (entry.failingSince ?? now) : undefined
      const isFailing = entry.failingSince !== undefined && now - entry.failingSince >= answerTimeoutMs
      if (!answer && !isFailing) continue
      waiting.delete(uid)
      next.push(...entry.next)
      if (answer) await report(entry.given, answer.result, answer.why)
      else await report(entry.given, 'pending', `its reads fail (${row?.failure}); a worker tries them again`)
    }
    return next
  }

  return {
    request,
    lookUp,
    /** Every row may have changed: hints may be lost. */
    touchAll() {
      for (const uid of waiting.keys()) touched.add(uid)
    },
    isTouched: () => touched.size > 0,
    isWaiting: () => waiting.size > 0,
    /** How long the import still waits for the next answer. At 0 it ends. */
    patienceMs: () => Math.max(0, answeredAt + answerTimeoutMs - clock.monotonic()),
    /** The lines without a result. */
    unanswered: (): GivenLine[] => [...waiting.values()].flatMap(({ given, next }) => [given, ...next]),
    end: unsubscribe,
  }
}

/** Whether its first read is already requested: for this business, and announced if this import announces. */
function isRequested(row: Subscription, { businessUid }: ValidLine, announce: boolean): boolean {
  const isOpen = row.record === null && row.pending && row.failure === null
  return isOpen && row.businessUid === businessUid && !(announce && row.quiet)
}

function requestFor(line: ValidLine, announce: boolean): RefreshRequest {
  const { subscriptionUid, businessUid } = line
  return { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: null, quiet: !announce }
}

async function rowsOf(
  store: Pick<Store, 'subscriptionsNamed'>,
  uids: readonly string[],
): Promise<Map<string, Subscription>> {
  const rows = uids.length === 0 ? [] : await store.subscriptionsNamed(uids)
  return new Map(rows.map((row) => [row.subscriptionUid, row]))
}
