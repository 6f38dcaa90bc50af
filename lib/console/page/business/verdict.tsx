import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { BusinessReply } from '../../protocol/shapes.js'
import { Ago, Button, Facts, Uid } from '../parts.js'

/** The answer, its cause, and the next step. */
export function Verdict({ business, children }: { business: BusinessReply; children: ComponentChildren }) {
  const { business_uid, decision, headline, cause, step } = business
  const answer = decision.entitled ? 'yes' : decision.known ? 'no' : 'wait'
  return (
    <section class="card verdict-card" data-answer={answer} aria-labelledby="verdict">
      <div class="verdict" role="status">
        <h2 id="verdict">{headline}</h2>
        <p class="cause">{cause}</p>
        <p class="of">
          Business <Uid>{business_uid}</Uid>
        </p>
      </div>
      <div class="next">
        <h3>Next step</h3>
        <p id="next-step">{step.next}</p>
        <CustomerText key={step.customer} text={step.customer} />
      </div>
      {children}
      <Facts
        look="facts"
        of={[
          ['Reason', <code>{decision.reason}</code>],
          ['Last confirmed', <Ago at={decision.asOf} />],
        ]}
      />
      <details>
        <summary>Full explanation</summary>
        <p>{decision.explanation}</p>
      </details>
    </section>
  )
}

/** Copies a text for the customer, and shows it: a browser copies nothing on plain HTTP. */
function CustomerText({ text }: { text: string }) {
  const [note, setNote] = useState('')

  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setNote('Copied:')
    } catch {
      setNote('The browser does not allow to copy. Select the text:')
    }
  }

  return (
    <>
      <div class="buttons">
        <Button onClick={copy}>Copy text for the customer</Button>
      </div>
      <div role="status">
        {note && (
          <p class="note">
            {note} <q id="customer-text">{text}</q>
          </p>
        )}
      </div>
    </>
  )
}
