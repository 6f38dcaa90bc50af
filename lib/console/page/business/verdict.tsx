import type { ComponentChildren } from 'preact'
import type { BusinessReply } from '../../protocol/shapes.js'
import { Ago, Facts, Uid } from '../parts.js'

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
