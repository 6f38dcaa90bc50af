import { useEffect, useState } from 'preact/hooks'
import type { HistoryItem } from '../../../index.js'
import { EntryBox } from '../attention/entry.js'
import { read } from '../calls.js'
import { useAct } from '../hooks.js'
import { Button, Loading, Trouble, triesOf, When } from '../parts.js'

/** The history of a business, newest first: deliveries, changes, their outcomes, and actions of people. */
export function Timeline({ business_uid }: { business_uid: string }) {
  const [items, setItems] = useState<HistoryItem[]>()
  const [before, setBefore] = useState<string | null>(null)
  const [opened, setOpened] = useState<string>()
  const { isBusy, error, run } = useAct()

  async function more(from?: string) {
    const page = await run(() => read('history', { business_uid, before: from }))
    if (!page) return
    setItems((shown = []) => (from === undefined ? page.items : [...shown, ...page.items]))
    setBefore(page.before)
  }
  useEffect(() => {
    more()
  }, [business_uid])

  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      {!items && !error && <Loading />}
      {items?.length === 0 && (
        <p class="empty">Nothing is recorded of this business. An unrecognised delivery belongs to none.</p>
      )}
      <ol class="timeline">
        {items?.map((item) => {
          const { text, tone } = sentenceOf(item)
          return (
            <li key={item.id} data-tone={tone}>
              <When at={item.at} />
              <button type="button" class="link" onClick={() => setOpened(item.entryId)}>
                {text}
              </button>
            </li>
          )
        })}
      </ol>
      {before !== null && (
        <Button isBusy={isBusy} onClick={() => more(before)}>
          Show older
        </Button>
      )}
      <Trouble error={error} />
      {opened !== undefined && <EntryBox id={opened} onClose={() => setOpened(undefined)} />}
    </section>
  )
}

function sentenceOf(item: HistoryItem): { text: string; tone: 'yes' | 'no' | 'wait' | 'plain' } {
  const waits = 'waiting' in item && item.waiting ? ', waits for a handler of the app' : ''
  if (item.kind === 'delivery') return { text: `Delivery ${item.name}${waits}`, tone: 'plain' }
  if (item.kind === 'change') {
    const to = item.to ?? item.gone ?? 'gone'
    const text = item.from === null ? `First read: ${to}` : `Changed from ${item.from} to ${to}`
    const { entitledAfter, cause } = item
    const answer =
      entitledAfter === null ? 'access not known' : entitledAfter ? 'gives access' : 'gives no access'
    return {
      text: `${text}: ${answer} (cause: ${cause})${waits}`,
      tone: entitledAfter === null ? 'wait' : entitledAfter ? 'yes' : 'no',
    }
  }
  if (item.kind === 'action') {
    const why = item.reason ? `: ${item.reason}` : ''
    const about = item.subscription_uid === null ? '' : ` (${item.subscription_uid})`
    return { text: `${item.action} by ${item.actor ?? 'an unknown person'}${why}${about}`, tone: 'plain' }
  }
  const of = { change: 'Change', entitlement: 'Change of access', delivery: item.name || 'Delivery' }[item.of]
  const error = item.error === null ? '' : `: ${item.error}`
  if (item.outcome === 'done') return { text: `${of} handled by the app`, tone: 'plain' }
  if (item.outcome === 'unhandled')
    return { text: `No handler of the app for the ${of.toLowerCase()}`, tone: 'plain' }
  if (item.outcome === 'waiting') return { text: `${of} waits for a handler of the app`, tone: 'wait' }
  if (item.outcome === 'dead')
    return { text: `${of} dead after ${triesOf(item.attempts)}${error}`, tone: 'no' }
  return { text: `${of} will be tried again, ${triesOf(item.attempts)} so far${error}`, tone: 'wait' }
}
