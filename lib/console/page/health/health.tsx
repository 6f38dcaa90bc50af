import { useState } from 'preact/hooks'
import type { HealthReply } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { usePolling } from '../hooks.js'
import { Ago, Badge, Facts, Loading, Trouble } from '../parts.js'

const EVERY_MS = 10_000
const TONES = { ok: 'yes', degraded: 'wait', failing: 'no' } as const
const HEADLINES = {
  ok: 'Everything works',
  degraded: 'It works, but needs attention',
  failing: 'It does not work',
} as const

/** The problems, each with what to do, and the numbers. */
export function Health(_: { rest: string[] }) {
  const [data, setData] = useState<HealthReply>()
  const [error, setError] = useState<string>()
  usePolling(
    () =>
      read('health').then(
        (reply) => {
          setData(reply)
          setError(undefined)
        },
        (problem) => setError(problem.message),
      ),
    EVERY_MS,
    true,
  )
  if (!data) return error ? <Trouble error={error} /> : <Loading />
  return (
    <>
      <Trouble error={error} />
      <Status {...data} />
      {data.health.counts && <Numbers counts={data.health.counts} />}
      <ThisInstance {...data} />
    </>
  )
}

function Status({ health, readiness }: HealthReply) {
  return (
    <section class="card" aria-labelledby="state">
      <div class="head" role="status">
        <h2 id="state">{HEADLINES[health.status]}</h2>
        <Badge tone={TONES[health.status]}>{health.status}</Badge>
      </div>
      <ul class="rows">
        {health.problems.map(({ code, message, next }) => (
          <li key={code}>
            <p class="trouble">{message}</p>
            <p>
              <strong>What to do: </strong>
              {next}
            </p>
          </li>
        ))}
      </ul>
      <p>
        {readiness.ready
          ? 'This instance can accept deliveries and answer requests.'
          : `This instance is not ready: ${readiness.problems.map(({ message }) => message).join('; ')}.`}
      </p>
    </section>
  )
}

function Numbers({ counts }: { counts: object }) {
  return (
    <section class="card" aria-labelledby="numbers">
      <h2 id="numbers">Numbers</h2>
      <Facts
        look="numbers"
        of={inOrder(counts).map(([name, value]) => [
          LABELS[name] ?? name,
          name.endsWith('Ms') ? spanOf(value) : String(value),
        ])}
      />
      <p class="hint">Each number is counted up to 10,000, active businesses up to 1,000.</p>
    </section>
  )
}

function ThisInstance({ process, now }: HealthReply) {
  return (
    <section class="card" aria-labelledby="instance">
      <h2 id="instance">This instance</h2>
      <Facts
        look="numbers"
        of={[
          ['Started', <Ago at={process.startedAt} />],
          ['Process', process.pid],
          ['Node', process.node],
          ['Checked', <Ago at={now} />],
        ]}
      />
    </section>
  )
}

/** The labels of the counts, in this order. Other counts of a store come last. */
const LABELS: Readonly<Record<string, string>> = {
  subscriptions: 'Known subscriptions',
  active: 'Active businesses',
  refused: 'Active businesses that the platform refuses or does not show',
  hidden: 'Of these, not shown',
  withoutToken: 'Of these, refused a token',
  leaving: 'Of these, expected to end',
  refusedLately: 'Began to be refused in the last ten minutes',
  servedMeanwhile: 'Shown by the platform meanwhile',
  stale: 'Active businesses that no read has confirmed for too long',
  confirmed: 'Confirmed by a read since',
  requested: 'Requested reads without an answer',
  oldestRequestMs: 'Age of the oldest requested read',
  oldestOverdueMs: 'How long the longest due read has been due',
  oldestSearchMs: 'How long the longest due search for subscriptions has been due',
  askedSearches: 'Businesses whose subscriptions are searched for, because the app has asked',
  failedSearches: 'Of these, the last search has failed',
  unsearched: 'Questions of the last hour that made no search, because there are enough',
  givenUp: 'Subscriptions whose reads were given up',
  knownGivenUp: 'Of these, read at least once before',
  pending: 'Pending entries',
  retrying: 'Retrying entries',
  oldestPendingMs: 'How long the longest due entry has been due',
  dead: 'Dead entries',
  oldestMissedMs:
    'How long the oldest entry has waited whose handler a process had this week, and none has now',
  unrecognised: 'Unrecognised deliveries',
  recentChanges: 'Newest changes of this week after the first record, at most ten',
  unannouncedChanges: 'Of these, without an event',
  recentFirstRecords: 'Newest first records of this week, at most ten',
  unannouncedFirstRecords: 'Of these first records, without an event',
}

function inOrder(counts: object): [string, number | null][] {
  const known = Object.keys(LABELS).filter((name) => name in counts)
  const others = Object.keys(counts).filter((name) => !(name in LABELS))
  return [...known, ...others].map((name) => [name, (counts as Record<string, number | null>)[name] ?? null])
}

function spanOf(ms: number | null): string {
  if (ms === null) return 'none'
  const seconds = Math.round(ms / 1_000)
  return seconds < 120
    ? `${seconds} s`
    : seconds < 7_200
      ? `${Math.round(seconds / 60)} min`
      : `${Math.round(seconds / 3_600)} h`
}
