import { useContext, useState } from 'preact/hooks'
import type { EntryRow } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Ago, Badge, Box, Button, Facts, Json, Lines, Loading, Trouble, Uid, When } from '../parts.js'
import { SessionContext, useMay } from '../session.js'
import { nameOf, statusOf, toneOfStatus } from './names.js'
import { Outcome } from './outcome.js'
import { Replay } from './replay.js'

/** One journal entry, in a dialog. */
export function EntryBox({ id, onClose }: { id: string; onClose: () => void }) {
  const { data: entry, error, reload } = useLoad((signal) => read('entry', { id }, signal), [id])
  const [isReplaying, setReplaying] = useState(false)
  const [replays, setReplays] = useState(0)
  const mayReplay = useMay('replay') && entry !== undefined && entry.kind !== 'action'
  return (
    <Box title="Journal entry" onClose={onClose}>
      <Trouble error={error} />
      {!entry && !error && <Loading />}
      {entry && (
        <>
          <p class="row-head">
            <Badge tone={toneOfStatus(entry.status)}>{statusOf(entry)}</Badge>{' '}
            <strong>{nameOf(entry)}</strong>
          </p>
          <Facts look="record" of={factsOf(entry, onClose)} />
          {entry.error && (
            <p class="trouble">
              {entry.error}
              <WhereTextIs id={entry.id} />
            </p>
          )}
          {entry.issues && entry.issues.length > 0 && (
            <ul class="issues">
              {entry.issues.map((issue) => (
                <li key={issue}>{issue}</li>
              ))}
            </ul>
          )}
          {entry.stack && (
            <>
              <h3>Stack</h3>
              <Lines label="Stack" text={entry.stack} />
            </>
          )}
          <h3>{entry.isMasked ? 'Shape (only operators see values)' : 'Content'}</h3>
          <Json value={entry.payload} />
        </>
      )}
      {replays > 0 && <Outcome key={replays} ids={[id]} onSettled={reload} />}
      <div class="buttons">
        {mayReplay && <Button onClick={() => setReplaying(true)}>Replay…</Button>}
        <Button onClick={onClose}>Close</Button>
      </div>
      {isReplaying && (
        <Replay
          selection={{ entryId: id }}
          onClose={() => setReplaying(false)}
          onDone={() => {
            setReplays(replays + 1)
            reload()
          }}
        />
      )}
    </Box>
  )
}

/** Support sees the class of an error, and by which id an operator finds its text. */
export function WhereTextIs({ id }: { id: string }) {
  if (useContext(SessionContext)?.person.role === 'operator') return null
  return (
    <span>
      {' '}
      An operator finds the text of the error by the id <Uid>{id}</Uid>.
    </span>
  )
}

function factsOf(entry: EntryRow, onClose: () => void) {
  const { id, receivedAt, business_uid, attempts, status, dueAt } = entry
  const business = business_uid !== null && (
    <a href={placeOf('business', business_uid)} onClick={onClose}>
      {business_uid}
    </a>
  )
  return [
    ['Id', <Uid>{id}</Uid>],
    ['Received', <When at={receivedAt} />],
    ...(business ? [['Business', business] as const] : []),
    ['Tries', attempts],
    ...(status === 'pending' && dueAt !== null ? [['Next try', <Ago at={dueAt} />] as const] : []),
  ] as const
}
