import { useState } from 'preact/hooks'
import type { Replies } from '../../protocol/shapes.js'
import { act, search } from '../calls.js'
import { useAct } from '../hooks.js'
import { Box, Button, Field, Form, Trouble } from '../parts.js'

export function Track(props: {
  business_uid: string
  onClose: () => void
  onTracked: (business: Replies['track']) => void
}) {
  const { business_uid, onClose, onTracked } = props
  const [pasted, setPasted] = useState('')
  const [reason, setReason] = useState('')
  const { isBusy, error, run } = useAct()

  async function track() {
    const fresh = await run(async () => {
      const { terms } = await search(pasted)
      const subscription_uid = terms.find((term) => term !== business_uid)
      if (subscription_uid === undefined)
        throw new Error('Paste the identifier of the subscription, not of the business.')
      return act('track', { business_uid, subscription_uid, reason })
    })
    if (!fresh) return
    onTracked(fresh)
    onClose()
  }

  return (
    <Box title="Track a subscription" onClose={onClose}>
      <Form isBusy={isBusy} onSubmit={track}>
        <p>
          The app looks at the platform first. If the platform shows the subscription for this business, the
          app adds it, and reads it again regularly. Otherwise nothing changes.
        </p>
        <Field
          label="Identifier of the subscription"
          value={pasted}
          onInput={setPasted}
          isRequired
          hasFocus
        />
        <Field label="Reason (optional, recorded with your name)" value={reason} onInput={setReason} />
        <Trouble error={error} />
        <div class="buttons">
          <Button type="submit" isPrimary isBusy={isBusy}>
            {isBusy ? 'Reading…' : 'Track'}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </Form>
    </Box>
  )
}
