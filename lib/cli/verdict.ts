import type { Decision, Reason } from '../index.js'
import { DONE, type ExitCode, NO, UNAVAILABLE, USAGE } from './exit-codes.js'
import { fields, shortTime, table, wrapped } from './layout.js'
import type { Output } from './output.js'

/** What a support person does next. */
const NEXT_STEPS: Record<Reason, string> = {
  purchased: 'Nothing. When the business still cannot get in, look at the app itself.',
  not_read_yet: 'Try again in a minute. When it stays: is the app running, with its worker on?',
  stale: 'Run `refresh`. When it stays, the platform cannot be read: run `doctor`.',
  not_purchased: 'Ask the business to look at its payment. When it paid just now, run `refresh`.',
  revoked: 'Ask the business to install the app again; then run `refresh`.',
  missing: 'Ask for the uid of its subscription, and compare. When it is another one, run `track`.',
  unreadable: 'Ask whether the business has the app installed, and for the uid of its subscription.',
  other_app: 'Ask what was bought, and compare with MARKETPLACE_PURCHASABLE_UID.',
  other_item: 'Ask which item was bought: it is not the one that was asked about.',
  unknown_business: 'Ask for the uid of its subscription, and make it known with `track`.',
  invalid_business_uid: 'Look at the uid again.',
  item_unknown: 'Compare --item with MARKETPLACE_PURCHASABLE_UID.',
  store_unavailable: 'Run `doctor`.',
  not_recorded: 'Ask for a later time, or for the answer of now.',
}

/** The answer for a person: yes or no first, then why, what to do, and what it rests on. */
export function verdictText(decision: Decision, { paint, width }: Output): string {
  const { business_uid, entitled, known, reason, explanation, asOf, at, subscriptions } = decision
  const answer = entitled
    ? paint.good('YES, it may use the app')
    : known
      ? paint.bad('NO, it may not use the app')
      : paint.unsure('NOT KNOWN YET, so it may not use the app')
  const about = fields(
    {
      reason,
      confirmed: subscriptions.length > 0 ? shortTime(asOf) : null,
      'as it was': at && shortTime(at),
      'next step': at ? null : NEXT_STEPS[reason],
    },
    width,
  )
  const rows = table(
    [
      { title: 'SUBSCRIPTION', cell: (each) => each.subscription_uid },
      { title: 'STATE', cell: (each) => each.purchase_state ?? '-' },
      { title: 'REASON', cell: (each) => each.reason },
      {
        title: 'READ',
        cell: (each) =>
          `${shortTime(each.asOf)}${each.failure ? `, failed since: ${each.failure}` : each.pending ? ', asked for again' : ''}`,
      },
    ],
    subscriptions.slice(0, MOST_SHOWN),
    width,
  )
  const rest = subscriptions.length - MOST_SHOWN
  return [
    `${paint.bold(business_uid)}: ${answer}.`,
    about,
    '',
    ...wrapped(explanation, width),
    ...(subscriptions.length > 0 ? ['', rows] : []),
    ...(rest > 0 ? [`And ${rest} more: see --json.`] : []),
  ].join('\n')
}

const MOST_SHOWN = 20

/** 0 yes, 1 no, 3 not known; 2 for what is not an identifier, or not an item of the app. */
export function exitCodeOf({ entitled, known, reason }: Decision): ExitCode {
  if (entitled) return DONE
  if (reason === 'invalid_business_uid' || reason === 'item_unknown') return USAGE
  return known ? NO : UNAVAILABLE
}
