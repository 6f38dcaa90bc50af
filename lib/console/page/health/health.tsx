import { useContext } from 'preact/hooks'
import type { HealthReply, ProblemRow } from '../../protocol/shapes.js'
import { placeOf } from '../hooks.js'
import { Ago, Badge, Facts, Loading, Trouble } from '../parts.js'
import { Activity } from './activity.js'
import { HealthContext } from './watch.js'

const STATES = {
  ok: { tone: 'yes', badge: 'fine', headline: 'Everything works' },
  degraded: { tone: 'wait', badge: 'to look at', headline: 'It works, but needs attention' },
  failing: { tone: 'no', badge: 'down', headline: 'It does not work' },
} as const

const LINKS: Readonly<Record<NonNullable<ProblemRow['place']>, string>> = {
  attention: 'Open Needs attention',
  business: 'Open Business',
  live: 'Open Live',
}

/** The problems, each with what to do, the last day, and the numbers. */
export function Health(_: { rest: string[] }) {
  const { data, error } = useContext(HealthContext)
  return (
    <>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data && <Status {...data} />}
      <Activity />
      {data?.numbers && <Numbers of={data.numbers} />}
      {data && <ThisInstance {...data} />}
    </>
  )
}

function Status({ status, problems, notReady }: HealthReply) {
  const { tone, badge, headline } = STATES[status]
  return (
    <section class="card" aria-labelledby="state">
      <div class="head" role="status">
        <h2 id="state">{headline}</h2>
        <Badge tone={tone}>{badge}</Badge>
      </div>
      <ul class="rows">
        {problems.map(({ code, message, next, place }) => (
          <li key={code}>
            <p class="trouble">{message}</p>
            <p>
              <strong>What to do: </strong>
              {next} {place && <a href={placeOf(place)}>{LINKS[place]}</a>}
            </p>
          </li>
        ))}
      </ul>
      <p>
        {notReady.length === 0
          ? 'This instance can accept deliveries and answer requests.'
          : `This instance is not ready: ${notReady.join('; ')}.`}
      </p>
    </section>
  )
}

function Numbers({ of }: { of: NonNullable<HealthReply['numbers']> }) {
  return (
    <section class="card" aria-labelledby="numbers">
      <h2 id="numbers">Numbers</h2>
      <Facts look="numbers" of={of.map(({ words, text }) => [words, text])} />
      <p class="hint">A number with + was counted no further: there may be more.</p>
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
