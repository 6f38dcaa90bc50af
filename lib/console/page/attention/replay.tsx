import { useState } from 'preact/hooks'
import type { Inputs } from '../../protocol/inputs.js'
import { act, read } from '../calls.js'
import { useAct, useLoad } from '../hooks.js'
import { Box, Button, Field, Form, Loading, Trouble, When } from '../parts.js'
import { nameOf } from './names.js'

export type Selection = Inputs['previewReplay']

/** Shows the effect of a replay, then runs it. */
export function Replay(props: {
  selection: Selection
  onClose: () => void
  /** `ids`: the replayed entries. */
  onDone: (summary: string, ids: readonly string[]) => void
}) {
  const { selection, onClose, onDone } = props
  const { data: preview, error: failed } = useLoad((signal) => read('previewReplay', selection, signal), [])
  const [reason, setReason] = useState('')
  const { isBusy, error, run } = useAct()
  const isOne = selection.entryId !== undefined

  async function replay() {
    const result = await run(() => act('replay', { ...selection, reason }))
    if (!result) return
    const { replayed, left, hasOlder, ids } = result
    const summary = replayed === 1 ? '1 entry was replayed.' : `${replayed} entries were replayed.`
    const rest = left > 0 ? ` ${left} remain: replay again for those.` : ''
    onDone(`${summary}${rest}${hasOlder ? ' Older entries were not examined: reload for those.' : ''}`, ids)
    onClose()
  }

  return (
    <Box title="Replay" onClose={onClose}>
      <Form isBusy={isBusy} onSubmit={replay}>
        <Trouble error={failed} />
        {!preview && !failed && <Loading />}
        {preview && (
          <>
            <p id="preview">{preview.effect}</p>
            {preview.takes > 1 && preview.oldest && preview.newest && (
              <p class="row-words">
                From <When at={preview.oldest} /> to <When at={preview.newest} />, of {preview.businesses}{' '}
                {preview.businesses === 1 ? 'business' : 'businesses'}.
              </p>
            )}
            <ul class="sample">
              {preview.sample.map((row) => (
                <li key={row.id}>
                  <When at={row.receivedAt} /> {nameOf(row)} {row.business_uid}
                  {(row.kind === 'change' || row.kind === 'entitlement') &&
                    `, may use the app now: ${row.entitled === null ? 'not known' : row.entitled ? 'yes' : 'no'}`}
                </li>
              ))}
              {preview.takes > preview.sample.length && (
                <li>and {preview.takes - preview.sample.length} more</li>
              )}
            </ul>
          </>
        )}
        <Field
          label={isOne ? 'Reason (optional, recorded with your name)' : 'Reason (recorded with your name)'}
          value={reason}
          onInput={setReason}
          isRequired={!isOne}
          hasFocus
        />
        <Trouble error={error} />
        <div class="buttons">
          <Button type="submit" isPrimary isBusy={isBusy} disabled={!preview || preview.takes === 0}>
            {preview && preview.takes !== 1 ? `Replay ${preview.takes} entries` : 'Replay 1 entry'}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </Form>
    </Box>
  )
}
