import type { Decision, Reason } from '../index.js'
import { DONE, type ExitCode, NO, UNAVAILABLE, USAGE } from './exit-codes.js'
import { fields, shortTime, table, wrapped } from './layout.js'
import type { Output } from './output.js'

/** The next step for a support person. */
const NEXT_STEPS: Record<Reason, string> = {
  purchased: 'Nothing. If the business still has no access, check the app itself.',
  not_read_yet: 'Try again in a minute. If nothing changes, check that the app runs with its worker on.',
  stale: 'Run `refresh`. If nothing changes, the app cannot read the platform: run `doctor`.',
  entitled_when_failed: 'Correct the option entitledWhen of the app: the explanation shows what it did.',
  denied_by_rule: 'Compare the record with the rule of the app, its option entitledWhen.',
  not_purchased: 'Ask the business to check its payment. If it has just paid, run `refresh`.',
  revoked: 'Ask the business to install the app again, then run `refresh`.',
  ended: 'Ask the business to buy the app again. If it says that it still pays, run `refresh` and `doctor`.',
  missing: 'Ask the business for the uid of its subscription. If it is another one, run `track`.',
  unreadable: 'Ask whether the business has installed the app, and for the uid of its subscription.',
  other_app: 'Ask which item the business bought, and compare it with MARKETPLACE_PURCHASABLE_UID.',
  other_item: 'Ask which item the business bought: it did not buy the one in your question.',
  unknown_business: 'Ask for the uid of its subscription, and add it with `track`.',
  invalid_business_uid: 'Check the uid.',
  item_unknown: 'Compare --item with MARKETPLACE_PURCHASABLE_UID.',
  store_unavailable: 'Run `doctor`.',
  not_recorded: 'Choose a later time, or ask for the present answer.',
}

/** The answer for a person: yes or no, then the reason, the next step, and the subscriptions. */
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
      'as of': at && shortTime(at),
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
          `${shortTime(each.asOf)}${each.failure ? `, then failed: ${each.failure}` : each.pending ? ', next read requested' : ''}`,
      },
    ],
    subscriptions.slice(0, MAX_SHOWN),
    width,
  )
  const rest = subscriptions.length - MAX_SHOWN
  return [
    `${paint.bold(business_uid)}: ${answer}.`,
    about,
    '',
    ...wrapped(explanation, width),
    ...(subscriptions.length > 0 ? ['', rows] : []),
    ...(rest > 0 ? [`And ${rest} more: see --json.`] : []),
  ].join('\n')
}

const MAX_SHOWN = 20

/** The exit code: 0 for yes, 1 for no, 3 for not known, 2 for an invalid identifier or an item that is not the app's. */
export function exitCodeOf({ entitled, known, reason }: Decision): ExitCode {
  if (entitled) return DONE
  if (reason === 'invalid_business_uid' || reason === 'item_unknown') return USAGE
  return known ? NO : UNAVAILABLE
}
