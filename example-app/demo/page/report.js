/** The result of a visit to the paid page: the report, or the reason for the refusal. */
import { make } from './make.js'

const STATUS_WORDS = { 200: 'OK', 401: 'Unauthorized', 402: 'Payment Required', 503: 'Service Unavailable' }

const place = document.getElementById('report')

export function clearReport() {
  place.replaceChildren()
}

/** The reply of the gate, by the answer that the page shows. */
const REPLIES = { yes: 200, no: 402, none: 402, waiting: 503, starting: 0, stopped: 0 }

/** Shows nothing if the answer has changed since. `announce` passes the reply to screen readers. */
export function showReport({ status, body }, answer, announce) {
  if (REPLIES[answer] !== status) return
  const line = make('p', 'request')
  line.append(
    make('code', '', 'GET /reports'),
    make('strong', '', status ? `${status} ${STATUS_WORDS[status] ?? ''}` : 'no answer'),
  )
  line.dataset.status = status
  announce(`The report answers ${status ? `${status} ${STATUS_WORDS[status] ?? ''}` : 'nothing'}.`)
  place.replaceChildren(line, status === 200 ? chart(body) : make('p', 'detail', detail(status, body)))
}

function detail(status, body) {
  if (!status) return 'The app does not run, so no reply comes.'
  return body?.detail ?? ''
}

function chart({ title, days }) {
  const figure = make('figure', 'chart')
  const most = Math.max(...days.map(({ visitors }) => visitors))
  const bars = make('ol', 'bars')
  for (const { day, visitors } of days) {
    const column = make('li')
    const bar = make('span', 'bar')
    bar.style.blockSize = `${Math.max(4, Math.round((visitors / most) * 100))}%`
    const track = make('span', 'track')
    track.append(bar)
    column.append(make('span', 'count', String(visitors)), track, make('span', 'day', day))
    bars.append(column)
  }
  figure.append(make('figcaption', '', title), bars)
  return figure
}
