import type { ActivityReply } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { useLoad } from '../hooks.js'
import { Loading, Trouble } from '../parts.js'

type Hour = ActivityReply['hours'][number]

const SERIES = [
  { name: 'deliveries', words: 'deliveries' },
  { name: 'handled', words: 'handled' },
  { name: 'failed', words: 'failed' },
] as const

/** The size of the chart in its own units: three bars for each hour. */
const HEIGHT = 100
const BAR = 4
const HOUR = 15

/** A chart of the last day, and the same in words. */
export function Activity() {
  const { data, error } = useLoad((signal) => read('activity', {}, signal), [])
  return (
    <section class="card" aria-labelledby="activity">
      <h2 id="activity">The last day</h2>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data && <Chart {...data} />}
    </section>
  )
}

function Chart({ hours, isAll }: ActivityReply) {
  const most = Math.max(1, ...hours.flatMap((hour) => SERIES.map(({ name }) => hour[name])))
  const inWords = wordsOf(hours, isAll)
  return (
    <figure>
      <svg
        class="chart"
        viewBox={`0 0 ${hours.length * HOUR} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={inWords}
      >
        {hours.map((hour, i) =>
          SERIES.map(({ name }, place) => {
            const height = (hour[name] / most) * HEIGHT
            const x = i * HOUR + place * BAR
            return (
              <rect key={name} data-series={name} x={x} y={HEIGHT - height} width={BAR} height={height} />
            )
          }),
        )}
      </svg>
      <figcaption>
        <ul class="legend">
          {SERIES.map(({ name, words }) => (
            <li key={name} data-series={name}>
              {sumOf(hours, name).toLocaleString('en')}
              {isAll ? '' : '+'} {words}
            </li>
          ))}
        </ul>
        {!isAll && <p class="hint">There were more: these are the newest entries.</p>}
      </figcaption>
    </figure>
  )
}

function wordsOf(hours: readonly Hour[], isAll: boolean): string {
  const [deliveries, handled, failed] = SERIES.map(({ name }) => sumOf(hours, name))
  const more = isAll ? '' : ' There were more.'
  const busiest = hours.reduce((before, hour) => (hour.deliveries > before.deliveries ? hour : before))
  const when = new Date(busiest.at).toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })
  const most = deliveries === 0 ? '' : ` Most deliveries in an hour: ${busiest.deliveries}, from ${when}.`
  return `In the last day: ${deliveries} deliveries, ${handled} handled, ${failed} failed.${more}${most}`
}

function sumOf(hours: readonly Hour[], name: (typeof SERIES)[number]['name']): number {
  return hours.reduce((sum, hour) => sum + hour[name], 0)
}
