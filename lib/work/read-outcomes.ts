import { type Clock, DAY, SECOND } from '../clock.js'
import type { ReadResult } from '../platform/read-result.js'
import type { SubscriptionCounts } from '../store/store.js'

/** The number of businesses whose last read counts. */
const WINDOW = 20
/** A shorter outage ends by itself and is not reported. */
const OUTAGE_AFTER_MS = 30 * SECOND
/** Of one or two vanished records it may be true. */
const MANY_VANISHED = 3
/** Records that vanish within this time count together. */
const VANISHED_TOGETHER_MS = DAY

interface BadOutcome {
  /** `vanished`: the platform does not show a record that the store has as shown. */
  kind: 'refused' | 'failed' | 'vanished'
  code: string
  wasRead: boolean
  since: number
}
type Outcome = { kind: 'good' } | BadOutcome

/**
 * The outcomes of the last reads. Many refusals, or many records that vanish, show a problem of the app's configuration
 * or of the platform.
 */
export function createReadOutcomes({ clock }: { clock: Clock }) {
  const latest = new Map<string, Outcome>()
  let foundAt = Number.NEGATIVE_INFINITY

  function problem(): string | undefined {
    const outcomes = [...latest.values()]
    for (const kind of ['refused', 'failed'] as const) {
      const bad = outcomes.filter((outcome): outcome is BadOutcome => outcome.kind === kind)
      if (!isMost(bad.length, outcomes.length)) continue
      const code = mostCommon(bad.map((outcome) => outcome.code))
      const lasted = clock.monotonic() - Math.min(...bad.map(({ since }) => since))
      const numbers = `${bad.length} of ${outcomes.length} businesses (${code})`
      if (kind === 'refused') return `the platform refuses the reads of ${numbers}: ${adviceFor(code)}`
      if (lasted >= OUTAGE_AFTER_MS)
        return `reads fail for ${numbers}: is the platform up, and are platform.baseUrl and platform.authUrl right?`
    }
    const vanished = countVanished()
    if (vanished === 0) return undefined
    return `the platform no longer shows the subscriptions of ${vanished} of ${outcomes.length} businesses: ${adviceFor('')}`
  }

  /** How many businesses have vanished records, if they are many and most; else 0. */
  function countVanished(): number {
    const from = clock.monotonic() - VANISHED_TOGETHER_MS
    const { length } = [...latest.values()].filter((each) => each.kind === 'vanished' && each.since > from)
    return length >= MANY_VANISHED && isMost(length, latest.size) ? length : 0
  }

  return {
    /** `wasShown`: the store has the record as one that the platform shows. */
    note(businessUid: string, wasRead: boolean, result: ReadResult, wasShown = false) {
      const before = latest.get(businessUid)
      const outcome = outcomeOf(result, wasShown)
      // Meanwhile believed to be gone.
      if (result.kind === 'missing' && !wasShown && before?.kind === 'vanished') return
      latest.delete(businessUid)
      if (outcome === undefined) return
      if (outcome === 'good') {
        // The platform serves reads, so subscriptions that it refused and never showed may be forged.
        if (result.kind === 'found') {
          foundAt = clock.monotonic()
          for (const [uid, each] of latest) if (each.kind !== 'good' && !each.wasRead) latest.delete(uid)
        }
        latest.set(businessUid, { kind: 'good' })
      } else {
        const goesOn = before?.kind === outcome.kind && outcome.kind !== 'vanished'
        const since = goesOn ? before.since : clock.monotonic()
        latest.set(businessUid, { ...outcome, wasRead, since })
      }
      for (const oldest of latest.keys()) {
        if (latest.size <= WINDOW) break
        latest.delete(oldest)
      }
    },

    /** Whether most businesses have lost their records: then no record is believed to be gone. */
    manyVanished: () => countVanished() > 0,

    /** Whether a read has found a record since `time` (wall clock), and most reads are not refused now. */
    hasServedSince: (time: number) =>
      clock.monotonic() - foundAt <= clock.now() - time && problem() === undefined,

    problems(counts: SubscriptionCounts): string[] {
      const now = problem()
      return [...(now === undefined ? knownRefused(counts) : [now])]
    },
  }
}

/**
 * The refusals recorded in the store, for a process that has not read much itself: after a restart, or without a
 * worker.
 */
export function knownRefused({ active, refused, knownGivenUp }: SubscriptionCounts): string[] {
  return [
    ...(isMost(refused, active)
      ? [`the last reads of ${refused} of ${active} subscriptions were refused: ${adviceFor('')}`]
      : []),
    ...(knownGivenUp > 0
      ? [`${knownGivenUp} subscriptions that were read before are not read any more`]
      : []),
  ]
}

/** At least three and more than half, or all of them. */
function isMost(some: number, all: number): boolean {
  return some > 0 && (some === all || (some >= 3 && some * 2 > all))
}

function outcomeOf(
  result: ReadResult,
  wasShown: boolean,
): 'good' | Pick<BadOutcome, 'kind' | 'code'> | undefined {
  switch (result.kind) {
    case 'found':
      return 'good'
    case 'missing':
      return wasShown ? { kind: 'vanished', code: 'platform_record_missing' } : 'good'
    case 'refused': {
      const status = 'status' in result ? result.status : undefined
      return { kind: 'refused', code: status === undefined ? result.code : `${status} ${result.code}` }
    }
    case 'token_refused':
      return {
        kind: 'refused',
        code: result.status === undefined ? result.kind : `${result.status} ${result.kind}`,
      }
    case 'outage':
      return { kind: 'failed', code: result.code }
    // These pause all reads; `read-pause.ts` reports them.
    case 'throttled':
    case 'credentials_refused':
      return undefined
  }
}

function adviceFor(code: string): string {
  if (code.includes('token_refused'))
    return 'look at platform.authUrl, app.clientId and app.clientSecret, and whether the businesses have the app installed'
  if (code.startsWith('404')) return 'look at platform.baseUrl'
  return 'look at platform.baseUrl, and whether the app may read subscriptions'
}

function mostCommon(codes: readonly string[]): string {
  const count = (code: string) => codes.filter((each) => each === code).length
  return [...new Set(codes)].sort((a, b) => count(b) - count(a))[0] ?? ''
}
