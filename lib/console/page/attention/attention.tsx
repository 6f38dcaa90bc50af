import { useState } from 'preact/hooks'
import type { AttentionGroup, AttentionStatus } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { Webhooks } from '../health/webhooks.js'
import { goTo, useLoad } from '../hooks.js'
import { Ago, Badge, Button, Loading, Trouble } from '../parts.js'
import { useMay } from '../session.js'
import { EntryBox, WhereTextIs } from './entry.js'
import { GroupEntries } from './group-entries.js'
import { nameOf } from './names.js'
import { Outcome } from './outcome.js'
import { Replay, type Selection } from './replay.js'
import { Unrecognised } from './unrecognised.js'

/**
 * Failed entries, grouped by handlers and error; unrecognised deliveries; other items and wrong secrets. `rest`: an entry to
 * open, so that its address can be sent to somebody.
 */
export function Attention({ rest: [opened] }: { rest: string[] }) {
  /** Where older entries of a status begin; without it, the newest of each status are shown. */
  const [place, setPlace] = useState<Place>({})
  const { data, error, isLoading, reload } = useLoad((signal) => read('attention', place, signal), [place])
  const [selection, setSelection] = useState<Selection>()
  const [replayed, setReplayed] = useState<{ summary: string; ids: readonly string[]; turn: number }>()
  const mayReplay = useMay('replay')

  return (
    <>
      <section class="card" aria-labelledby="failed" aria-busy={isLoading}>
        <div class="head">
          <h2 id="failed">Handlers that failed</h2>
          <Button onClick={reload} isBusy={isLoading}>
            Reload
          </Button>
        </div>
        <Trouble error={error} />
        <p class="note" role="status">
          {replayed?.summary}
        </p>
        {replayed && <Outcome key={replayed.turn} ids={replayed.ids} onSettled={reload} />}
        {!data && !error && <Loading />}
        {data && data.groups.length === 0 && (
          <p class="empty">
            {place.status ? 'There are no older ones.' : 'There are no dead and no retrying entries.'}
          </p>
        )}
        {data && !data.isAll && (
          <p class="hint">
            There are more: this list covers the newest {COVERED} of each status, or as many older ones.
          </p>
        )}
        <div class="buttons">
          {mayReplay &&
            STATUSES.map(
              (status) =>
                data &&
                data.counts[status] > 0 && (
                  <Button key={status} onClick={() => setSelection({ status, before: place.before })}>
                    {replayAllLabel(status, data.counts[status])}
                  </Button>
                ),
            )}
        </div>
        <ul class="rows">
          {data?.groups.map((group) => (
            <Group key={group.key} group={group} mayReplay={mayReplay} onReplay={setSelection} />
          ))}
        </ul>
        <div class="buttons">
          {place.status && <Button onClick={() => setPlace({})}>Newest entries</Button>}
          {STATUSES.map((status) => {
            const before = data?.next[status]
            return (
              before && (
                <Button
                  key={status}
                  onClick={() => setPlace({ status, before })}
                >{`Older ${status} entries`}</Button>
              )
            )
          })}
        </div>
      </section>
      {selection && (
        <Replay
          selection={selection}
          onClose={() => setSelection(undefined)}
          onDone={(summary, ids) => {
            setReplayed((before) => ({ summary, ids, turn: (before?.turn ?? 0) + 1 }))
            reload()
          }}
        />
      )}
      {opened !== undefined && <EntryBox key={opened} id={opened} onClose={() => goTo('attention')} />}
      <Unrecognised />
      <Webhooks />
    </>
  )
}

const STATUSES: readonly AttentionStatus[] = ['dead', 'retrying']
/** `MAX_EXAMINED` of the server, in words. */
const COVERED = '2,000'

interface Place {
  status?: AttentionStatus
  before?: string
}

function replayAllLabel(status: AttentionStatus, count: number): string {
  return count === 1 ? `Replay 1 ${status} entry…` : `Replay all ${count} ${status} entries…`
}

function Group(props: {
  group: AttentionGroup
  mayReplay: boolean
  onReplay: (selection: Selection) => void
}) {
  const { group, mayReplay, onReplay } = props
  const { key, before, status, error, count, oldest, newest, entryId } = group
  const window = before === null ? {} : { before }
  const [isOpen, setOpen] = useState(false)
  const name = nameOf(group)
  return (
    <li>
      <p class="row-head">
        <Badge tone={status === 'dead' ? 'no' : 'wait'}>{status}</Badge>
        <strong>{name}</strong>
        <span class="count">
          {count} {count === 1 ? 'entry' : 'entries'}
        </span>
      </p>
      <p class="trouble">
        {error}
        <WhereTextIs id={entryId} />
      </p>
      <p class="row-words">
        First <Ago at={oldest} />, last <Ago at={newest} />
      </p>
      <div class="buttons">
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide the entries' : 'Show the entries'}
        </button>
        {mayReplay && (
          <Button onClick={() => onReplay({ group: key, ...window })} label={`Replay the group… of ${name}`}>
            Replay the group…
          </Button>
        )}
      </div>
      {isOpen && (
        <GroupEntries group={key} before={before ?? undefined} onReplay={mayReplay ? onReplay : undefined} />
      )}
    </li>
  )
}
