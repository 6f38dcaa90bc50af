import { useState } from 'preact/hooks'
import { read } from '../calls.js'
import { useLoad } from '../hooks.js'
import { Ago, Button, Json, Loading, Trouble } from '../parts.js'
import { EntryBox } from './entry.js'

/** Deliveries that the interface document does not describe, by shape. */
export function Unrecognised() {
  const [before, setBefore] = useState<string>()
  const { data, error, isLoading } = useLoad((signal) => read('shapes', { before }, signal), [before])
  const next = data?.next
  const [opened, setOpened] = useState<string>()
  return (
    <section class="card" aria-labelledby="unrecognised" aria-busy={isLoading}>
      <h2 id="unrecognised">Unrecognised deliveries</h2>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data && data.shapes.length === 0 && <p class="empty">None.</p>}
      {data && !data.isAll && (
        <p class="hint">
          There are more. This list covers{' '}
          {before ? `${data.examined} older ones` : `the newest ${data.examined}`}.
        </p>
      )}
      <ul class="rows">
        {data?.shapes.map(({ event, issues, shape, count, newest, entryId }) => (
          <li key={entryId}>
            <p class="row-head">
              <strong>{event}</strong> <span class="count">{count === 1 ? 'once' : `${count} times`}</span>
            </p>
            <ul class="issues">
              {issues.map((issue) => (
                <li key={issue}>{issue}</li>
              ))}
            </ul>
            <p class="row-words">
              Last <Ago at={newest} />
            </p>
            <details>
              <summary>Shape</summary>
              <Json value={shape} />
            </details>
            <div class="buttons">
              <Button onClick={() => setOpened(entryId)} label={`Open one of ${event}`}>
                Open one
              </Button>
            </div>
          </li>
        ))}
      </ul>
      <div class="buttons">
        {before && <Button onClick={() => setBefore(undefined)}>Newest deliveries</Button>}
        {next && <Button onClick={() => setBefore(next)}>Older deliveries</Button>}
      </div>
      {opened !== undefined && <EntryBox id={opened} onClose={() => setOpened(undefined)} />}
    </section>
  )
}
