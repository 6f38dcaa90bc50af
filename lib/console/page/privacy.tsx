import { useState } from 'preact/hooks'
import { act, exportFile } from './calls.js'
import { useAct } from './hooks.js'
import { Button, Field, Form, Trouble } from './parts.js'

/** Exports the stored data of a business as a file, and erases it. */
export function Privacy(_: { rest: string[] }) {
  return (
    <>
      <BusinessForm title="Export" noun="export" onSubmit={save}>
        Saves the stored data of a business as a file: its subscriptions, and the journal entries that name
        it.
      </BusinessForm>
      <BusinessForm title="Erase" noun="erasure" isFinal onSubmit={erase}>
        Deletes the stored data of a business. It cannot be undone. Later deliveries store new data. The
        exports, replays and erasures that people did stay in the journal, with time, name and reason; they
        have a hash in place of the identifier.
      </BusinessForm>
    </>
  )
}

interface Given {
  business_uid: string
  /** The identifier, typed again. */
  typed: string
  reason: string
}

async function save({ business_uid, reason }: Given): Promise<string> {
  const { file, fileName } = await exportFile({ business_uid, reason })
  const address = URL.createObjectURL(file)
  Object.assign(document.createElement('a'), { href: address, download: fileName }).click()
  // Some browsers read the address only after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
  return `The file ${fileName} is ready.`
}

async function erase(given: Given): Promise<string> {
  const { rows, business_uid } = await act('erase', given)
  return `Erased ${rows} rows of ${business_uid}.`
}

/** A form about one business. If the action is final, its identifier must be typed twice, and success clears the form. */
function BusinessForm(props: {
  title: string
  noun: string
  isFinal?: boolean
  /** Returns the note to show. */
  onSubmit: (given: Given) => Promise<string>
  children: string
}) {
  const { title, noun, isFinal = false, onSubmit, children } = props
  const [business, setBusiness] = useState('')
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const [note, setNote] = useState('')
  const { isBusy, error, run } = useAct()
  const id = title.toLowerCase()
  const business_uid = business.trim()
  const isConfirmed = !isFinal || (business_uid !== '' && typed.trim() === business_uid)

  async function submit() {
    setNote('')
    const result = await run(() => onSubmit({ business_uid, typed, reason }))
    if (result === undefined) return
    setNote(result)
    if (isFinal) for (const set of [setBusiness, setTyped, setReason]) set('')
  }

  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p>{children}</p>
      <Form isBusy={isBusy || !isConfirmed} onSubmit={submit}>
        <Field label={`Business to ${id}`} value={business} onInput={setBusiness} isRequired />
        {isFinal && <Field label="Type its identifier again" value={typed} onInput={setTyped} isRequired />}
        <Field
          label={`Reason of the ${noun} (recorded with your name)`}
          value={reason}
          onInput={setReason}
          isRequired
        />
        <Button type="submit" isPrimary={!isFinal} isDanger={isFinal} isBusy={isBusy} disabled={!isConfirmed}>
          {title}
        </Button>
        <p class="note" role="status">
          {note}
        </p>
        <Trouble error={error} />
      </Form>
    </section>
  )
}
