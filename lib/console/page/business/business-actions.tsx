import { useState } from 'preact/hooks'
import type { BusinessReply } from '../../protocol/shapes.js'
import { act } from '../calls.js'
import { placeOf, useAct } from '../hooks.js'
import { Button, Trouble } from '../parts.js'
import { Track } from './track.js'

/** The actions for a business. The button of the next step is highlighted. */
export function BusinessActions(props: {
  business: BusinessReply
  onAnswer: (business: BusinessReply) => void
}) {
  const { business, onAnswer } = props
  const { business_uid, step } = business
  const [isTracking, setTracking] = useState(false)
  const [note, setNote] = useState('')
  const { isBusy, error, run } = useAct()

  async function readAgain() {
    setNote('')
    const fresh = await run(() => act('refresh', { business_uid }))
    if (!fresh) return
    onAnswer(fresh)
    const isSame = fresh.decision.reason === business.decision.reason
    setNote(isSame ? 'Read again: the answer has not changed.' : `Read again: ${fresh.headline}.`)
  }

  return (
    <div class="actions">
      <div class="buttons">
        <Button isPrimary={step.action === 'refresh'} isBusy={isBusy} onClick={readAgain}>
          {isBusy ? 'Reading…' : 'Read again'}
        </Button>
        <Button isPrimary={step.action === 'track'} onClick={() => setTracking(true)}>
          Track…
        </Button>
        {step.action === 'health' && <a href={placeOf('health')}>Open Health</a>}
      </div>
      <p class="note" role="status">
        {note}
      </p>
      <Trouble error={error} />
      {isTracking && (
        <Track
          business_uid={business_uid}
          onClose={() => setTracking(false)}
          onTracked={(fresh) => {
            onAnswer(fresh)
            setNote(`Tracked: ${fresh.headline}.`)
          }}
        />
      )}
    </div>
  )
}
