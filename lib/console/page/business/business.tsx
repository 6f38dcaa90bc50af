import { useState } from 'preact/hooks'
import type { BusinessReply, Found, Replies } from '../../protocol/shapes.js'
import { read, search } from '../calls.js'
import { goTo, placeOf, useAct, useLoad, usePolling } from '../hooks.js'
import { Browse } from '../lists/browse.js'
import { Subscriptions } from '../lists/subscriptions.js'
import { Button, Field, Form, Loading, Trouble, Uid } from '../parts.js'
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
  const [unknown, setUnknown] = useState<Replies['search']>()

  async function find() {
    setNote('')
    setUnknown(undefined)
    const found = await run(() => search(pasted))
    if (!found) return
    const isInDoubt = found.hasLookupFailed && !found.isKnown
    if (isInDoubt) setNote('The search of your app for names failed. Try again, or paste an identifier.')
    else if (found.business_uid === null)
      setNote('This text contains no identifier. Paste the identifier of a business or a subscription.')
    if (found.near.length > 0 || isInDoubt) setUnknown(found)
    else if (found.business_uid !== null)
      goTo(...placeOfFound({ ...found, business_uid: found.business_uid }))
  }

  return (
    <search>
      <Form class="search" isBusy={isBusy} onSubmit={find}>
        <Field
          label="Business or subscription"
          hint="Paste an identifier or its beginning, an address, or a whole delivery."
          value={pasted}
          onInput={setPasted}
          hasFocus
        />
        <Button type="submit" isPrimary isBusy={isBusy}>
          Find
        </Button>
        <Trouble error={error ?? (note || undefined)} />
      </Form>
      {unknown?.business_uid != null && (
        <Suggestions
          asked={unknown.business_uid}
          near={unknown.near}
          isKnown={unknown.isKnown}
          onChosen={() => setUnknown(undefined)}
        />
      )}
    </search>
  )
}

/** Several have the identifier, or nothing is stored under it, but something is under similar ones. */
function Suggestions(props: { asked: string; near: Found[]; isKnown: boolean; onChosen: () => void }) {
  const { asked, near, isKnown, onChosen } = props
  return (
    <section class="card" aria-labelledby="near" role="status">
      <h2 id="near">{near.length > 0 ? 'Did you mean' : 'Nothing found'}</h2>
      <ul class="rows">
        {near.map(({ business_uid, subscription_uid }) => (
          <li key={`${business_uid} ${subscription_uid}`}>
            <a href={placeOf(...placeOfFound({ business_uid, subscription_uid }))} onClick={onChosen}>
              <Uid>{subscription_uid ?? business_uid}</Uid>
            </a>
            {subscription_uid === null ? (
              ' (business)'
            ) : (
              <>
                {' '}
                of the business <Uid>{business_uid}</Uid>
              </>
            )}
          </li>
        ))}
      </ul>
      {!isKnown && (
        <p>
          Nothing is stored for <Uid>{asked}</Uid>.{' '}
          <a href={placeOf('business', asked)} onClick={onChosen}>
            Open it all the same
          </a>
        </p>
      )}
    </section>
  )
}

function placeOfFound({ business_uid, subscription_uid }: Found): string[] {
  return ['business', business_uid, ...(subscription_uid === null ? [] : [subscription_uid])]
}

function OneBusiness({ business_uid, searched }: { business_uid: string; searched: string | undefined }) {
  const loaded = useLoad((signal) => read('business', { business_uid }, signal), [business_uid])
  const [turn, setTurn] = useState(0)
  const [looks, setLooks] = useState(0)
  const { data, error } = loaded
  const show = (fresh: BusinessReply) => {
    loaded.set(fresh)
    setTurn((before) => before + 1)
    setLooks(0)
  }
  // What the app did meanwhile: the timeline is loaded again only with another step, because it may be scrolled.
  async function look() {
    setLooks((before) => before + 1)
    const fresh = await read('business', { business_uid }).catch(() => undefined)
    if (fresh && data && stepIn(fresh) !== stepIn(data)) show(fresh)
  }
  usePolling(look, LOOK_EVERY_MS, data !== undefined && looks < MOST_LOOKS)
  return (
    <>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data && (
        <div class="columns">
          <div>
            <Verdict business={data}>
              <BusinessActions business={data} onAnswer={show} />
            </Verdict>
            <Subscriptions business={data} searched={searched} />
          </div>
          <Timeline key={turn} business_uid={business_uid} />
        </div>
      )}
    </>
  )
}

const LOOK_EVERY_MS = 5_000
/** A page that stays open does not ask for ever: the step of a business with very many entries takes long to find. */
const MOST_LOOKS = 60

/** What a person acts on. The explanation also has ages, which always differ. */
const stepIn = ({ decision, step }: BusinessReply) =>
  JSON.stringify([decision.entitled, decision.reason, step])
