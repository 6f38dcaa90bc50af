import type { Command } from 'commander'
import type { JournalEntry } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'
import { shortTime, table } from '../terminal/layout.js'
import { addFilterOptions, type FilterOptions, filterFrom } from './filter.js'

export function addJournalList(journal: Command, act: Act) {
  addFilterOptions(journal.command('list'))
    .summary('list entries, newest first')
    .description('List entries, newest first. With --json, one entry with its payload on each line.')
    .option('--limit <count>', 'show at most this many', wholeNumber, 50)
    .option('--before <id>', 'only entries before this one', trimmed)
    .addHelpText('after', examples('journal list --dead', 'journal list --business b1 --since 2026-03-01'))
    .action(
      act(async (context, given: FilterOptions & { limit: number; before?: string }) => {
        const { out } = context
        const { limit, before } = given
        const filter = filterFrom(given)
        const marketplace = await context.open()
        const entries = await marketplace.journal.list({
          ...filter,
          limit,
          ...(before === undefined ? {} : { before }),
        })
        if (out.isJson) for (const entry of entries) out.result(entry, () => '')
        else if (entries.length > 0) out.result(entries, () => textOf(entries))
        if (entries.length === 0) out.note('No entry matches.')
        else if (entries.length === limit) out.note(`For older entries add --before ${entries.at(-1)?.id}`)
        return DONE

        function textOf(shown: readonly JournalEntry[]): string {
          return table(
            [
              {
                title: 'RECEIVED',
                cell: ({ receivedAt }) => shortTime(receivedAt),
                paint: (text) => out.paint.dim(text),
              },
              {
                title: 'STATUS',
                cell: statusOf,
                paint: (text, entry) => (entry.status === 'dead' ? out.paint.bad(text) : text),
              },
              { title: 'ID', cell: ({ id }) => id },
              { title: '', cell: sentenceOf },
            ],
            shown,
            out.width,
          )
        }
      }),
    )
}

/** The status as the filter names it. */
export function statusOf({ status, attempts }: JournalEntry): string {
  return status === 'pending' && attempts > 0 ? 'retrying' : status
}

/** What an entry is about, and its error; of an action its person and reason. */
export function sentenceOf(entry: JournalEntry): string {
  const { kind, name, cause, attempts, error, business_uid, subscription_uid, issues, payload } = entry
  const about = [business_uid, subscription_uid].filter(Boolean).join(' ')
  const tries = attempts > 1 ? `, ${attempts} tries` : ''
  const { actor, reason } = (kind === 'action' ? payload : {}) as { actor?: string; reason?: string | null }
  const why = error ?? issues?.[0] ?? reason
  return `${kind === 'event' ? name : `${kind}${name ? ` ${name}` : ''}`}${actor ? ` by ${actor}` : ''}${about ? ` ${about}` : ''}${cause ? `, cause: ${cause}` : ''}${tries}${why ? `: ${why}` : ''}`
}
