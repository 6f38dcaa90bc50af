import type { Command } from 'commander'
import type { HistoryItem } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, NO } from '../terminal/exit-codes.js'
import { shortTime, table } from '../terminal/layout.js'

export function addHistory(program: Command, act: Act) {
  program
    .command('history')
    .summary('show the history of a business')
    .description(
      'Show the history of a business, newest first: deliveries, changes, their outcomes, and actions of people. With ' +
        '--json, one item on each line.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--limit <count>', 'show at most this many', wholeNumber, 50)
    .option('--before <id or time>', 'only items before this item or time', trimmed)
    .addHelpText('after', examples('history business-1', 'history business-1 --limit 10 --json'))
    .action(
      act(async (context, business: string, { limit, before }: { limit: number; before?: string }) => {
        const { out } = context
        const { paint } = out
        const marketplace = await context.open()
        const items = await marketplace.businesses.history(business, {
          limit,
          ...(before === undefined ? {} : { before }),
        })
        if (out.isJson) for (const item of items) out.result(item, () => '')
        else if (items.length > 0) out.result(items, () => textOf(items))
        if (items.length === 0)
          out.note(`Nothing is recorded for ${business}${before ? ' before that' : ''}.`)
        else if (items.length === limit) out.note(`For older items add --before ${items.at(-1)?.id}`)
        return items.length > 0 ? DONE : NO

        function textOf(shown: readonly HistoryItem[]): string {
          return table(
            [
              { title: 'WHEN', cell: ({ at }) => shortTime(at), paint: (text) => paint.dim(text) },
              { title: 'WHAT', cell: ({ kind }) => kind },
              {
                title: '',
                cell: sentenceOf,
                paint: (text, item) => (hasFailed(item) ? paint.bad(text) : text),
              },
            ],
            shown,
            out.width,
          )
        }
      }),
    )
}

function sentenceOf(item: HistoryItem): string {
  const about = item.subscription_uid ? ` (${item.subscription_uid})` : ''
  switch (item.kind) {
    case 'delivery':
      return `${item.name}${about}`
    case 'change': {
      const to = item.to ?? item.gone ?? 'no longer shown'
      const { entitledAfter } = item
      const answer = entitledAfter === null ? 'access not known' : entitledAfter ? 'access' : 'no access'
      return `${item.from ?? 'not read'} -> ${to}, ${answer}, cause: ${item.cause ?? 'unknown'}${about}`
    }
    case 'handled': {
      const tries = item.attempts > 1 ? ` after ${item.attempts} tries` : ''
      const name = item.of === 'delivery' ? item.name || 'the delivery' : `the ${item.of}`
      return `${name}: ${item.outcome}${tries}${item.error ? `: ${item.error}` : ''}${
        hasFailed(item) ? ` [${item.entryId}]` : ''
      }`
    }
    case 'action':
      return `${item.action} by ${item.actor ?? 'an unknown person'}${item.reason ? `: ${item.reason}` : ''}${about}`
  }
}

function hasFailed(item: HistoryItem): boolean {
  return item.kind === 'handled' && (item.outcome === 'dead' || item.outcome === 'retrying')
}
