import { useState } from 'preact/hooks'
import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Ago, Badge, Button, Loading, Trouble, Uid } from '../parts.js'
import { toneOf } from './subscriptions.js'

/** The reasons to choose from, with their labels. */
const REASONS: readonly [string, string][] = [
  ['', 'all'],
  ['not_purchased', 'not purchased'],
  ['denied_by_rule', 'denied by the rule of the app'],
  ['entitled_when_failed', 'the rule of the app fails'],
  ['not_read_yet', 'not read yet'],
  ['stale', 'not confirmed for too long'],
  ['missing', 'missing on the platform'],
  ['unreadable', 'refused by the platform'],
  ['revoked', 'uninstalled'],
  ['ended', 'ended'],
  ['other_app', 'for another item'],
  ['purchased', 'purchased'],
]

/** The list of all subscriptions, page by page. */
export function Browse() {
  const [reason, setReason] = useState('')
  const [pages, setPages] = useState<string[]>([])
  const from = pages.at(-1)
  const { data, error } = useLoad(
    (signal) => read('subscriptions', { reason, after: from }, signal),
    [reason, from],
  )
  const { subscriptions: rows = [], examined = 0, after = null } = data ?? {}

  return (
    <section class="card" aria-labelledby="browse">
      <h2 id="browse">Subscriptions</h2>
      <div class="field">
        <label for="browse-reason">Show</label>
        <select
          id="browse-reason"
          value={reason}
          onChange={({ currentTarget }) => {
            setPages([])
            setReason(currentTarget.value)
          }}
        >
          {REASONS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <Trouble error={error} />
      {!data && !error && <Loading />}
      {data && rows.length === 0 && after === null && <p class="empty">None.</p>}
      {rows.length < examined && after !== null && (
        <p class="hint">
          {rows.length === 0 ? 'None' : rows.length} of these {examined} subscriptions. The next page has
          others.
        </p>
      )}
      <ul class="rows" id="browsed">
        {rows.map(({ subscription_uid, business_uid, purchase_state, gone, reason: why, readAt }) => (
          <li key={subscription_uid}>
            <p class="row-head">
              <Badge tone={toneOf(why)}>{purchase_state ?? gone ?? 'not read yet'}</Badge>
              <a href={placeOf('business', business_uid, subscription_uid)}>
                <Uid>{subscription_uid}</Uid>
              </a>
            </p>
            <p class="row-words">
              Business <Uid>{business_uid}</Uid>, confirmed <Ago at={readAt} />
            </p>
          </li>
        ))}
      </ul>
      <div class="buttons">
        {pages.length > 0 && <Button onClick={() => setPages(pages.slice(0, -1))}>Previous page</Button>}
        {after !== null && <Button onClick={() => setPages([...pages, after])}>Next page</Button>}
      </div>
    </section>
  )
}
