import { type HealthProblem, problemOf } from '../health.js'
import type { SubscriptionCounts } from '../store/store.js'
import { isMost } from './read-outcomes.js'

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
