import { useState } from 'preact/hooks'
import type { BusinessReply, SubscriptionRow } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { useAct } from '../hooks.js'
import { Ago, Badge, Button, Facts, Trouble, Uid } from '../parts.js'

/** The subscriptions of a business, as last read from the platform. */
export function Subscriptions({
  business,
  searched,
}: {
  business: BusinessReply
  searched: string | undefined
}) {
  const { business_uid } = business
  const [more, setMore] = useState<{ of: BusinessReply; rows: SubscriptionRow[]; after: string | null }>()
  const { isBusy, error, run } = useAct()
  const added = more?.of === business ? more : undefined
  const rows = [...(business.subscriptions ?? []), ...(added?.rows ?? [])]
  const after = added ? added.after : business.after

  async function showMore() {
    const page = await run(() => read('business', { business_uid, after: after ?? undefined }))
    if (page)
      setMore({
        of: business,
        rows: [...(added?.rows ?? []), ...(page.subscriptions ?? [])],
        after: page.after,
      })
  }

  return (
    <section class="card" aria-labelledby="last-read">
      <h2 id="last-read">Subscriptions as last read</h2>
      {business.subscriptions === null && <Trouble error="They cannot be read now." />}
      {business.subscriptions?.length === 0 && (
        <p class="empty">No subscription of this business is stored.</p>
      )}
      <ul class="rows">
        {rows.map((row) => (
          <Subscription key={row.subscription_uid} row={row} isSearched={row.subscription_uid === searched} />
        ))}
      </ul>
      {after !== null && (
        <Button isBusy={isBusy} onClick={showMore}>
          Show more subscriptions
        </Button>
      )}
      <Trouble error={error} />
    </section>
  )
}

function Subscription({ row, isSearched }: { row: SubscriptionRow; isSearched: boolean }) {
  const {
    subscription_uid,
    purchasable_uid,
    purchase_state,
    reason,
    record,
    readAt,
    requestedAt,
    trouble,
    pending,
    gone,
  } = row
  return (
    <li class={isSearched ? 'searched' : undefined}>
      <p class="row-head">
        <Badge tone={toneOf(reason)}>{purchase_state ?? gone ?? 'not read yet'}</Badge>
        <Uid>{subscription_uid}</Uid>
        {isSearched && <span class="mark">your search</span>}
      </p>
      <p class="row-words">
        {readAt === null ? 'No read has shown it so far' : 'Confirmed '}
        {readAt !== null && <Ago at={readAt} />}
        {purchasable_uid !== null && (
          <>
            , item <Uid>{purchasable_uid}</Uid>
          </>
        )}
        {pending && (
          <>
            , read requested <Ago at={requestedAt} />
          </>
        )}
      </p>
      {trouble && <p class="trouble">The last read failed: {trouble}.</p>}
      {record && (
        <details>
          <summary>Record</summary>
          <Facts
            look="record"
            of={Object.entries(record).map(([field, value]) => [
              field,
              typeof value === 'string' ? value : JSON.stringify(value),
            ])}
          />
        </details>
      )}
    </li>
  )
}

export function toneOf(reason: string): 'yes' | 'no' | 'wait' {
  if (reason === 'purchased') return 'yes'
  return reason === 'not_read_yet' || reason === 'stale' ? 'wait' : 'no'
}
