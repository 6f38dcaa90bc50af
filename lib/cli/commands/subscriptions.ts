import type { Command } from 'commander'
import {
  type Marketplace,
  REASONS,
  type Reason,
  type SubscriptionStatus,
  type SubscriptionsFilter,
} from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { cellOf } from '../terminal/csv.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { shellWord, shortTime, table } from '../terminal/layout.js'

interface ListOptions {
  business?: string
  state?: string
  why?: string
  item?: string
  after?: string
  limit?: number
  csv?: true
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
    .option('--limit <count>', 'show at most this many (default: 50; with --csv, all)', wholeNumber)
    .option('--after <uid>', 'only subscriptions after this one', trimmed)
    .option('--csv', 'print CSV with a header line, for a spreadsheet or for `import`')
    .addHelpText(
      'after',
      examples(
        'subscriptions list',
        'subscriptions list --business business-1',
        'subscriptions list --why not_read_yet --json',
        'subscriptions list --csv > subscriptions.csv',
      ),
    )
    .action(
      act(async (context, given: ListOptions) => {
        const { out } = context
        if (given.csv && out.isJson) throw new Stop(USAGE, 'Give either --csv or --json, not both')
        const filter = {
          businessUid: given.business,
          purchaseState: given.state,
          reason: given.why as Reason | undefined,
          purchasableUid: given.item,
          after: given.after,
        }
        const marketplace = await context.open()
        const which = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
        if (given.csv) {
          out.result(null, () => csvLine(Object.keys(COLUMNS)))
          for await (const each of listed(marketplace, which, given.limit)) {
            if (out.readerGone.aborted) break
            out.result(null, () => csvLine(Object.values(COLUMNS).map((cell) => cell(each))))
          }
          return DONE
        }
        const { limit = 50 } = given
        const found = await marketplace.subscriptions.list({ ...which, limit })
        if (out.isJson) for (const each of found) out.result(each, () => '')
        else if (found.length > 0) out.result(found, () => textOf(found))
        if (found.length === 0) out.note('No subscription matches.')
        else if (found.length === limit)
          out.note(
            `For further subscriptions add --after ${shellWord(found.at(-1)?.subscription_uid as string)}`,
          )
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

/** The subscriptions that match, page after page, at most `limit`. */
async function* listed(
  marketplace: Marketplace,
  filter: SubscriptionsFilter,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<SubscriptionStatus> {
  let left = limit
  let after = filter.after
  for (;;) {
    const size = Math.min(left, PAGE)
    const page = await marketplace.subscriptions.list({
      ...filter,
      ...(after === undefined ? {} : { after }),
      limit: size,
    })
    yield* page
    left -= page.length
    after = page.at(-1)?.subscription_uid
    if (page.length < size || left === 0) return
  }
}

const PAGE = 1_000

/** The columns of `--csv`. The first two are those that `import` needs. */
const COLUMNS: Record<string, (subscription: SubscriptionStatus) => string | null> = {
  subscription_uid: ({ subscription_uid }) => subscription_uid,
  business_uid: ({ business_uid }) => business_uid,
  answer: answerOf,
  reason: ({ reason }) => reason,
  purchase_state: ({ purchase_state }) => purchase_state,
  purchasable_uid: ({ purchasable_uid }) => purchasable_uid,
  read_at: ({ readAt }) => readAt,
  failure: ({ failure }) => failure,
}

function csvLine(cells: readonly (string | null)[]): string {
  return cells.map((cell) => cellOf(cell ?? '')).join(',')
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
