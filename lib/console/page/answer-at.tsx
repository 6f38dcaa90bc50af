import { useState } from 'preact/hooks'
import type { Replies } from '../shapes.js'
import { read } from './calls.js'
import { useAct } from './hooks.js'
import { Box, Button, Field, Form, Trouble } from './parts.js'

/** The answer at a time of the past, from the recorded changes. Times are in the time zone of the browser. */
export function AnswerAt({ business_uid, onClose }: { business_uid: string; onClose: () => void }) {
  const [at, setAt] = useState(localTime(new Date()))
  const [answer, setAnswer] = useState<Replies['answerAt'] | undefined>()
  const { isBusy, error, run } = useAct()

  async function ask() {
    setAnswer(undefined)
    const time = new Date(at)
    setAnswer(
      await run(async () => {
        if (Number.isNaN(time.getTime())) throw new Error('Choose a day and a time.')
        return read('answerAt', { business_uid, at: time.toISOString() })
      }),
    )
  }

  return (
    <Box title="Answer at a time" onClose={onClose}>
      <Form isBusy={isBusy} onSubmit={ask}>
        <Field
          label="Time (in your time zone)"
          type="datetime-local"
          value={at}
          onInput={setAt}
          isRequired
          hasFocus
        />
        <div role="status">
          {answer && (
            <div
              class="then"
              data-answer={answer.decision.entitled ? 'yes' : answer.decision.known ? 'no' : 'wait'}
            >
              <p class="headline">{answer.headline}</p>
              <p>{answer.decision.explanation}</p>
              <ul class="sample">
                {answer.decision.restsOn?.map((evidence) => (
                  <li key={`${evidence.kind} ${evidence.subscription_uid}`}>{sentenceOf(evidence)}</li>
                ))}
              </ul>
            </div>
          )}
        </div>
        <Trouble error={error} />
        <div class="buttons">
          <Button type="submit" isPrimary isBusy={isBusy}>
            Show the answer
          </Button>
          <Button onClick={onClose}>Close</Button>
        </div>
      </Form>
    </Box>
  )
}

type Evidence = NonNullable<Replies['answerAt']['decision']['restsOn']>[number]

function sentenceOf(evidence: Evidence): string {
  const of = evidence.subscription_uid === null ? '' : `${evidence.subscription_uid}: `
  if (evidence.kind === 'not_recorded') return `${of}${evidence.why}`
  if (evidence.kind === 'change')
    return `${of}changed to ${evidence.to ?? 'gone'}, read ${new Date(evidence.on).toLocaleString()}`
  return `${of}same as now, because it has not changed since`
}

function localTime(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
