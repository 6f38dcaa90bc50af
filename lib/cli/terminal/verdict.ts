import { type Decision, failureInWords, type NextStep } from '../../index.js'
import type { Context } from './context.js'
import { DONE, type ExitCode, NO, UNAVAILABLE, USAGE } from './exit-codes.js'
import { fields, oneLine, shellArgument, shellWord, shortTime, table, wrapped } from './layout.js'
import type { Output } from './output.js'

/** The answer for a person: yes or no, then the reason, the next step, and the subscriptions. */
export function verdictText(decision: Decision, step: NextStep, { paint, width }: Output): string {
  const { business_uid, entitled, known, reason, explanation, asOf, subscriptions } = decision
  const answer = entitled
    ? paint.good('YES, it may use the app')
    : known
      ? paint.bad('NO, it may not use the app')
      : paint.unsure('NOT KNOWN YET, so it may not use the app')
  const about = fields(
    {
      reason,
      confirmed: subscriptions.length > 0 ? shortTime(asOf) : null,
      'next step': step.next,
    },
    width,
  )
  const commands = fields(commandsFor(step, business_uid))
  const rows = table(
    [
      { title: 'SUBSCRIPTION', cell: (each) => each.subscription_uid },
      { title: 'STATE', cell: (each) => each.purchase_state ?? '-' },
      { title: 'REASON', cell: (each) => each.reason },
      {
        title: 'READ',
        cell: (each) =>
          `${shortTime(each.asOf)}${each.failure ? `, then failed: ${failureInWords(each.failure)}` : each.pending ? ', next read requested' : ''}`,
      },
    ],
    subscriptions.slice(0, MAX_SHOWN),
    width,
  )
  const rest = subscriptions.length - MAX_SHOWN
  return [
    `${paint.bold(oneLine(business_uid))}: ${answer}.`,
    about,
    ...(commands === '' ? [] : ['', commands]),
    '',
    ...wrapped(explanation, width),
    ...(subscriptions.length > 0 ? ['', rows] : []),
    ...(rest > 0 ? [`And ${rest} more: see --json.`] : []),
  ].join('\n')
}

const MAX_SHOWN = 20

/** The commands for what a step asks for, by the words of the step. A shell takes each as it is printed, in one line. */
function commandsFor(
  { next, action, entryId }: NextStep,
  businessUid: string,
): Record<string, string | null> {
  const asks = (words: RegExp, command: string) => (words.test(next) ? `${PROGRAM} ${command}` : null)
  const entry = entryId === undefined ? null : shellWord(entryId)
  return {
    'read again': asks(/\bread again\b/i, `refresh ${shellArgument(businessUid)}`),
    track: asks(/\btrack\b/i, `track '<subscription>' --business ${shellWord(businessUid)}`),
    'failed entry': entry && `${PROGRAM} journal show ${entry}`,
    replay: entry && `${PROGRAM} journal replay ${entry} --wait`,
    health: action === 'health' ? `${PROGRAM} doctor` : null,
  }
}

const PROGRAM = 'npx marketplace-webhooks'

/** The options in a file may have a search of the platform, which this command has not made without them. */
export function noteUnsearched({ reason }: Decision, { hasConfig, out }: Pick<Context, 'hasConfig' | 'out'>) {
  if (hasConfig || reason !== 'unknown_business') return
  out.note(
    'This command has not searched the platform. If the app has the option findSubscriptions, add --config options.js, the file with its options.',
  )
}

/** The exit code: 0 for yes, 1 for no, 3 for not known, 2 for an invalid identifier or an item that is not the app's. */
export function exitCodeOf({ entitled, known, reason }: Decision): ExitCode {
  if (entitled) return DONE
  if (reason === 'invalid_business_uid' || reason === 'item_unknown') return USAGE
  return known ? NO : UNAVAILABLE
}
