import { type Clock, createAgingTime, SECOND } from '../../base/clock.js'
import { type HealthProblem, isMost, problemOf } from '../../base/health.js'
import type { SearchResult } from '../../platform/find-subscriptions.js'
import type { ReadResult } from '../../platform/read-result.js'

/** The number of businesses whose last read counts. */
const WINDOW = 20
/**
 * A shorter outage ends by itself and is not reported. A failed read counts for two of them, and for twice as long as it
 * failed.
 */
const OUTAGE_AFTER_MS = 30 * SECOND

type Outcome =
  /** The store counts these; only this process knows their HTTP status. */
  | { kind: 'refused'; code: string; status: number | undefined }
  | { kind: 'failed'; code: string; since: number; at: number }

type Outcomes = Map<string, Outcome | undefined>

/**
 * What the last reads of this process say of all its reads: that the platform does not answer, limits our rate, or
 * refuses the app's credentials. The last two pause all reads, because every other read would get the same reply. The
 * store has the reads that the platform refused.
 *
 * Subscriptions that were never read are judged apart: anybody with the delivery secret can make them up, and the
 * platform's quick denials of them would hide that it does not answer for the others. A record that it shows proves that
 * it answers, so their failures before that do not count.
 */
export function createReadOutcomes(options: {
  clock: Clock
  /** Called after each limit of our rate, with the time at which the read had begun that met it. */
  onThrottled?(pauseMs: number, beganAt: number): void
}) {
  const { clock, onThrottled = () => {} } = options
  const age = createAgingTime(clock)
  /** By business, in the order of their last reads; undefined if the platform answered. */
  const known: Outcomes = new Map()
  const unread: Outcomes = new Map()
  let pausedUntil = Number.NEGATIVE_INFINITY
  let whyPaused: HealthProblem | undefined
  /** Refused credentials are a problem until a read gets another answer, which may be hours after the pause. */
  let lastAnswer: (ReadResult | SearchResult)['kind'] | undefined

  const isPaused = () => age() < pausedUntil
  const areHeldUp = () => isPaused() || lastAnswer === 'credentials_refused'

  function pause(forMs: number, why: HealthProblem) {
    pausedUntil = Math.max(pausedUntil, age() + forMs)
    whyPaused = why
  }

  function problemOfOutage(latest: Outcomes): HealthProblem[] {
    const now = clock.monotonic()
    // The next try comes within about the time since the first one. If it did not, another process made it.
    const failed = [...latest.values()]
      .filter((outcome) => outcome?.kind === 'failed')
      .filter(({ since, at }) => now - at <= 2 * (at - since + OUTAGE_AFTER_MS))
    if (!isMost(failed.length, latest.size)) return []
    const lasted = now - Math.min(...failed.map(({ since }) => since))
    if (lasted < OUTAGE_AFTER_MS) return []
    const code = mostCommon(
      failed.map((outcome) => outcome.code),
      (each) => each,
    )
    return [
      problemOf('reads_failing', `reads fail for ${failed.length} of ${latest.size} businesses (${code})`),
    ]
  }

  /** Pauses all reads after a reply that every other call would get too. False: it is no such reply. */
  function pauseAfter(result: { kind: string; retryAfterMs?: number }, beganAt: number): boolean {
    if (result.kind === 'throttled') {
      const pauseMs = result.retryAfterMs ?? SECOND
      onThrottled(pauseMs, beganAt)
      pause(pauseMs, problemOf('reads_throttled', 'reads are paused: the platform limits our rate'))
      return true
    }
    if (result.kind !== 'credentials_refused') return false
    pause(10 * SECOND, problemOf('credentials_refused', "the platform refuses the app's credentials"))
    return true
  }

  return {
    isPaused,
    /** Whether reads are paused, or the last answer refused the credentials: the next read may come long after that pause. */
    areHeldUp,

    /** The result of a search, which is no read: it may pause the reads, and otherwise shows that the credentials are right. */
    noteSearch(result: SearchResult, beganAt: number) {
      if (result.kind !== 'failed') lastAnswer = result.kind
      pauseAfter(result, beganAt)
    },

    /**
     * `isUnread`: no read of the subscription has found a record, and this one has not either. `beganAt`: when the read
     * began, by the monotonic clock.
     */
    note(businessUid: string, result: ReadResult, isUnread = false, beganAt = clock.monotonic()) {
      const latest = isUnread ? unread : known
      const before = latest.get(businessUid)
      latest.delete(businessUid)
      if (result.kind !== 'outage') lastAnswer = result.kind
      if (pauseAfter(result, beganAt)) return
      if (result.kind === 'outage') {
        const at = clock.monotonic()
        const since = before?.kind === 'failed' ? before.since : at
        latest.set(businessUid, { kind: 'failed', code: result.code, since, at })
      } else latest.set(businessUid, refusalIn(result))
      if (result.kind === 'found')
        for (const [each, outcome] of unread) if (outcome?.kind === 'failed') unread.delete(each)
      for (const oldest of latest.keys()) {
        if (latest.size <= WINDOW) break
        latest.delete(oldest)
      }
    },

    /** The most common refusal of the last reads, with its HTTP status; undefined if there is none. */
    refusal(): { code: string; status: number | undefined } | undefined {
      const refusedOf = (latest: Outcomes) =>
        [...latest.values()].filter((outcome) => outcome?.kind === 'refused')
      const ofKnown = refusedOf(known)
      return mostCommon(
        ofKnown.length > 0 ? ofKnown : refusedOf(unread),
        ({ code, status }) => `${status} ${code}`,
      )
    },

    problems(): HealthProblem[] {
      const ofPause = whyPaused && areHeldUp() ? [whyPaused] : []
      const [outage] = [known, unread].flatMap(problemOfOutage)
      return outage ? [...ofPause, outage] : ofPause
    },
  }
}

function refusalIn(result: ReadResult): Outcome | undefined {
  if (result.kind !== 'refused' && result.kind !== 'token_refused') return undefined
  const code = result.kind === 'refused' ? result.code : result.kind
  const status = 'status' in result ? result.status : undefined
  return { kind: 'refused', code, status }
}

function mostCommon<T>(outcomes: readonly T[], answerOf: (outcome: T) => string): T | undefined {
  const answers = outcomes.map(answerOf)
  const count = (outcome: T) => answers.filter((each) => each === answerOf(outcome)).length
  return [...outcomes].sort((a, b) => count(b) - count(a))[0]
}
