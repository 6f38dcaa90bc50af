import type { Command } from 'commander'
import { REASONS, type Reason, type SubscriptionStatus } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'
import { shortTime, table } from '../terminal/layout.js'

interface ListOptions {
  business?: string
  state?: string
  why?: string
  item?: string
  after?: string
  limit: number
}

export function addSubscriptions(program: Command, act: Act) {
  const subscriptions = program
    .command('subscriptions')
    .summary('list subscriptions')
    .description('The subscriptions that the database knows. Only a read of the platform changes one.')
  subscriptions
    .command('list')
    .summary('list subscriptions, with the answer that each gives')
    .description(
      'List subscriptions in the order of their uids, with the answer that each gives and when the platform last confirmed ' +
        'it. With --json, one subscription with its record on each line.',
    )
    .option('--business <uid>', 'subscriptions of this business', trimmed)
    .option('--state <state>', 'those whose purchase_state is this one, as last read', trimmed)
    .option('--why <reason>', 'those whose reason is this one, such as not_read_yet', trimmed)
    .option('--item <uid>', 'subscriptions of this item', trimmed)
    .option('--limit <count>', 'show at most this many', wholeNumber, 50)
    .option('--after <uid>', 'only subscriptions after this one', trimmed)
    .addHelpText(
      'after',
      examples(
        'subscriptions list',
        'subscriptions list --business business-1',
        'subscriptions list --why not_read_yet --json',
      ),
    )
    .action(
      act(async (context, given: ListOptions) => {
        const { out } = context
        const { limit } = given
        const filter = {
          businessUid: given.business,
          purchaseState: given.state,
          reason: given.why as Reason | undefined,
          purchasableUid: given.item,
          after: given.after,
        }
        const marketplace = await context.open()
        const found = await marketplace.subscriptions.list({
          ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
          limit,
        })
        if (out.isJson) for (const each of found) out.result(each, () => '')
        else if (found.length > 0) out.result(found, () => textOf(found))
        if (found.length === 0) out.note('No subscription matches.')
        else if (found.length === limit)
          out.note(`For further subscriptions add --after ${found.at(-1)?.subscription_uid}`)
        return DONE

        function textOf(shown: readonly SubscriptionStatus[]): string {
          return table(
            [
              {
                title: 'READ',
                cell: ({ readAt }) => shortTime(readAt),
                paint: (text) => out.paint.dim(text),
              },
              {
                title: 'ANSWER',
                cell: answerOf,
                paint: (text, { reason }) => {
                  const { entitled, known } = REASONS[reason]
                  return entitled
                    ? out.paint.good(text)
                    : known
                      ? out.paint.bad(text)
                      : out.paint.unsure(text)
                },
              },
              { title: 'SUBSCRIPTION', cell: ({ subscription_uid }) => subscription_uid },
              { title: 'BUSINESS', cell: ({ business_uid }) => business_uid },
              { title: '', cell: sentenceOf },
            ],
            shown,
            out.width,
          )
        }
      }),
    )
}

function answerOf({ reason }: SubscriptionStatus): string {
  const { entitled, known } = REASONS[reason]
  return entitled ? 'yes' : known ? 'no' : 'unknown'
}

function sentenceOf({
  purchase_state,
  reason,
  failure,
  pending,
  purchasable_uid,
}: SubscriptionStatus): string {
  const state = purchase_state === null || purchase_state === reason ? '' : `${purchase_state}, `
  const item = purchasable_uid === null ? '' : `, item ${purchasable_uid}`
  return `${state}${reason}${item}${pending ? ', a read is requested' : ''}${failure ? `, last read: ${failure}` : ''}`
}
