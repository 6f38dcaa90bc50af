import { useState } from 'preact/hooks'
import { read, search } from '../calls.js'
import { goTo, useAct, useLoad } from '../hooks.js'
import { Browse } from '../lists/browse.js'
import { Subscriptions } from '../lists/subscriptions.js'
import { Button, Field, Form, Trouble } from '../parts.js'
import { BusinessActions } from './business-actions.js'
import { Timeline } from './timeline.js'
import { Verdict } from './verdict.js'

/** The start page: a search, then all about one business. `rest`: its identifier, and the subscription that was found. */
export function Business({ rest: [business_uid, subscription_uid] }: { rest: string[] }) {
  return (
    <>
      <Search />
      {business_uid === undefined ? (
        <Browse />
      ) : (
        <OneBusiness key={business_uid} business_uid={business_uid} searched={subscription_uid} />
      )}
    </>
  )
}

function Search() {
  const [pasted, setPasted] = useState('')
  const { isBusy, error, run } = useAct()
  const [note, setNote] = useState('')

  async function find() {
    setNote('')
    const found = await run(() => search(pasted))
    if (!found) return
    const { business_uid, subscription_uid } = found
    if (business_uid === null)
      setNote('This text contains no identifier. Paste the identifier of a business or a subscription.')
    else goTo('business', business_uid, ...(subscription_uid === null ? [] : [subscription_uid]))
  }

  return (
    <search>
      <Form class="search" isBusy={isBusy} onSubmit={find}>
        <Field
          label="Business or subscription"
          hint="Paste an identifier, an address, or a whole delivery."
          value={pasted}
          onInput={setPasted}
          hasFocus
        />
        <Button type="submit" isPrimary isBusy={isBusy}>
          Find
        </Button>
        <Trouble error={error ?? (note || undefined)} />
      </Form>
    </search>
  )
}

function OneBusiness({ business_uid, searched }: { business_uid: string; searched: string | undefined }) {
  const loaded = useLoad((signal) => read('business', { business_uid }, signal), [business_uid])
  const [turn, setTurn] = useState(0)
  const { data, error } = loaded
  return (
    <>
      <Trouble error={error} />
      {data && (
        <div class="columns">
          <div>
            <Verdict business={data}>
              <BusinessActions
                business={data}
                onAnswer={(fresh) => {
                  loaded.set(fresh)
                  setTurn((before) => before + 1)
                }}
              />
            </Verdict>
            <Subscriptions business={data} searched={searched} />
          </div>
          <Timeline key={turn} business_uid={business_uid} />
        </div>
      )}
    </>
  )
}
