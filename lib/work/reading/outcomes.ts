import { type Clock, SECOND } from '../../base/clock.js'
import { type HealthProblem, problemOf } from '../../base/health.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { SubscriptionCounts } from '../../store/port/store.js'

/** The number of businesses whose last read counts. */
const WINDOW = 20
/** A shorter outage ends by itself and is not reported. */
const OUTAGE_AFTER_MS = 30 * SECOND

type Outcome =
  | { kind: 'answered' }
  /** The store counts these; only this process knows their HTTP status. */
  | { kind: 'refused'; code: string }
  | { kind: 'failed'; code: string; since: number }

/** The last reads of this process that the platform did not answer. The store has those that it refused. */
export function createReadOutcomes({ clock }: { clock: Clock }) {
  const latest = new Map<string, Outcome>()

  return {
    note(businessUid: string, result: ReadResult) {
      const before = latest.get(businessUid)
      latest.delete(businessUid)
      // These pause all reads; `read-pause.ts` reports them.
      if (result.kind === 'throttled' || result.kind === 'credentials_refused') return
      if (result.kind === 'outage') {
        const since = before?.kind === 'failed' ? before.since : clock.monotonic()
        latest.set(businessUid, { kind: 'failed', code: result.code, since })
      } else latest.set(businessUid, refusalIn(result) ?? { kind: 'answered' })
      for (const oldest of latest.keys()) {
        if (latest.size <= WINDOW) break
        latest.delete(oldest)
      }
    },

    /** The most common refusal of the last reads, with its HTTP status; undefined if there is none. */
    refusal(): string | undefined {
      const codes = [...latest.values()].flatMap((outcome) =>
        outcome.kind === 'refused' ? outcome.code : [],
      )
      return mostCommon(codes) || undefined
    },

    problems(): HealthProblem[] {
      const failed = [...latest.values()].filter((outcome) => outcome.kind === 'failed')
      if (!isMost(failed.length, latest.size)) return []
      const lasted = clock.monotonic() - Math.min(...failed.map(({ since }) => since))
      if (lasted < OUTAGE_AFTER_MS) return []
      const code = mostCommon(failed.map((outcome) => outcome.code))
      return [
        problemOf('reads_failing', `reads fail for ${failed.length} of ${latest.size} businesses (${code})`),
      ]
    },
  }
}

function refusalIn(result: ReadResult): Outcome | undefined {
  if (result.kind !== 'refused' && result.kind !== 'token_refused') return undefined
  const code = result.kind === 'refused' ? result.code : result.kind
  const status = 'status' in result ? result.status : undefined
  return { kind: 'refused', code: status === undefined ? code : `${status} ${code}` }
}

/** At least three and more than half, or all of them. */
export function isMost(some: number, all: number): boolean {
  return some > 0 && (some === all || (some >= 3 && some * 2 > all))
}

function mostCommon(codes: readonly string[]): string {
  const count = (code: string) => codes.filter((each) => each === code).length
  return [...new Set(codes)].sort((a, b) => count(b) - count(a))[0] ?? ''
}

/**
 * Whether the platform refuses, or no longer shows, most businesses: from the store, so every process says the same, also
 * one that was just started or has no worker. A few that announced that they leave are no problem, even if they are all.
 * Many that began to fail lately are compared with those served since, because most of the others were read long before.
 * `refusal`: the most common refusal of this process's own reads, with its HTTP status.
 */
export function refusedBusinesses(counts: SubscriptionCounts, refusal?: string): HealthProblem[] {
  const { active, refused, hidden, withoutToken, leaving, refusedLately, servedMeanwhile, knownGivenUp } =
    counts
  const problems: HealthProblem[] = []
  const isOfAll = isMost(refused, active) && (refused >= MANY || refused > leaving)
  const isOfLate = refusedLately >= MANY && refusedLately > servedMeanwhile
  const isProblem = isOfAll || isOfLate
  const numbers = isOfAll
    ? `${refused} of ${active} businesses`
    : `${refusedLately} of the ${refusedLately + servedMeanwhile} businesses that were read lately`
  if (isProblem && hidden * 2 > refused)
    problems.push(
      problemOf('records_vanished', `the platform no longer shows the subscriptions of ${numbers}`),
    )
  else if (isProblem) {
    const answer = refusal ?? (withoutToken * 2 >= refused ? 'token_refused' : 'platform_refused')
    const code = answer.includes('token_refused') ? 'tokens_refused' : 'reads_refused'
    problems.push(problemOf(code, `the platform refuses the reads of ${numbers} (${answer})`))
  }
  if (knownGivenUp > 0)
    problems.push(
      problemOf(
        'reads_given_up',
        `${knownGivenUp} subscriptions that were read before are not read any more`,
      ),
    )
  return problems
}

/** As many do not leave at the same time. */
const MANY = 3
