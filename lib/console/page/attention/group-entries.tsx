import { useState } from 'preact/hooks'
import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Button, Loading, Trouble, triesOf, When } from '../parts.js'
import { EntryBox } from './entry.js'
import type { Selection } from './replay.js'

/** The entries of a group, page by page. */
export function GroupEntries(props: {
  group: string
  before: string | undefined
  onReplay: ((selection: Selection) => void) | undefined
}) {
  const { group, before, onReplay } = props
  /** The beginnings of the pages so far, apart from the first. */
  const [pages, setPages] = useState<string[]>([])
  const [opened, setOpened] = useState<string>()
  const from = pages.at(-1)
  const { data, error, isLoading } = useLoad(
    (signal) => read('group', { key: group, before, from }, signal),
    [group, before, from],
  )
  const next = data?.next
  return (
    <div class="entries" aria-busy={isLoading}>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data?.entries.length === 0 && <p class="empty">None among these entries.</p>}
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
        {pages.length > 0 && <Button onClick={() => setPages(pages.slice(0, -1))}>Newer entries</Button>}
        {next && <Button onClick={() => setPages([...pages, next])}>Older entries</Button>}
      </div>
      {opened !== undefined && <EntryBox id={opened} onClose={() => setOpened(undefined)} />}
    </div>
  )
}
