import type { Health, ProblemCode } from '../../index.js'
import type { Person } from '../protocol/roles.js'
import type { HealthReply, ProblemRow } from '../protocol/shapes.js'
import { type ConsoleMarketplace, rowsFor } from './rows.js'

const STARTED_AT = new Date(Date.now() - process.uptime() * 1_000).toISOString()

/** The health for people: words in place of codes, and the chapter where something can be done about a problem. */
export function createHealthCall(marketplace: Pick<ConsoleMarketplace, 'health' | 'readiness'>) {
  return async function health(person: Person): Promise<HealthReply> {
    const [found, readiness] = await Promise.all([marketplace.health(), marketplace.readiness()])
    const { status, counts } = found
    const { problemRow } = rowsFor(person)
    return {
      status,
      problems: found.problems.map(
        (problem): ProblemRow => ({ ...problemRow(problem), ...STEPS[problem.code] }),
      ),
      down: DOWN.find(({ codes }) => found.problems.some(({ code }) => codes.includes(code)))?.what ?? null,
      failed: counts && countOf(counts.dead + counts.retrying, COUNTED_UP_TO),
      numbers: counts && numbersIn(counts),
      notReady: readiness.ready ? [] : readiness.problems.map((problem) => problemRow(problem).message),
      process: { pid: process.pid, node: process.version, startedAt: STARTED_AT },
      now: new Date().toISOString(),
    }
  }
}

/** What is down while one of the problems is there. */
const DOWN: readonly { what: NonNullable<HealthReply['down']>; codes: readonly ProblemCode[] }[] = [
  { what: 'database', codes: ['store_not_open', 'store_not_answering', 'store_write_failed'] },
  { what: 'platform', codes: ['reads_failing'] },
]

/** The next steps that are in the console, in place of those of `PROBLEMS`, which name methods. */
const STEPS: { [Code in ProblemCode]?: Pick<ProblemRow, 'next' | 'place'> } = {
  entries_dead: {
    next: 'Look at the errors in the chapter Needs attention, mend the handler, and replay the entries there.',
    place: 'attention',
  },
  entries_retrying: {
    next: 'Look at the errors in the chapter Needs attention, and mend the handler. The app tries again by itself.',
    place: 'attention',
  },
  secrets_wrong: {
    next: 'The chapter Needs attention shows when the last request had a wrong secret. Register the webhooks of the app again.',
    place: 'attention',
  },
  events_missing: {
    next: 'The chapter Needs attention shows which events have arrived. Register the webhooks of the app again: it is harmless if they are registered already. Then track the purchases that are missing.',
    place: 'attention',
  },
  other_items_only: {
    next: 'The chapter Needs attention shows the subscriptions for other items. Compare them with the items in the settings of the app.',
    place: 'attention',
  },
  shapes_refused: {
    next: 'Look at the shapes of unrecognised deliveries in the chapter Needs attention. A proxy or a middleware may change bodies, or an event of the app needs another schema. If the platform sends another format now, update this package, and track the purchases meanwhile.',
    place: 'attention',
  },
  deliveries_turned_away: {
    next: 'Look at the newest entries in the chapter Live. If your platform did not send them, somebody has a delivery secret: replace it. If it did, track the purchases that are missing.',
    place: 'live',
  },
  requests_overdue: {
    next: 'The chapter Business lists the subscriptions that are not read yet: open them to see why their reads fail, and do what the next step says. If none fails, no process of the app with a worker runs, or there are more events than it is set to read.',
    place: 'business',
  },
  reads_given_up: {
    next: 'Look at the subscriptions in the chapter Business, and read their businesses again.',
    place: 'business',
  },
}

const COUNTED_UP_TO = 10_000
const NORMAL_UP_TO = 1_000

type Counts = NonNullable<Health['counts']>

/** Every count in words, in the order of the page. `upTo`: where counting ends, so that a higher number is not known. */
const NUMBERS: { [Name in keyof Counts]: { words: string; upTo?: number } } = {
  subscriptions: { words: 'Known subscriptions', upTo: NORMAL_UP_TO },
  active: { words: 'Active businesses', upTo: NORMAL_UP_TO },
  refused: { words: 'Active businesses that the platform refuses or does not show' },
  hidden: { words: 'Of these, not shown' },
  withoutToken: { words: 'Of these, refused a token' },
  leaving: { words: 'Of these, expected to end' },
  refusedLately: { words: 'Began to be refused in the last ten minutes' },
  servedMeanwhile: { words: 'Shown by the platform meanwhile', upTo: NORMAL_UP_TO },
  stale: { words: 'Active businesses that no read has confirmed for too long' },
  confirmed: { words: 'Confirmed by a read since', upTo: NORMAL_UP_TO },
  requested: { words: 'Requested reads without an answer' },
  oldestRequestMs: { words: 'Age of the oldest requested read' },
  oldestOverdueMs: { words: 'How long the longest due read has been due' },
  lapsed: { words: 'Subscriptions whose reads have ended the process' },
  oldestSearchMs: { words: 'How long the longest due search for subscriptions has been due' },
  askedSearches: { words: 'Businesses whose subscriptions are searched for, because the app has asked' },
  failedSearches: { words: 'Of these, the last search has failed' },
  unsearched: { words: 'Questions of the last hour that made no search, because there are enough' },
  givenUp: { words: 'Subscriptions whose reads were given up' },
  knownGivenUp: { words: 'Of these, read at least once before' },
  pending: { words: 'Pending entries' },
  retrying: { words: 'Retrying entries' },
  oldestPendingMs: { words: 'How long the longest due entry has been due' },
  dead: { words: 'Dead entries' },
  oldestMissedMs: {
    words: 'How long the oldest entry has waited whose handler a process had this week, and none has now',
  },
  unrecognised: { words: 'Unrecognised deliveries' },
  recentChanges: { words: 'Newest changes of this week after the first record, at most ten' },
  unannouncedChanges: { words: 'Of these, without an event' },
  recentFirstRecords: { words: 'Newest first records of this week, at most ten' },
  unannouncedFirstRecords: { words: 'Of these first records, without an event' },
}

function numbersIn(counts: Counts): { words: string; text: string }[] {
  return Object.entries(NUMBERS).map(([name, { words, upTo = COUNTED_UP_TO }]) => {
    const value = counts[name as keyof Counts]
    return { words, text: name.endsWith('Ms') ? spanOf(value) : countOf(value ?? 0, upTo) }
  })
}

/** `1,000+` where counting has ended. */
export function countOf(count: number, upTo: number): string {
  return `${count.toLocaleString('en')}${count >= upTo ? '+' : ''}`
}

function spanOf(ms: number | null): string {
  if (ms === null) return 'none'
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}
