import { useState } from 'preact/hooks'
import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Button, Trouble, triesOf, When } from '../parts.js'
import { EntryBox } from './entry.js'
import type { Selection } from './replay.js'

/** The entries of a group, page by page. */
export function GroupEntries(props: {
  group: string
  onReplay: ((selection: Selection) => void) | undefined
}) {
  const { group, onReplay } = props
  const [from, setFrom] = useState(0)
  const [opened, setOpened] = useState<string>()
  const { data, error, isLoading } = useLoad(
    (signal) => read('group', { key: group, from }, signal),
    [group, from],
  )
  return (
    <div class="entries" aria-busy={isLoading}>
      <Trouble error={error} />
      <ul>
        {data?.entries.map(({ id, receivedAt, business_uid, attempts }) => (
          <li key={id}>
            <When at={receivedAt} />
            <span>
              {business_uid === null ? (
                'no business'
              ) : (
                <a href={placeOf('business', business_uid)}>{business_uid}</a>
              )}
              {`, ${triesOf(attempts)}`}
            </span>
            <span class="buttons">
              <Button onClick={() => setOpened(id)} label={`Open ${id}`}>
                Open
              </Button>
              {onReplay && (
                <Button onClick={() => onReplay({ entryId: id })} label={`Replay… ${id}`}>
                  Replay…
                </Button>
              )}
            </span>
          </li>
        ))}
      </ul>
      <div class="buttons">
        {from > 0 && <Button onClick={() => setFrom(Math.max(0, from - 50))}>Newer entries</Button>}
        {data?.next != null && <Button onClick={() => setFrom(data.next ?? 0)}>Older entries</Button>}
      </div>
      {opened !== undefined && <EntryBox id={opened} onClose={() => setOpened(undefined)} />}
    </div>
  )
}
