import { useContext } from 'preact/hooks'
import type { EntryRow } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Badge, Box, Button, Facts, Json, Lines, Trouble, Uid, When } from '../parts.js'
import { SessionContext } from '../session.js'

/** One journal entry, in a dialog. */
export function EntryBox({ id, onClose }: { id: string; onClose: () => void }) {
  const { data: entry, error } = useLoad((signal) => read('entry', { id }, signal), [id])
  return (
    <Box title="Journal entry" onClose={onClose}>
      <Trouble error={error} />
      {entry && (
        <>
          <p class="row-head">
            <Badge tone={toneOfStatus(entry.status)}>{entry.status}</Badge> <strong>{nameOf(entry)}</strong>
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
      <div class="buttons">
        <Button onClick={onClose}>Close</Button>
      </div>
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

function factsOf({ id, receivedAt, business_uid, attempts }: EntryRow, onClose: () => void) {
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
  ] as const
}

export function nameOf({
  kind,
  name,
  cause,
}: Pick<EntryRow, 'kind' | 'name'> & { cause?: string | null }): string {
  return kind === 'event' || kind === 'action'
    ? name
    : kind === 'unrecognised'
      ? 'unrecognised delivery'
      : `change of ${kind === 'change' ? 'a subscription' : 'the access'}${cause ? ` (cause: ${cause})` : ''}`
}

export function toneOfStatus(status: string): 'yes' | 'no' | 'wait' | 'plain' {
  if (status === 'dead') return 'no'
  return status === 'retrying' || status === 'pending' ? 'wait' : 'plain'
}
