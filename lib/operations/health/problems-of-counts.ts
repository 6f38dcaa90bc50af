import { type HealthProblem, isMost, type ProblemCode, problemOf } from '../../base/health.js'
import type { StoreCounts, SubscriptionCounts, TurnedAway } from '../../store/port/store.js'

/** A refusal of the platform: its code in this package, and the HTTP status of the reply. */
interface Refusal {
  code: string
  status?: number | undefined
}

/**
 * The problems that the counts of the store show: every process reports them at once, also one that was just started or has
 * no worker. `refusal`: the most common refusal of this process's own reads, with its HTTP status.
 */
export function problemsOfCounts(counts: StoreCounts, refusal?: Refusal): HealthProblem[] {
  const { dead, retrying, lapsed, unsearched } = counts
  return [
    ...refusedBusinesses(counts, refusal),
    ...staleAnswers(counts),
    ...silenceProblems(counts),
    ...failedSearches(counts),
    ...counted(
      unsearched,
      'searches_full',
      `${unsearched} questions of the last hour made no search for subscriptions, because there are enough`,
    ),
    ...counted(dead, 'entries_dead', `${dead} journal entries are dead`),
    ...counted(
      retrying,
      'entries_retrying',
      `${retrying} journal entries are tried again because a handler failed`,
    ),
    ...counted(
      lapsed,
      'reads_end_process',
      `the process ended each time it read ${lapsed} subscriptions, so their reads are put off`,
    ),
  ]
}

function counted(count: number, code: ProblemCode, message: string): HealthProblem[] {
  return count > 0 ? [problemOf(code, message)] : []
}

/** A problem when searches fail for several businesses, or for most of those that the app has asked about. */
function failedSearches({ failedSearches: failed, askedSearches: asked }: StoreCounts): HealthProblem[] {
  if (failed < FEW && !isMost(failed, asked)) return []
  const what = `the search for subscriptions fails for ${failed} of ${asked} businesses`
  return [problemOf('find_subscriptions_failed', what)]
}

/** Fewer may be chance: a delivery that was lost while the app restarted. */
const FEW = 3

/**
 * A problem when most of the recent first records, or most of the recent later changes, came without an event. A
 * registration belongs to one event: without that of updates, purchases are still announced. Changes that an import or a
 * read of all found do not count, nor those of subscriptions that `track` has just added.
 */
function silenceProblems(counts: StoreCounts): HealthProblem[] {
  const { recentChanges, unannouncedChanges, recentFirstRecords, unannouncedFirstRecords } = counts
  const silent = [
    ...mostly(unannouncedFirstRecords, recentFirstRecords, 'first records'),
    ...mostly(unannouncedChanges, recentChanges, 'changes of known subscriptions'),
  ]
  if (silent.length === 0) return []
  return [problemOf('events_missing', `${silent.join(', and ')} came without an event this week`)]
}

function mostly(unannounced: number, recent: number, what: string): string[] {
  if (unannounced < FEW || unannounced * 2 <= recent) return []
  return [`${unannounced} of the last ${recent} ${what}`]
}

/**
 * A problem when the answers of most businesses are stale, or of many more than a thousand, because the others are not
 * counted further. Whatever the cause is.
 */
function staleAnswers({ stale, confirmed }: StoreCounts): HealthProblem[] {
  if (!isMost(stale, stale + confirmed)) return []
  const what = `the answers of ${stale} businesses are stale, and those of ${confirmed} are confirmed`
  return [problemOf('answers_stale', what)]
}

/**
 * Whether the platform refuses, or no longer shows, most businesses. A few that announced that they leave are no problem,
 * even if they are all. Many that began to fail lately are compared with those served since, because most of the others
 * were read long before.
 */
export function refusedBusinesses(counts: SubscriptionCounts, refusal?: Refusal): HealthProblem[] {
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
    const { code: why, status } = refusal ?? {
      code: withoutToken * 2 >= refused ? 'token_refused' : 'platform_refused',
    }
    const code = why === 'token_refused' ? 'tokens_refused' : 'reads_refused'
    const answer = status === undefined ? why : `${status} ${why}`
    problems.push(problemOf(code, `the platform refuses the reads of ${numbers} (${answer})`))
  }
  problems.push(
    ...counted(
      knownGivenUp,
      'reads_given_up',
      `${knownGivenUp} subscriptions that were read before are not read any more`,
    ),
  )
  return problems
}

/** As many do not leave at the same time. */
const MANY = 3

/** A problem when deliveries were not stored, or history was deleted for them, because more came than is kept or read. */
export function problemOfTurnedAway(turnedAway: TurnedAway | null): HealthProblem[] {
  if (!turnedAway) return []
  const { refused, deleted, counted } = turnedAway
  const names = counted.map(([name, count]) => `${count} of ${JSON.stringify(name)}`)
  const parts = [
    ...(refused > 0 ? [`${refused} deliveries got 503`] : []),
    ...(deleted > 0 ? [`${deleted} finished entries were deleted before their retention ended`] : []),
    ...(names.length > 0 ? [`unrecognised ones were only counted: ${names.join(', ')}`] : []),
  ]
  return [problemOf('deliveries_turned_away', `within the last hour ${parts.join('; ')}`)]
}
