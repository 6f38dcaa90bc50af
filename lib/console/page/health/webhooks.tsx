import { read } from '../calls.js'
import { placeOf, useLoad } from '../hooks.js'
import { Ago, Facts, Loading, Trouble, Uid } from '../parts.js'

/** Other items, wrong secrets, and which events arrive. */
export function Webhooks() {
  const { data, error } = useLoad((signal) => read('webhooks', {}, signal), [])
  if (!data) return error ? <Trouble error={error} /> : <Loading />
  const { report, otherItems, examined, isAll } = data
  return (
    <>
      <section class="card" aria-labelledby="others">
        <h2 id="others">Other items and wrong secrets</h2>
        <Facts
          look="numbers"
          of={[['Requests with a wrong secret, to this process', <Count of={report.secretWrong} />]]}
        />
        {report.secretWrong.count > 0 && (
          <p class="hint">
            A wrong secret comes from an old registration, a scanner, or a guess. Such requests are not
            stored. If events stop arriving, register the webhooks again.
          </p>
        )}
        {otherItems.length > 0 && (
          <>
            <h3>Subscriptions for other items</h3>
            <ul class="plain-rows">
              {otherItems.map(({ subscription_uid, business_uid, purchasable_uid }) => (
                <li key={subscription_uid}>
                  <a href={placeOf('business', business_uid, subscription_uid)}>
                    <Uid>{subscription_uid}</Uid>
                  </a>{' '}
                  is for the item <Uid>{purchasable_uid ?? 'unknown'}</Uid>
                </li>
              ))}
            </ul>
          </>
        )}
        {!isAll && (
          <p class="hint">
            Of the subscriptions, the first {examined} were examined for other items. <em>Subscriptions</em>{' '}
            in the chapter Business shows all of them.
          </p>
        )}
      </section>
      <section class="card" aria-labelledby="events">
        <h2 id="events">Events</h2>
        <ul class="plain-rows">
          {report.events.map(({ event, count, lastAt }) => (
            <li key={event}>
              <strong>{event}</strong>: <Count of={{ count, lastAt }} />
            </li>
          ))}
          {report.secrets.map(({ secret, count, lastAt }) => (
            <li key={secret}>
              With the {secret} delivery secret: <Count of={{ count, lastAt }} />
            </li>
          ))}
        </ul>
      </section>
    </>
  )
}

function Count({ of: { count, lastAt } }: { of: { count: number; lastAt: string | null } }) {
  if (count === 0) return <>none</>
  return (
    <>
      {count}, last <Ago at={lastAt} />
    </>
  )
}
