import { useState } from 'preact/hooks'
import type { Replies } from '../protocol/shapes.js'
import { act, exportFile, read } from './calls.js'
import { useAct } from './hooks.js'
import { Button, Field, Form, Trouble, Uid } from './parts.js'

/** Shows what is stored of a business, exports it as a file, and erases it. */
export function Privacy(_: { rest: string[] }) {
  const [business, setBusiness] = useState('')
  const [stored, setStored] = useState<Replies['stored']>()
  const [note, setNote] = useState('')
  /** It is kept: a request often needs an export and an erasure. */
  const [reason, setReason] = useState('')
  const { isBusy, error, run } = useAct()

  async function look() {
    setNote('')
    const found = await run(() => read('stored', { business_uid: business.trim() }))
    setStored(found)
    if (found?.isStored === false) setNote('Nothing is stored for this business. Check the identifier.')
  }

  return (
    <>
      <section class="card" aria-labelledby="whose">
        <h2 id="whose">Data of a business</h2>
        <p>See first what is stored. Then export it as a file, or erase it.</p>
        <Form isBusy={isBusy} onSubmit={look}>
          <Field
            label="Business"
            value={business}
            onInput={(value) => {
              setBusiness(value)
              setStored(undefined)
            }}
            isRequired
          />
          <Button type="submit" isPrimary isBusy={isBusy}>
            {isBusy ? 'Looking…' : 'Show what is stored'}
          </Button>
          <p class="note" role="status">
            {note}
          </p>
          <Trouble error={error} />
        </Form>
      </section>
      {stored?.isStored && (
        <Stored
          key={stored.business_uid}
          stored={stored}
          reason={reason}
          onReason={setReason}
          onErased={(words) => {
            setStored(undefined)
            setBusiness('')
            setNote(words)
          }}
        />
      )}
    </>
  )
}

function Stored(props: {
  stored: Replies['stored']
  reason: string
  onReason: (reason: string) => void
  onErased: (words: string) => void
}) {
  const { stored, reason, onReason, onErased } = props
  const { business_uid, sentences } = stored
  const [typed, setTyped] = useState('')
  const [note, setNote] = useState('')
  const exporting = useAct()
  const erasing = useAct()
  const hasReason = reason.trim() !== ''
  const mayErase = hasReason && typed.trim() === business_uid

  async function save() {
    setNote('')
    const fileName = await exporting.run(() => saved(business_uid, reason))
    if (fileName !== undefined) setNote(`The file ${fileName} is ready.`)
  }

  async function erase() {
    const erased = await erasing.run(() => act('erase', { business_uid, typed, reason }))
    if (erased) onErased(`Erased ${erased.rows} rows of ${business_uid}.`)
  }

  return (
    <section class="card" aria-labelledby="stored">
      <h2 id="stored">
        Stored of <Uid>{business_uid}</Uid>
      </h2>
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <Form isBusy={exporting.isBusy || !hasReason} onSubmit={save}>
        <Field label="Reason (recorded with your name)" value={reason} onInput={onReason} isRequired />
        <Button type="submit" isPrimary isBusy={exporting.isBusy} disabled={!hasReason}>
          Export
        </Button>
        <p class="note" role="status">
          {note}
        </p>
        <Trouble error={exporting.error} />
      </Form>
      <h3>Erase</h3>
      <p>
        An erasure cannot be undone. Later deliveries store new data. The exports, replays and erasures that
        people did stay in the journal, with time, name and reason; they have a hash in place of the
        identifier.
      </p>
      <Form isBusy={erasing.isBusy || !mayErase} onSubmit={erase}>
        <Field label="Type its identifier again" value={typed} onInput={setTyped} isRequired />
        <Button type="submit" isDanger isBusy={erasing.isBusy} disabled={!mayErase}>
          Erase
        </Button>
        <Trouble error={erasing.error} />
      </Form>
    </section>
  )
}

/** Saves the file. Returns its name. */
async function saved(business_uid: string, reason: string): Promise<string> {
  const { file, fileName } = await exportFile({ business_uid, reason })
  const address = URL.createObjectURL(file)
  Object.assign(document.createElement('a'), { href: address, download: fileName }).click()
  // Some browsers read the address only after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
  return fileName
}
