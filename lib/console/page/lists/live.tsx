import { useRef, useState } from 'preact/hooks'
import type { EntryRow } from '../../protocol/shapes.js'
import { EntryBox } from '../attention/entry.js'
import { nameOf, toneOfStatus } from '../attention/names.js'
import { read } from '../calls.js'
import { placeOf, usePolling } from '../hooks.js'
import { Badge, Button, Loading, Trouble, When } from '../parts.js'

const EVERY_MS = 2_000
/** Limit of rows. Older ones are removed from the page, not from the journal. */
const MAX_ROWS = 200

/** New entries as they arrive. After a pause it continues where it was paused. */
export function Live(_: { rest: string[] }) {
  const [rows, setRows] = useState<EntryRow[]>([])
  const [isAnswered, setAnswered] = useState(false)
  const [isOn, setOn] = useState(true)
  const [hasGap, setGap] = useState(false)
  const [error, setError] = useState<string>()
  const [opened, setOpened] = useState<string>()
  const last = useRef<string | null>(null)

  async function poll() {
    try {
      const reply = await read('live', { after: last.current ?? undefined })
      const isMore = last.current !== null && reply.hasGap
      last.current = reply.last ?? last.current
      setError(undefined)
      setAnswered(true)
      setGap(isMore)
      setRows((shown) => (isMore ? reply.entries : merged(reply.entries, shown)).slice(0, MAX_ROWS))
    } catch (problem) {
      setError((problem as Error).message)
    }
  }
  usePolling(poll, EVERY_MS, isOn)

  return (
    <section class="card" aria-labelledby="live-now">
      <div class="head">
        <h2 id="live-now">New entries</h2>
        <p class="live" data-live={isOn && !error ? 'yes' : 'no'}>
          {error ? 'Not connected' : isOn ? 'Live' : 'Paused'}
        </p>
        <Button onClick={() => setOn(!isOn)}>{isOn ? 'Pause' : 'Continue'}</Button>
      </div>
      <Trouble error={error} />
      {hasGap && <p class="hint">Too many entries arrived at once, so some are not shown.</p>}
      {!isAnswered && !error && <Loading />}
      {isAnswered && rows.length === 0 && <p class="empty">Nothing yet.</p>}
      <ol class="timeline" id="live">
        {rows.map((row) => (
          <li key={row.id} data-tone={toneOfStatus(row.status)}>
            <When at={row.receivedAt} />
            <span class="happened">
              <button type="button" class="link" onClick={() => setOpened(row.id)}>
                {nameOf(row)}
              </button>{' '}
              {row.business_uid !== null && (
                <a href={placeOf('business', row.business_uid)}>{row.business_uid}</a>
              )}{' '}
              <Badge tone={toneOfStatus(row.status)}>{row.status}</Badge>
              {row.error && <span class="trouble">{row.error}</span>}
            </span>
          </li>
        ))}
      </ol>
      {opened !== undefined && <EntryBox id={opened} onClose={() => setOpened(undefined)} />}
    </section>
  )
}

/** The fresh rows, then the earlier ones. A row in both has its new status. */
function merged(fresh: readonly EntryRow[], shown: readonly EntryRow[]): EntryRow[] {
  const ids = new Set(fresh.map(({ id }) => id))
  return [...fresh, ...shown.filter(({ id }) => !ids.has(id))]
}
