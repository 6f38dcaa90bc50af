import { useState } from 'preact/hooks'
import type { BusinessReply } from '../../protocol/shapes.js'
import { Outcome } from '../attention/outcome.js'
import { Replay } from '../attention/replay.js'
import { act, read } from '../calls.js'
import { placeOf, useAct } from '../hooks.js'
import { Button, Trouble } from '../parts.js'
import { useMay } from '../session.js'
import { Track } from './track.js'

/** The actions for a business. The button of the next step is highlighted. */
export function BusinessActions(props: {
  business: BusinessReply
  onAnswer: (business: BusinessReply) => void
}) {
  const { business, onAnswer } = props
  const { business_uid, step } = business
  const [isTracking, setTracking] = useState(false)
  const [isReplaying, setReplaying] = useState(false)
  /** The entry of the last replay. */
  const [replayed, setReplayed] = useState<{ id: string; turn: number }>()
  const mayReplay = useMay('replay')
  const [note, setNote] = useState('')
  const { isBusy, error, run } = useAct()

  async function readAgain() {
    setNote('')
    const fresh = await run(() => act('refresh', { business_uid }))
    if (!fresh) return
    onAnswer(fresh)
    setNote(fresh.outcome)
  }

  /** Shows what is stored now, without a read from the platform. */
  async function look() {
    const fresh = await run(() => read('business', { business_uid }))
    if (fresh) onAnswer(fresh)
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
        {step.entryId !== undefined && mayReplay && (
          <Button isPrimary onClick={() => setReplaying(true)}>
            Replay…
          </Button>
        )}
        {step.entryId !== undefined && <a href={placeOf('attention', step.entryId)}>Open the failed entry</a>}
      </div>
      <p class="note" role="status">
        {note}
      </p>
      <Trouble error={error} />
      {replayed && <Outcome key={replayed.turn} ids={[replayed.id]} onSettled={look} />}
      {isReplaying && step.entryId !== undefined && (
        <Replay
          selection={{ entryId: step.entryId }}
          onClose={() => setReplaying(false)}
          onDone={(_summary, [id = '']) => setReplayed((before) => ({ id, turn: (before?.turn ?? 0) + 1 }))}
        />
      )}
      {isTracking && (
        <Track
          business_uid={business_uid}
          onClose={() => setTracking(false)}
          onTracked={(fresh) => {
            onAnswer(fresh)
            setNote(`Tracked. ${fresh.outcome}`)
          }}
        />
      )}
    </div>
  )
}
