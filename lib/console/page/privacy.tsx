import { useState } from 'preact/hooks'
import { act } from './calls.js'
import { useAct } from './hooks.js'
import { Button, Field, Form, Trouble } from './parts.js'

/** Exports the stored data of a business as a file, and erases it. */
export function Privacy(_: { rest: string[] }) {
  return (
    <>
      <Export />
      <Erase />
    </>
  )
}

function Export() {
  const [business_uid, setBusiness] = useState('')
  const [reason, setReason] = useState('')
  const [note, setNote] = useState('')
  const { isBusy, error, run } = useAct()

  async function save() {
    setNote('')
    const result = await run(() => act('export', { business_uid: business_uid.trim(), reason }))
    if (!result) return
    const text = JSON.stringify(result.data, undefined, 2)
    const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
    Object.assign(document.createElement('a'), { href: address, download: result.fileName }).click()
    setTimeout(() => URL.revokeObjectURL(address), 10_000)
    setNote(`The file ${result.fileName} is ready.`)
  }

  return (
    <section class="card" aria-labelledby="export">
      <h2 id="export">Export</h2>
      <p>
        Saves the stored data of a business as a file: its subscriptions, and the journal entries that name
        it.
      </p>
      <Form isBusy={isBusy} onSubmit={save}>
        <Field label="Business to export" value={business_uid} onInput={setBusiness} isRequired />
        <Field
          label="Reason of the export (recorded with your name)"
          value={reason}
          onInput={setReason}
          isRequired
        />
        <Button type="submit" isPrimary isBusy={isBusy}>
          Export
        </Button>
        <p class="note" role="status">
          {note}
        </p>
        <Trouble error={error} />
      </Form>
    </section>
  )
}

function Erase() {
  const [business_uid, setBusiness] = useState('')
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const [note, setNote] = useState('')
  const { isBusy, error, run } = useAct()
  const named = business_uid.trim()
  const isSame = named !== '' && typed.trim() === named

  async function erase() {
    setNote('')
    const result = await run(() => act('erase', { business_uid: named, typed, reason }))
    if (!result) return
    setNote(`Erased ${result.rows} rows of ${result.business_uid}.`)
    setBusiness('')
    setTyped('')
    setReason('')
  }

  return (
    <section class="card" aria-labelledby="erase">
      <h2 id="erase">Erase</h2>
      <p>
        Deletes the stored data of a business. It cannot be undone. Later deliveries store new data. The
        journal records the erasure with the time and your name.
      </p>
      <Form isBusy={isBusy || !isSame} onSubmit={erase}>
        <Field label="Business to erase" value={business_uid} onInput={setBusiness} isRequired />
        <Field label="Type its identifier again" value={typed} onInput={setTyped} isRequired />
        <Field
          label="Reason of the erasure (recorded with your name)"
          value={reason}
          onInput={setReason}
          isRequired
        />
        <Button type="submit" isDanger isBusy={isBusy} disabled={!isSame}>
          Erase
        </Button>
        <p class="note" role="status">
          {note}
        </p>
        <Trouble error={error} />
      </Form>
    </section>
  )
}
